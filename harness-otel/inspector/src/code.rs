//! A version of a code step, and the way back to it.

use std::sync::Arc;

use axum::Form;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html, Response};
use harness::inspect::report::{CodeVersion, ProgramReport, difference_html, programs, visible};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::Shared;
use crate::act::{Sent, back, field, number, permit};
use crate::page::{Tab, page};
use crate::problem::Problem;
use crate::query;
use crate::session::{by, hidden};

#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    id: String,
    /// The place of the program among those of the state.
    program: usize,
    version: u32,
}

/// The most characters of a source that are shown.
const MOST: usize = 40_000;

fn missing() -> Problem {
    let why = "The state of the session has no such program, or the program no such version.";
    Problem::new(StatusCode::NOT_FOUND, "No such version", why)
}

pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Query(Which { id, program, version }): Query<Which>,
) -> Result<Html<String>, Problem> {
    // In this order: a state that is newer than the head makes the form stale, and not wrong.
    let head = shared.sessions.status(&id).await?.head;
    let state = shared.sessions.state(&id).await?;
    let program = programs(&state).into_iter().nth(program).ok_or_else(missing)?;
    let found = program.version(version).ok_or_else(missing)?;
    let it = &found.version;
    let title = format!("{} of {}", it.id, it.step);
    let source = &it.source;
    let end = source.char_indices().nth(MOST).map_or(source.len(), |(end, _)| end);
    let body = html! {
        header class="title" {
            div {
                p class="lead" { a href=(query::session(&id)) { (visible(&id)) } }
                h1 { "Version " (visible(&title)) }
            }
            @if found.current { span class="badge ended" { "present" } }
        }
        section class="panel" aria-labelledby="h-source" {
            h2 id="h-source" { "Source" }
            pre dir="auto" tabindex="0" { (visible(&source[..end]))
                @if end < source.len() { "… (" (source.len()) " bytes)" } }
        }
        @if !found.current { (way_back(&shared, &id, head.0, &program, found)) }
    };
    Ok(page(&shared, &visible(&title), Tab::Sessions, body))
}

/// What a rollback would do, and its form.
fn way_back(
    shared: &Shared,
    id: &str,
    head: u64,
    program: &ProgramReport,
    found: &CodeVersion,
) -> Markup {
    let it = &found.version;
    let present = program.steps.iter().find(|step| step.id == it.step);
    html! {
        section class="panel" aria-labelledby="h-back" {
            h2 id="h-back" { "Roll back to " (it.id) }
            @if let Some(present) = present {
                p { "What changes in " (visible(&it.step)) ", whose present version is " (present.version) ":" }
                (PreEscaped(difference_html(&present.source, &it.source)))
            }
            @match program.after_roll_back(it.id) {
                Err(why) => p class="notice bad" role="alert" { "It cannot be returned to: " (visible(&why)) },
                Ok(would) => {
                    @if would.is_empty() { p { "Nothing would run again." } }
                    @else {
                        p { "The next replay runs, or may run:" }
                        ul { @for (step, why) in &would { li class="wrap" { strong { (visible(step)) } ": " (visible(why)) } } }
                    }
                    @if shared.answers { (form(shared, id, head, program, found)) }
                    @else { p class="soft" { "This inspector only reads." } }
                }
            }
        }
    }
}

fn form(
    shared: &Shared,
    id: &str,
    head: u64,
    program: &ProgramReport,
    found: &CodeVersion,
) -> Markup {
    let number = found.version.id.to_string();
    html! { form class="operate" method="post" action="/session/version/back" {
        (hidden(shared, id))
        input type="hidden" name="head" value=(head);
        input type="hidden" name="field" value=(program.field);
        input type="hidden" name="version" value=(number.trim_start_matches('v'));
        div { label for="why" { "Reason" }
            input id="why" type="text" name="why" required; }
        (by(shared, "back", None))
        div { button type="submit" { "Roll back to " (number) } }
    } }
}

pub(crate) async fn roll_back(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let (id, by, why) = (field(&sent, "id")?, field(&sent, "by")?, field(&sent, "why")?);
    let (head, program) = (number(&sent, "head")?, field(&sent, "field")?);
    let version = field(&sent, "version")?.parse();
    let version = version.map_err(|_| Problem::bad("The field `version` is not a number."))?;
    shared.sessions.roll_back_code(id, head, program, version, by, why).await?;
    Ok(back(id, "back"))
}
