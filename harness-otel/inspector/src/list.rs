//! Lists: sessions, and what waits for a person.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use harness::id::AgentId;
use harness::inspect::report::visible;
use harness::inspect::{Filter, Phase, SessionPage, SessionRow};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Shared;
use crate::page::{PHASES, Tab, badge, name, page, since};
use crate::problem::Problem;
use crate::query::{hex, session, unhex, with};

/// The sessions of a page.
const ROWS: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    /// The beginning of the id.
    id: String,
    agent: String,
    phase: String,
    after: String,
}

impl Search {
    fn filter(&self) -> Filter {
        let mut filter = Filter::sessions();
        if !self.agent.trim().is_empty() {
            filter = filter.agent(AgentId::new(self.agent.trim()));
        }
        if let Some(phase) = self.phase() {
            filter = filter.phase(phase);
        }
        filter
    }

    fn phase(&self) -> Option<Phase> {
        PHASES.into_iter().find(|phase| name(*phase) == self.phase)
    }

    fn next(&self, path: &str, after: &[u8]) -> String {
        let (id, agent, phase, after) = (&*self.id, &*self.agent, &*self.phase, &*hex(after));
        with(path, &[("id", id), ("agent", agent), ("phase", phase), ("after", after)])
    }
}

pub(crate) async fn sessions(
    State(shared): State<Arc<Shared>>,
    Query(search): Query<Search>,
) -> Result<Html<String>, Problem> {
    let prefix = search.id.trim().to_owned();
    let after = match &*search.after {
        "" => before(&prefix),
        after => Some(unhex(after).ok_or_else(|| Problem::bad("The page is none of this list."))?),
    };
    let found = shared.sessions.list(&search.filter(), after.as_deref(), ROWS).await?;
    let SessionPage { rows, next, .. } = found;
    let matching = |row: &SessionRow| row.session.as_str().starts_with(&*prefix);
    // The list is in the order of the ids: what follows on the last one that matches does not. That the
    // page ends with one says nothing about the next row.
    let next = match next.filter(|_| rows.last().is_some_and(matching)) {
        Some(next) if !prefix.is_empty() => {
            let ahead = shared.sessions.list(&search.filter(), Some(&next), 1).await?;
            ahead.rows.first().is_some_and(matching).then_some(next)
        }
        next => next,
    };
    let rows: Vec<_> = rows.into_iter().filter(matching).collect();
    let body = html! {
        header class="title" { h1 { "Sessions" } }
        (form("/", &search))
        section class="panel" aria-label="Sessions" {
            @if rows.is_empty() {
                p class="empty" { "No session matches." }
            } @else {
                div class="scroll" { table class="rows" {
                    thead { tr {
                        th scope="col" { "Session" } th scope="col" { "Agent" } th scope="col" { "Phase" }
                        th scope="col" { "Step" } th scope="col" class="number" { "Entries" }
                        th scope="col" { "Last change" }
                    } }
                    tbody { @for row in &rows { (self::row(row)) } }
                } }
            }
            (pager("/", &search, rows.len(), next.as_deref()))
        }
    };
    Ok(page(&shared, "Sessions", Tab::Sessions, body))
}

/// The key of a list after which the ids with this beginning come.
fn before(prefix: &str) -> Option<Vec<u8>> {
    let mut key = prefix.as_bytes().to_vec();
    let last = key.pop()?;
    // No text continues with this byte, so that no id lies between.
    key.extend([last.checked_sub(1)?, 0xff]);
    Some(key)
}

fn row(row: &SessionRow) -> Markup {
    html! { tr {
        td { a href=(session(row.session.as_str())) { bdi { (visible(row.session.as_str())) } } }
        td class="wrap" { (visible(row.agent.as_str())) }
        td { (badge(row.phase)) }
        td class="wrap" { (visible(&row.step)) }
        td class="number" { (row.head) }
        td class="soft" { (since(row.updated)) }
    } }
}

fn form(path: &str, search: &Search) -> Markup {
    html! {
        form class="search" method="get" action=(path) role="search" {
            @if path == "/" {
                div { label for="id" { "Session begins with" }
                    input id="id" type="search" name="id" value=(visible(&search.id)) spellcheck="false"; }
            }
            div { label for="agent" { "Agent" }
                input id="agent" type="search" name="agent" value=(visible(&search.agent)) spellcheck="false"; }
            @if path == "/" {
                div { label for="phase" { "Phase" }
                    select id="phase" name="phase" {
                        option value="" { "any" }
                        @for phase in PHASES {
                            option value=(name(phase)) selected[search.phase() == Some(phase)] { (name(phase)) }
                        }
                    } }
            }
            button type="submit" { "Search" }
            p class="hint" {
                @if path == "/" { "The beginning of an id finds sessions, in upper and lower case as they are written. " }
                "An agent is found by its whole name."
            }
        }
    }
}

fn pager(path: &str, search: &Search, count: usize, next: Option<&[u8]>) -> Markup {
    html! {
        nav class="pager" aria-label="Pages of the list" {
            span { (count) " on this page" }
            @if !search.after.is_empty() { a href=(search.next(path, b"")) { "First page" } }
            @if let Some(next) = next { a rel="next" href=(search.next(path, next)) { "Next page" } }
        }
    }
}

pub(crate) async fn waiting(
    State(shared): State<Arc<Shared>>,
    Query(search): Query<Search>,
) -> Result<Response, Problem> {
    let after = match &*search.after {
        "" => None,
        after => Some(unhex(after).ok_or_else(|| Problem::bad("The page is none of this list."))?),
    };
    let found = shared.sessions.list_interrupts(&search.filter(), after.as_deref(), ROWS).await?;
    let body = html! {
        header class="title" { h1 { "Waiting for a person" } }
        (form("/waiting", &search))
        @for (id, error) in &found.unreadable {
            p class="notice bad" { (visible(id.as_str())) ": " (visible(&error.to_string())) }
        }
        section class="panel" aria-label="Open questions" {
            @if found.rows.is_empty() {
                p class="empty" { "Nothing waits for a person." }
            } @else {
                div class="scroll" { table class="rows" {
                    thead { tr {
                        th scope="col" { "Session" } th scope="col" { "Question" } th scope="col" { "Agent" }
                        th scope="col" { "Step" } th scope="col" { "Waiting since" } th scope="col" { "Expires" }
                    } }
                    tbody { @for row in &found.rows { tr {
                        td { a href={ (session(row.session.as_str())) "#ask" } { bdi { (visible(row.session.as_str())) } } }
                        td class="wrap" { (visible(&row.interrupt.name)) }
                        td class="wrap" { (visible(row.agent.as_str())) }
                        td class="wrap" { (visible(&row.interrupt.step)) }
                        td class="soft" { (since(row.since)) }
                        td class="soft" { @if let Some(expires) = row.expires { (expires) } @else { "never" } }
                    } } }
                } }
            }
            (pager("/waiting", &search, found.rows.len(), found.next.as_deref()))
        }
    };
    Ok((StatusCode::OK, page(&shared, "Waiting", Tab::Waiting, body)).into_response())
}
