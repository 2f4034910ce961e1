//! What the forms do.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use harness::{AnswerError, Answers, Seq};
use serde_json::Value;

use crate::Shared;
use crate::guard::is_same;
use crate::problem::Problem;
use crate::query::with;
use crate::read;
use crate::session::{Unread, rendered};

/// The fields of a form.
pub(crate) type Sent = HashMap<String, String>;

/// Checks that writing is allowed.
pub(crate) fn writes(shared: &Shared) -> Result<(), Problem> {
    if shared.answers {
        return Ok(());
    }
    let why = "This inspector only reads. Start it with answers allowed.";
    Err(Problem::new(StatusCode::FORBIDDEN, "Read-only", why))
}

/// Checks that writing is allowed, and that the form is one of this inspector's.
pub(crate) fn permit(shared: &Shared, sent: &Sent) -> Result<(), Problem> {
    writes(shared)?;
    let token = sent.get("token").map(String::as_str).unwrap_or_default();
    if !is_same(token, &shared.form_token) {
        let why =
            "The form is not of this inspector, or of an earlier start of it. Load the page again.";
        return Err(Problem::new(StatusCode::FORBIDDEN, "Refused", why));
    }
    Ok(())
}

pub(crate) fn field<'s>(sent: &'s Sent, name: &str) -> Result<&'s str, Problem> {
    let found = sent.get(name).map(|it| it.trim()).filter(|it| !it.is_empty());
    found.ok_or_else(|| Problem::bad(format!("The field `{name}` is empty.")))
}

pub(crate) fn number(sent: &Sent, name: &str) -> Result<Seq, Problem> {
    let number = field(sent, name)?.parse();
    number.map(Seq).map_err(|_| Problem::bad(format!("The field `{name}` is not a number.")))
}

fn json(sent: &Sent, name: &str) -> Result<Value, Problem> {
    let value = serde_json::from_str(field(sent, name)?);
    value.map_err(|error| Problem::bad(format!("The field `{name}` is not JSON: {error}.")))
}

pub(crate) fn back(id: &str, done: &str) -> Response {
    let to = with("/session", &[("id", id), ("done", done)]);
    (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()
}

pub(crate) async fn answer(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let (id, interrupt, by) =
        (field(&sent, "id")?, field(&sent, "interrupt")?, field(&sent, "by")?);
    let report = shared.sessions.report(id).await?;
    let mut asked = report.questions.iter().rev().map(|asked| &asked.interrupt);
    let Some(asked) = asked.find(|asked| asked.id.to_string() == interrupt) else {
        let why = "The session does not ask this question. Load its page again.";
        return Err(Problem::new(StatusCode::CONFLICT, "The page is out of date", why));
    };
    let again = |why: &str| {
        let unread = Unread { interrupt, sent: &sent, why };
        let page = rendered(&shared, &report, None, Some(&unread));
        Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
    };
    let value = match read::answer(&asked.answer_schema, &sent) {
        Ok(value) => value,
        Err(why) => return again(&why),
    };
    let answers = Answers::json(asked.id.clone(), value).by(by);
    match shared.sessions.answer_json(id, answers).await {
        Ok(_) => Ok(back(id, "answered")),
        Err(error) if error.answer_error().is_some_and(AnswerError::is_wrong_answer) => {
            again(&error.to_string())
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn stop(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let id = field(&sent, "id")?;
    let held = shared.sessions.stop(id).await?;
    Ok(back(id, if held { "stopping" } else { "idle" }))
}

pub(crate) async fn fork(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let to = field(&sent, "to")?;
    shared.sessions.fork(field(&sent, "id")?, number(&sent, "seq")?, to).await?;
    Ok(back(to, "forked"))
}

pub(crate) async fn input(
    State(shared): State<Arc<Shared>>,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    permit(&shared, &sent)?;
    let id = field(&sent, "id")?;
    shared.sessions.enqueue_json(id, json(&sent, "update")?).await?;
    Ok(back(id, "queued"))
}
