//! From the parts of a protocol to a reply.

use crate::bill::Bill;
use futures_core::Stream;
use futures_util::StreamExt;
use harness::llm::{Accumulator, CallCx, Delta, LlmError, ModelId, Reply, ToolCallId};
use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How long a body may take to end after its terminal event. It is mostly there already.
const TO_END: Duration = Duration::from_millis(250);

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
    let mut events = pin!(events.fuse());
    let mut parts = Accumulator::new(asked);
    let mut ids = Ids::default();
    while !decoder.is_done() {
        let Some(event) = events.next().await else { break };
        for delta in decoder.event(&event?)?.into_iter().filter(|delta| !is_empty(delta)) {
            let delta = ids.own(delta);
            bill.note(&delta);
            cx.emit(&delta);
            parts.push(delta)?;
        }
    }
    // A connection is used again only if the body was read to its end.
    let _ = timeout(TO_END, async { while let Some(Ok(_)) = events.next().await {} }).await;
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

/// The ids of a reply's calls. Some servers give two calls one id, and then an outcome has no call of its
/// own.
#[derive(Default)]
struct Ids(HashSet<ToolCallId>);

impl Ids {
    /// The part, with an id of its own if it starts a call.
    fn own(&mut self, mut delta: Delta) -> Delta {
        if let Delta::CallStart { id, .. } = &mut delta {
            let given = id.clone();
            let mut count = 2_u64;
            while !self.0.insert(id.clone()) {
                *id = ToolCallId::new(format!("{given}_{count}"));
                count += 1;
            }
        }
        delta
    }
}

/// Folds a reply that came in one piece.
pub(crate) fn whole(
    asked: ModelId,
    deltas: Vec<Delta>,
    bill: &mut Bill<'_>,
) -> Result<Reply, LlmError> {
    let mut parts = Accumulator::new(asked);
    let mut ids = Ids::default();
    for delta in deltas {
        let delta = ids.own(delta);
        bill.note(&delta);
        parts.push(delta)?;
    }
    parts.finish()
}

#[cfg(test)]
pub(crate) mod check;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::Prices;
    use harness::llm::StopReason;

    #[test]
    fn calls_of_one_reply_have_ids_of_their_own() {
        let call = |index, id: &str| Delta::CallStart { index, id: id.into(), name: "t".into() };
        let starts = [call(0, "a"), call(1, "a"), call(2, "a_2"), call(3, "a")];
        let deltas = starts.into_iter().chain([Delta::Stop(StopReason::ToolCalls)]).collect();
        let (cx, prices) = (CallCx::detached(), Prices::new());
        let mut bill = Bill::new(&cx, &prices, "m");
        let reply = whole(ModelId::new("p", "m"), deltas, &mut bill).unwrap();
        let ids: Vec<_> = reply.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a_2", "a_2_2", "a_3"]);
    }
}
