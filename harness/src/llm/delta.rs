//! Replies in parts, and the rule that folds the parts into a reply.

use super::{
    Block, LlmError, LlmErrorKind, ModelId, Protocol, Reply, StopReason, ToolCall, ToolCallId,
    ToolName, Turn, Usage,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// A part of a reply, as a model writes it.
///
/// Parts arrive in the order of the blocks. Only tool calls may interleave; an index identifies
/// each. [`Accumulator`] folds the parts into a [`Reply`]. Whether a reply was kept from an earlier request
/// is no part of it: [`Reply::cached`] says so, with the usage of zero that its parts have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A tool call starts.
    CallStart {
        /// Identifies the call within this reply.
        index: u64,
        /// The id of the call.
        id: ToolCallId,
        /// The name of the tool.
        name: ToolName,
    },
    /// More of the arguments of a tool call.
    CallArguments {
        /// The index of the call.
        index: u64,
        /// The next part of the text.
        fragment: String,
    },
    /// The arguments of a tool call are complete.
    CallEnd {
        /// The index of the call.
        index: u64,
    },
    /// Data for one protocol: [`Block::Opaque`].
    Opaque {
        /// The protocol it belongs to.
        protocol: Protocol,
        /// The model that wrote it.
        model: ModelId,
        /// The data.
        data: Value,
    },
    /// The usage so far. Each known kind replaces the earlier value.
    Usage(Usage),
    /// The model that replies, if it is not the one that was asked for.
    Model(ModelId),
    /// The model stopped. This ends every call.
    Stop(StopReason),
    /// The reply starts over, because a call was repeated: discard the earlier parts.
    Restart,
}

impl Delta {
    /// The parts of a complete reply. Folded, they are the reply again.
    pub(crate) fn of(reply: &Reply) -> Vec<Self> {
        let mut parts = Vec::new();
        for (index, block) in (0..).zip(&reply.turn.blocks) {
            match block {
                Block::Text(text) => parts.push(Self::Text(text.clone())),
                Block::Reasoning(text) => parts.push(Self::Reasoning(text.clone())),
                Block::Opaque { protocol, model, data } => parts.push(Self::Opaque {
                    protocol: protocol.clone(),
                    model: model.clone(),
                    data: data.clone(),
                }),
                Block::Call { call, .. } => {
                    let (id, name) = (call.id.clone(), call.name.clone());
                    parts.push(Self::CallStart { index, id, name });
                    if !call.arguments.is_empty() {
                        let fragment = call.arguments.clone();
                        parts.push(Self::CallArguments { index, fragment });
                    }
                    parts.push(Self::CallEnd { index });
                }
            }
        }
        parts.push(Self::Model(reply.model.clone()));
        if reply.usage != Usage::default() {
            parts.push(Self::Usage(reply.usage));
        }
        parts.push(Self::Stop(reply.stop.clone()));
        parts
    }
}

/// Folds the parts of a reply.
///
/// ```
/// use harness::llm::{Accumulator, Delta, ModelId, StopReason};
///
/// let mut parts = Accumulator::new(ModelId::new("ollama", "llama3.2"));
/// parts.push(Delta::Text("hel".into()))?;
/// parts.push(Delta::Text("lo".into()))?;
/// parts.push(Delta::Stop(StopReason::End))?;
/// assert_eq!(parts.finish()?.text().as_deref(), Some("hello"));
/// # Ok::<(), harness::llm::LlmError>(())
/// ```
///
/// Adjacent text is one block, and so is adjacent reasoning. A call has its place where it starts.
/// A reply without a stop reason is not complete.
#[derive(Clone, Debug)]
pub struct Accumulator {
    asked: ModelId,
    model: ModelId,
    blocks: Vec<Block>,
    calls: HashMap<u64, Progress>,
    usage: Usage,
    stop: Option<StopReason>,
}

/// A call that has started.
#[derive(Clone, Copy, Debug)]
struct Progress {
    block: usize,
    ended: bool,
}

