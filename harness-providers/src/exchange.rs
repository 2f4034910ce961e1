//! From the parts of a protocol to a reply.

use crate::bill::Bill;
use futures_core::Stream;
use futures_util::StreamExt;
use harness::llm::{Accumulator, CallCx, Delta, LlmError, ModelId, Reply};
use std::pin::pin;

/// Decodes the events of one reply.
pub(crate) trait Decode {
    /// The parts that an event has.
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError>;

    /// Whether the terminal event has arrived.
    fn is_done(&self) -> bool;
}

/// Decodes and folds a reply. Emits its parts, and charges its usage.
pub(crate) async fn reply(
    asked: ModelId,
    events: impl Stream<Item = Result<String, LlmError>> + Send,
    mut decoder: impl Decode,
    cx: &CallCx,
    bill: &mut Bill<'_>,
) -> Result<Reply, LlmError> {
    let mut events = pin!(events);
    let mut parts = Accumulator::new(asked);
    while !decoder.is_done() {
        let Some(event) = events.next().await else { break };
        for delta in decoder.event(&event?)?.into_iter().filter(|delta| !is_empty(delta)) {
            bill.note(&delta);
            cx.emit(&delta);
            parts.push(delta)?;
        }
    }
    parts.finish()
}

/// Whether a part adds nothing.
fn is_empty(delta: &Delta) -> bool {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) => text.is_empty(),
        Delta::CallArguments { fragment, .. } => fragment.is_empty(),
        _ => false,
    }
}

/// Folds a reply that came in one piece.
pub(crate) fn whole(
    asked: ModelId,
    deltas: Vec<Delta>,
    bill: &mut Bill<'_>,
) -> Result<Reply, LlmError> {
    let mut parts = Accumulator::new(asked);
    for delta in deltas {
        bill.note(&delta);
        parts.push(delta)?;
    }
    parts.finish()
}
