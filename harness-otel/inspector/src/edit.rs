//! Correcting a field of a state, with its present value before one's eyes.

use std::sync::Arc;

use axum::Form;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use harness::inspect::report::visible;
use harness::state::{Op, Segment};
use maud::html;
use serde::Deserialize;
use serde_json::Value;

use crate::Shared;
use crate::act::{Sent, back, field, number, permit, writes};
use crate::page::{Tab, page};
use crate::problem::Problem;
use crate::query;
use crate::session::{by, hidden};

/// The longest value that a form has, in bytes: what is sent has a limit, too.
const MOST: usize = 500_000;

#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    id: String,
    field: String,
}

/// What the form has.
struct Filled<'f> {
    id: &'f str,
    field: &'f str,
    head: &'f str,
    value: &'f str,
    why: &'f str,
    sent: Option<&'f Sent>,
    /// What there is to say of the value.
    problem: Option<&'f str>,
}

pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Query(Which { id, field }): Query<Which>,
) -> Result<Html<String>, Problem> {
    writes(&shared)?;
    // In this order: a state that is newer than the head makes the form stale, and not wrong.
    let head = shared.sessions.status(&id).await?.head.to_string();
    let state = shared.sessions.state(&id).await?;
    let Some(value) = state.get(&field) else {
        let why = "The state of the session has no such field.";
        return Err(Problem::new(StatusCode::NOT_FOUND, "No such field", why));
    };
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let (value, problem) = match text.len() {
        0..=MOST => (&*text, None),
        bytes => ("", Some(format!("The present value is too long for a form: {bytes} bytes."))),
    };
    let (sent, problem) = (None, problem.as_deref());
    let filled = Filled { id: &id, field: &field, head: &head, value, why: "", sent, problem };
    Ok(rendered(&shared, &filled))
}

fn rendered(shared: &Shared, filled: &Filled<'_>) -> Html<String> {
    let Filled { id, field, head, value, why, sent, problem } = *filled;
    let rows = value.lines().count().clamp(4, 28);
    let title = format!("Correct {field}");
    let body = html! {
        header class="title" {
            div {
                p class="lead" { a href=(query::session(id)) { bdi { (visible(id)) } } }
                h1 { "Correct " code { (visible(field)) } }
            }
        }
        section class="panel" aria-label="Correction" {
            p class="soft" { "The value as of entry " (head) ". If the session changes before you are done, \
                the correction is refused, and nothing is lost." }
            @if let Some(problem) = problem { p class="notice bad" role="alert" { (visible(problem)) } }
            form class="operate" method="post" action="/session/edit" {
                (hidden(shared, id))
                input type="hidden" name="head" value=(head);
                input type="hidden" name="field" value=(field);
                div { label for="value" { "New value, as JSON" }
                    textarea id="value" name="value" rows=(rows) required spellcheck="false" { (value) } }
                div { label for="why" { "Reason, for the log" }
                    input id="why" type="text" name="why" value=(why) required; }
                (by(shared, "edit", sent))
                div class="row" {
                    button type="submit" { "Correct" }
                    a class="button quiet" href=(query::session(id)) { "Cancel" }
                }
            }
        }
    };
    page(shared, &visible(&title), Tab::Sessions, body)
}

pub(crate) async fn edit(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let (id, by, why) = (field(&sent, "id")?, field(&sent, "by")?, field(&sent, "why")?);
    let (name, head) = (field(&sent, "field")?, number(&sent, "head")?);
    let given = field(&sent, "value")?;
    let again = |problem: &str| {
        let (head, sent, problem) = (head.to_string(), Some(&sent), Some(problem));
        let filled = Filled { id, field: name, head: &head, value: given, why, sent, problem };
        Ok((StatusCode::UNPROCESSABLE_ENTITY, rendered(&shared, &filled)).into_response())
    };
    let value: Value = match serde_json::from_str(given) {
        Ok(value) => value,
        Err(error) => return again(&format!("The value is not JSON: {error}.")),
    };
    let path = [Segment::Key(name.to_owned().into())].into_iter().collect();
    let ops = vec![Op::Set { path, value }];
    match shared.sessions.edit_json(id, head, ops, by, why).await {
        Ok(_) => Ok(back(id, "edited")),
        Err(error) if error.is_bad_edit() => again(&error.to_string()),
        Err(error) => Err(error.into()),
    }
}