impl Accumulator {
    /// Starts a reply of the model `asked`.
    pub fn new(asked: ModelId) -> Self {
        Self {
            model: asked.clone(),
            asked,
            blocks: Vec::new(),
            calls: HashMap::new(),
            usage: Usage::default(),
            stop: None,
        }
    }

    /// The usage so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Folds in a part.
    ///
    /// # Errors
    ///
    /// [`LlmErrorKind::BadReply`] if an index starts twice, if arguments belong to no open call, or
    /// if content follows the stop reason.
    pub fn push(&mut self, delta: Delta) -> Result<(), LlmError> {
        if self.stop.is_some() && delta.is_content() {
            return Err(self.bad("content follows the stop reason"));
        }
        match delta {
            Delta::Text(text) => match self.blocks.last_mut() {
                Some(Block::Text(before)) => before.push_str(&text),
                _ if text.is_empty() => {}
                _ => self.blocks.push(Block::Text(text)),
            },
            Delta::Reasoning(text) => match self.blocks.last_mut() {
                Some(Block::Reasoning(before)) => before.push_str(&text),
                _ if text.is_empty() => {}
                _ => self.blocks.push(Block::Reasoning(text)),
            },
            Delta::CallStart { index, id, name } => {
                let progress = Progress { block: self.blocks.len(), ended: false };
                if self.calls.insert(index, progress).is_some() {
                    return Err(self.bad(&format!("the tool call {index} starts twice")));
                }
                self.blocks.push(ToolCall::new(id, name, "").into());
            }
            Delta::CallArguments { index, fragment } => {
                let block = self.open(index)?.block;
                if let Some(Block::Call { call, .. }) = self.blocks.get_mut(block) {
                    call.arguments.push_str(&fragment);
                }
            }
            Delta::CallEnd { index } => self.open(index)?.ended = true,
            Delta::Opaque { protocol, model, data } => {
                self.blocks.push(Block::Opaque { protocol, model, data });
            }
            Delta::Usage(usage) => self.usage.update(usage),
            Delta::Model(model) => self.model = model,
            Delta::Stop(reason) => {
                self.stop = Some(reason);
                self.calls.values_mut().for_each(|call| call.ended = true);
            }
            Delta::Restart => *self = Self::new(self.asked.clone()),
        }
        Ok(())
    }

    /// The complete reply.
    ///
    /// # Errors
    ///
    /// [`LlmErrorKind::Stream`] if there is no stop reason: the reply ended early.
    pub fn finish(self) -> Result<Reply, LlmError> {
        let Some(stop) = self.stop else {
            return Err(LlmError::new(LlmErrorKind::Stream).with_model(self.asked));
        };
        Ok(Reply::new(Turn::new(self.blocks), stop, self.model).with_usage(self.usage))
    }

    fn open(&mut self, index: u64) -> Result<&mut Progress, LlmError> {
        // Two look-ups, because an error borrows the whole.
        if self.calls.get(&index).is_none_or(|call| call.ended) {
            return Err(self.bad(&format!("the tool call {index} is not open")));
        }
        let Some(call) = self.calls.get_mut(&index) else {
            return Err(LlmError::new(LlmErrorKind::BadReply));
        };
        Ok(call)
    }

    fn bad(&self, what: &str) -> LlmError {
        LlmError::new(LlmErrorKind::BadReply).with_model(self.asked.clone()).with_detail(what)
    }
}

