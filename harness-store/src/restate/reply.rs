//! What a request to an object says, and what its sender gets.

use harness::SessionId;
use harness::run::RunError;
use restate_sdk::errors::{HandlerError, TerminalError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::sdk::Call;

pub(super) type Reply = Result<Value, HandlerError>;

pub(super) fn id_of(call: &Call) -> Result<SessionId, HandlerError> {
    SessionId::new(&call.key).map_err(|error| refusal(400, error.to_string()))
}

pub(super) fn body<T: DeserializeOwned>(call: &Call) -> Result<T, HandlerError> {
    let bytes = match call.body.is_empty() {
        true => b"{}",
        false => &*call.body,
    };
    serde_json::from_slice(bytes).map_err(|error| {
        // The place in the body, and nothing of it.
        let (name, line, column) = (call.task.name(), error.line(), error.column());
        refusal(400, format!("the body of `{name}` does not fit, at line {line}, column {column}"))
    })
}

pub(super) fn reply(value: &impl Serialize) -> Reply {
    serde_json::to_value(value).map_err(|error| refusal(500, error.to_string()))
}

/// An error that a caller gets, and that the engine does not try again.
pub(super) fn refusal(code: u16, message: impl Into<String>) -> HandlerError {
    TerminalError::new_with_code(code, message).into()
}

pub(super) fn refused(error: &RunError) -> HandlerError {
    let code = match () {
        () if error.is_not_found() => 404,
        () if error.is_invalid_session_id() => 400,
        () => 409,
    };
    refusal(code, words(error))
}

/// An error with its causes.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !words.contains(&said) {
            words += &format!(": {said}");
        }
        cause = error.source();
    }
    words
}
