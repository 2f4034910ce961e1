//! What the service answers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use harness::inspect::SessionsError;
use harness::prelude::*;
use harness::step::ag_ui::AgUiResume;
use harness::store::SessionStore;
use harness::{RunError, Sessions};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::Notice;
use super::agui::{self, Events};

#[derive(Clone)]
struct Service {
    agent: Agent<(), Notice>,
    sessions: Sessions,
    events: Events,
}

/// The routes.
pub(super) fn service(
    agent: Agent<(), Notice>,
    store: Arc<dyn SessionStore>,
    events: Events,
) -> Router {
    Router::new()
        .route("/sessions/{id}", post(start).get(show))
        .route("/sessions/{id}/events", get(watch))
        .route("/sessions/{id}/resume", post(resume))
        .route("/waiting", get(waiting))
        .with_state(Service { agent, sessions: Sessions::shared(store), events })
}

/// What starts a turn.
#[derive(Deserialize)]
struct Input {
    text: String,
    /// The id of the input: sent again, it starts nothing.
    input: String,
}

/// Leaves an input for a worker.
async fn start(
    Shared(service): Shared<Service>,
    Path(session): Path<String>,
    Json(Input { text, input }): Json<Input>,
) -> Result<impl IntoResponse, Refused> {
    let update = Notice::update().text(text);
    service.agent.enqueue(&session, update).input_id(input).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"threadId": session}))))
}

/// Records answers. A worker resumes the session.
async fn resume(
    Shared(service): Shared<Service>,
    Path(session): Path<String>,
    Json(entries): Json<Vec<AgUiResume>>,
) -> Result<impl IntoResponse, Refused> {
    let given = Answers::from_ag_ui(entries);
    if !given.cancelled.is_empty() {
        return Err(Refused::Cancelled);
    }
    let recorded = service.sessions.answer_json(&session, given.answers).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"open": recorded.open.len()}))))
}

async fn show(
    Shared(service): Shared<Service>,
    Path(session): Path<String>,
) -> Result<Json<Value>, Refused> {
    let status = service.sessions.status(&session).await?;
    let state = service.sessions.state(&session).await?;
    let interrupts: Vec<_> = status.questions.iter().map(harness::Interrupt::to_ag_ui).collect();
    Ok(Json(json!({
        "threadId": session,
        "phase": status.phase,
        "step": status.step,
        "interrupts": interrupts,
        "state": state,
    })))
}

/// Every open question, for a list of what waits for a person.
async fn waiting(Shared(service): Shared<Service>) -> Result<Json<Value>, Refused> {
    let page = service.sessions.pending_interrupts().await?;
    let row = |row: &harness::inspect::SessionInterrupt| json!({"threadId": row.session.as_str(), "interrupt": row.interrupt.to_ag_ui()});
    Ok(Json(page.rows.iter().map(row).collect()))
}

/// The events of a session from now on, until the reader leaves.
async fn watch(
    Shared(service): Shared<Service>,
    Path(session): Path<String>,
) -> Sse<impl Stream<Item = Result<Sent, Infallible>>> {
    let live = service.events.subscribe();
    let events = stream::unfold((live, service.sessions), move |(mut live, sessions)| {
        let session = session.clone();
        async move {
            loop {
                let event = match live.recv().await {
                    Ok(event) if event.session.as_str() == session => event,
                    Ok(_) => continue,
                    // The session itself is in the store.
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return None,
                };
                if let Some(event) = agui::event(&event, &sessions).await {
                    let sent = Sent::default().data(event.to_string());
                    return Some((Ok(sent), (live, sessions)));
                }
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// Why a request was refused. Nothing has changed.
enum Refused {
    Run(RunError),
    Sessions(SessionsError),
    Cancelled,
}

impl From<RunError> for Refused {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<SessionsError> for Refused {
    fn from(error: SessionsError) -> Self {
        Self::Sessions(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Sessions(error) if error.is_not_found() => {
                (StatusCode::NOT_FOUND, error.to_string())
            }
            Self::Sessions(error) if error.answer_error().is_some() => {
                (StatusCode::CONFLICT, error.to_string())
            }
            Self::Sessions(error) if error.is_invalid_session_id() => {
                (StatusCode::BAD_REQUEST, error.to_string())
            }
            Self::Sessions(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            Self::Run(error) if error.is_input_conflict() => {
                (StatusCode::CONFLICT, error.to_string())
            }
            Self::Run(error) if error.is_invalid_session_id() => {
                (StatusCode::BAD_REQUEST, error.to_string())
            }
            Self::Run(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            Self::Cancelled => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "a question needs an answer: send `false` to decline it".to_owned(),
            ),
        };
        (status, Json(json!({"error": why}))).into_response()
    }
}
