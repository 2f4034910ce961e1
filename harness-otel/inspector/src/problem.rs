//! What a user sees when something is refused or fails.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use harness::AnswerError;
use harness::inspect::SessionsError;
use harness::inspect::report::visible;
use harness::store::StoreError;
use maud::html;

use crate::page::plain;

/// A request that was not done.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    why: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, title: &'static str, why: impl Into<String>) -> Self {
        Self { status, title, why: why.into() }
    }

    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Not understood", why)
    }
}

impl From<SessionsError> for Problem {
    fn from(error: SessionsError) -> Self {
        let (status, title) = match &error {
            error if error.is_not_found() => (StatusCode::NOT_FOUND, "No such session"),
            error if error.is_no_such_entry() => (StatusCode::NOT_FOUND, "No such entry"),
            error if error.is_pruned() => (StatusCode::GONE, "The entry was pruned"),
            error if error.is_invalid_session_id() => (StatusCode::BAD_REQUEST, "Not a session"),
            error if error.answer_error().is_some_and(AnswerError::is_conflict) => {
                (StatusCode::CONFLICT, "Another answer was first")
            }
            error if error.answer_error().is_some() => {
                (StatusCode::CONFLICT, "The answer was not recorded")
            }
            error if error.is_stale() => (StatusCode::CONFLICT, "The session has changed"),
            error if error.is_busy() || error.is_not_at_rest() || error.is_exists() => {
                (StatusCode::CONFLICT, "Not possible now")
            }
            error if error.is_not_a_boundary() || error.is_bad_edit() => {
                (StatusCode::UNPROCESSABLE_ENTITY, "Refused")
            }
            error if error.is_damaged() => {
                (StatusCode::INTERNAL_SERVER_ERROR, "The session is damaged")
            }
            _ => (StatusCode::SERVICE_UNAVAILABLE, "The store does not answer"),
        };
        let recorded = error.answer_error().and_then(AnswerError::recorded_answer);
        let recorded = recorded.map(|it| format!(" The answer that counts: {it}"));
        let next = match error.store_error() {
            Some(failed) if failed.is_ambiguous() => {
                " Whether it was done is not known: look at the session before you try again."
            }
            Some(StoreError::Unavailable { .. }) => " Nothing was changed. Try again in a moment.",
            _ => "",
        };
        Self::new(status, title, format!("{error}.{}{next}", recorded.unwrap_or_default()))
    }
}

impl From<StoreError> for Problem {
    /// Of what only reads.
    fn from(error: StoreError) -> Self {
        let why = format!("{error}. Try again in a moment.");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "The store does not answer", why)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = html! {
            header class="title" { h1 { (self.title) } }
            section class="panel" {
                p class="wrap" role="alert" { (visible(&self.why)) }
                p { a href="/" { "All sessions" } }
            }
        };
        let mut response = (self.status, plain(self.title, body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
        }
        response
    }
}

pub(crate) async fn no_such_page() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "No such page",
        "The address is not one of this inspector's.",
    )
}
