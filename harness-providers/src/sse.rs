//! Server-sent events.

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use harness::llm::{LlmError, ModelId};
use sseer::errors::EventStreamError;
use sseer::event_stream::EventStream;

use crate::failure::bad_reply;

/// The data of the events of a body.
pub(crate) fn events(
    body: impl Stream<Item = Result<Bytes, LlmError>> + Send,
    model: ModelId,
) -> impl Stream<Item = Result<String, LlmError>> + Send {
    EventStream::new(body).map(move |event| match event {
        Ok(event) => Ok(event.data.to_string()),
        Err(EventStreamError::Transport(error)) => Err(error),
        Err(EventStreamError::Utf8Error(_)) => Err(bad_reply(&model, "an event is not UTF-8")),
    })
}
