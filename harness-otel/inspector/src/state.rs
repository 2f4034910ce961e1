//! The state of a session after an entry.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Html;
use harness::Seq;
use harness::inspect::SessionsError;
use harness::inspect::report::{changes_html, compare, describe, visible};
use maud::{PreEscaped, html};
use serde::Deserialize;
use serde_json::Value;

use crate::Shared;
use crate::page::{Tab, page};
use crate::problem::Problem;
use crate::query;

#[derive(Debug, Deserialize)]
pub(crate) struct At {
    id: String,
    seq: u64,
}

/// The most characters of a state that are shown.
const MOST: usize = 200_000;

pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Query(At { id, seq }): Query<At>,
) -> Result<Html<String>, Problem> {
    let seq = Seq(seq);
    let state = shared.sessions.state_at(&id, seq).await?;
    let history = shared.sessions.history(&id, seq, 1).await?;
    let before = match seq.0.checked_sub(1).filter(|before| *before > 0) {
        Some(before) => known(shared.sessions.state_at(&id, Seq(before)).await)?,
        None => None,
    };
    let text = serde_json::to_string_pretty(&state).unwrap_or_default();
    let end = text.char_indices().nth(MOST).map_or(text.len(), |(end, _)| end);
    let body = html! {
        header class="title" {
            div {
                p class="lead" { a href=(query::session(&id)) { (visible(&id)) } }
                h1 { "After entry " (seq) }
            }
        }
        nav class="pager" aria-label="Entries" {
            @if before.is_some() { a rel="prev" href=(query::state(&id, Seq(seq.0 - 1))) { "Entry before" } }
            @if seq < history.head { a rel="next" href=(query::state(&id, Seq(seq.0 + 1))) { "Entry after" } }
            form class="goto" method="get" action="/session/state" {
                input type="hidden" name="id" value=(id);
                label for="seq" { "Entry" }
                input id="seq" type="number" name="seq" min="1" max=(history.head) value=(seq) required;
                span { "of " (history.head) }
                button class="quiet" type="submit" { "Show" }
            }
        }
        @for (at, entry) in &history.entries {
            p class="wrap" { strong { (entry.change.name()) } " " (visible(&describe(entry)))
                span class="soft small" { ", entry " (at) ", " (entry.at) } }
        }
        section class="panel" aria-labelledby="h-changes" {
            h2 id="h-changes" { "Changes" }
            @match &before {
                Some(before) => {
                    @let (changes, more) = compare(before, &state);
                    @if changes.is_empty() { p class="soft" { "The state is as it was before." } }
                    @else { (PreEscaped(changes_html(&changes, more))) }
                }
                None => p class="soft" { "The log has no entry before it." }
            }
        }
        (programs(&state))
        section class="panel" aria-labelledby="h-state" {
            h2 id="h-state" { "State" }
            pre dir="auto" tabindex="0" { (visible(&text[..end]))
                @if end < text.len() { "… (" (text.len()) " bytes)" } }
        }
    };
    Ok(page(&shared, &format!("Entry {seq}"), Tab::Sessions, body))
}

/// The programs of code steps, as they were.
#[cfg(feature = "code")]
fn programs(state: &Value) -> maud::Markup {
    PreEscaped(harness::inspect::report::programs_html(state, None))
}

#[cfg(not(feature = "code"))]
fn programs(_: &Value) -> maud::Markup {
    html! {}
}

/// The state before the first entry that is kept is not known.
fn known(found: Result<Value, SessionsError>) -> Result<Option<Value>, SessionsError> {
    match found {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.is_pruned() || error.is_no_such_entry() => Ok(None),
        Err(error) => Err(error),
    }
}