impl Delta {
    fn is_content(&self) -> bool {
        !matches!(self, Self::Usage(_) | Self::Model(_) | Self::Stop(_) | Self::Restart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn folded(deltas: impl IntoIterator<Item = Delta>) -> Result<Reply, LlmError> {
        let mut parts = Accumulator::new(ModelId::new("p", "m"));
        for delta in deltas {
            parts.push(delta)?;
        }
        parts.finish()
    }

    fn start(index: u64) -> Delta {
        Delta::CallStart { index, id: format!("c{index}").into(), name: "t".into() }
    }

    fn more(index: u64, fragment: &str) -> Delta {
        Delta::CallArguments { index, fragment: fragment.into() }
    }

    #[test]
    fn parallel_calls_interleave_and_have_any_index() {
        let far = u64::MAX;
        let reply = folded([
            Delta::Text("look".into()),
            start(far),
            start(0),
            more(0, "{\"a\""),
            more(far, "{"),
            more(0, ":1}"),
            Delta::CallEnd { index: 0 },
            more(far, "}"),
            Delta::Text("now".into()),
            Delta::Stop(StopReason::ToolCalls),
        ])
        .unwrap();
        let expected = Turn::new([
            "look".into(),
            ToolCall::new(format!("c{far}"), "t", "{}").into(),
            ToolCall::new("c0", "t", "{\"a\":1}").into(),
            "now".into(),
        ]);
        assert_eq!(reply.turn, expected);
    }

    #[test]
    fn a_reply_without_a_stop_reason_ended_early() {
        let error = folded([Delta::Text("hel".into())]).unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream);
    }

    #[test]
    fn parts_that_belong_nowhere_are_a_bad_reply() {
        let stop = || Delta::Stop(StopReason::End);
        let bad = [
            vec![start(1), start(1), stop()],
            vec![more(1, "{}"), stop()],
            vec![start(1), Delta::CallEnd { index: 1 }, more(1, "{}"), stop()],
            vec![Delta::CallEnd { index: 1 }, stop()],
            vec![stop(), Delta::Text("more".into())],
        ];
        for deltas in bad {
            assert_eq!(folded(deltas).unwrap_err().kind(), LlmErrorKind::BadReply);
        }
    }

    #[test]
    fn usage_is_replaced_by_kind_and_may_follow_the_stop_reason() {
        let input = Usage { input: Some(7), output: Some(1), ..Usage::default() };
        let output = Usage { output: Some(9), ..Usage::default() };
        let reply =
            folded([Delta::Usage(input), Delta::Stop(StopReason::End), Delta::Usage(output)]);
        assert_eq!(reply.unwrap().usage, Usage::tokens(7, 9));
    }

    #[test]
    fn a_restart_discards_everything_before_it() {
        let reply = folded([
            Delta::Text("half".into()),
            start(1),
            Delta::Usage(Usage::tokens(1, 1)),
            Delta::Restart,
            Delta::Text("whole".into()),
            Delta::Stop(StopReason::End),
        ])
        .unwrap();
        assert_eq!(reply, Reply::new("whole", StopReason::End, ModelId::new("p", "m")));
    }

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let block = prop_oneof![
            "[a-z]{1,4}".prop_map(Block::Text),
            "[a-z]{1,4}".prop_map(Block::Reasoning),
            "[a-z{}\":]{0,6}".prop_map(|text| ToolCall::new("c", "t", text).into()),
            any::<u8>().prop_map(|n| Block::Opaque {
                protocol: "x".into(),
                model: ModelId::new("p", "m"),
                data: json!(n),
            }),
        ];
        // Adjacent text is one block, and so is adjacent reasoning.
        prop::collection::vec(block, 0..8).prop_map(|mut blocks| {
            blocks.dedup_by(|a, b| {
                matches!(
                    (&*a, &*b),
                    (Block::Text(_), Block::Text(_)) | (Block::Reasoning(_), Block::Reasoning(_))
                )
            });
            blocks
        })
    }

    proptest! {
        #[test]
        fn the_parts_of_a_reply_fold_to_it(blocks in blocks(), input in any::<Option<u64>>()) {
            let usage = Usage { input, ..Usage::default() };
            let reply = Reply::new(Turn::new(blocks), StopReason::End, ModelId::new("q", "n"))
                .with_usage(usage);
            prop_assert_eq!(folded(Delta::of(&reply)).unwrap(), reply);
        }
    }
}
