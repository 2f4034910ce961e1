//! The right adapter with one thing made wrong.

use super::Bug::{self, *};
use harness::async_trait;
use harness::llm::{
    Block, CallCx, Caps, Content, Delta, Effort, Entry, Llm, LlmError, LlmErrorKind, Message,
    ModelId, Options, Part, Reply, Request, Spend, StopReason, ToolCall, ToolChoice, ToolOutcome,
    Transcript, Turn, Usage, user,
};
use serde_json::json;
use std::sync::{Arc, Mutex};

pub(super) struct Wrong {
    pub(super) bug: Bug,
    pub(super) right: Arc<dyn Llm>,
    pub(super) key: String,
    /// What a wrong adapter keeps from one call to the next.
    pub(super) last: Mutex<Usage>,
}

#[async_trait]
impl Llm for Wrong {
    fn id(&self) -> ModelId {
        self.right.id()
    }

    fn caps(&self) -> Caps {
        self.right.caps()
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let talk = self.talk(&request);
        let options = self.options(&request);
        let mut request = request;
        request.transcript = talk.sealed().unwrap();
        request.options = options.as_ref();
        self.change(&mut request)?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let context = self.context(cx, &heard);
        let result = match self.bug {
            RunsOnWhenDropped => {
                let (right, talk, context) = (self.right.clone(), talk.clone(), context.clone());
                let run = async move {
                    right.complete(Request::new(talk.sealed().unwrap()), &context).await
                };
                tokio::spawn(run).await.unwrap()
            }
            _ => self.right.complete(request, &context).await,
        };
        match result {
            Ok(reply) => self.reply(reply, cx, &heard),
            Err(error) => self.error(error, cx, &heard),
        }
    }
}

impl Wrong {
    fn context(&self, cx: &CallCx, heard: &Arc<Mutex<Vec<Delta>>>) -> CallCx {
        let mut context = CallCx::detached();
        if let (Some(deadline), false) = (cx.deadline(), self.bug == IgnoresTheDeadline) {
            context = context.with_deadline(deadline);
        }
        if self.bug != ChargesNothing {
            context = context.with_meter(Arc::new(Meter(cx.clone())));
        }
        if cx.is_listened_to() {
            let (outer, heard, bug) = (cx.clone(), heard.clone(), self.bug);
            context = context.with_listener(move |delta| {
                if bug != EmitsAtTheEnd {
                    outer.emit(delta);
                }
                heard.lock().unwrap().push(delta.clone());
            });
        }
        context
    }

    fn change(&self, request: &mut Request<'_>) -> Result<(), LlmError> {
        match self.bug {
            DropsTheSeed => request.seed = None,
            DropsTheSchema => request.schema = None,
            DropsTheSystemPrompt => request.system = None,
            IgnoresTheEffort => request.effort = request.effort.map(|_| Effort::Medium),
            IgnoresTheToolChoice => request.tool_choice = ToolChoice::Auto,
            RefusesChoiceAlone
                if request.tools.is_empty() && request.tool_choice != ToolChoice::Auto =>
            {
                return Err(LlmError::new(LlmErrorKind::Unsupported));
            }
            RefusesReasoningAlone if says_nothing(request) => {
                return Err(LlmError::new(LlmErrorKind::InvalidRequest));
            }
            RefusesMarks if !request.cache.is_empty() => {
                return Err(LlmError::new(LlmErrorKind::Unsupported));
            }
            _ => {}
        }
        Ok(())
    }

    fn options(&self, request: &Request<'_>) -> Option<Options> {
        let options = request.options?;
        let other = options.of("another-protocol").unwrap();
        match (self.bug, other) {
            (TakesOptionsOfOthers, Some(other)) => {
                Some(Options::new().with("openai-chat", json!(other)))
            }
            _ => Some(options.clone()),
        }
    }

    fn talk(&self, request: &Request<'_>) -> Transcript {
        let mut talk = Transcript::new();
        for entry in request.transcript.entries() {
            match entry {
                Entry::User(content) => {
                    let message = user(self.content(content));
                    if self.bug == SendsTwice {
                        talk.push(message.clone());
                    }
                    talk.push(message);
                }
                Entry::Assistant(turn) => {
                    let mut turn = turn.clone();
                    turn.blocks = turn.blocks.into_iter().map(|block| self.block(block)).collect();
                    talk.push(Message::Assistant(turn));
                }
                _ => {}
            }
        }
        talk
    }

    fn content(&self, content: &Content) -> Content {
        let keep = |part: &&Part| match part {
            Part::Image(_) | Part::Document(_) => self.bug != DropsImages,
            _ => true,
        };
        Content::new(content.iter().filter(keep).cloned())
    }

    fn block(&self, block: Block) -> Block {
        match (self.bug, block) {
            (SendsReasoningAsText, Block::Reasoning(text)) => Block::Text(text),
            (SendsOpaqueToAll, Block::Opaque { data, .. }) => {
                Block::Opaque { protocol: "openai-responses".into(), model: self.id(), data }
            }
            (ForgetsOpaque, Block::Opaque { .. }) => Block::Text("so ".into()),
            (SendsOutcomesAsOk, Block::Call { call, outcome: Some(_) }) => {
                Block::Call { call, outcome: Some(ToolOutcome::ok("ok")) }
            }
            (_, block) => block,
        }
    }

    fn reply(
        &self,
        mut reply: Reply,
        cx: &CallCx,
        heard: &Mutex<Vec<Delta>>,
    ) -> Result<Reply, LlmError> {
        let is = |reason: StopReason| reply.stop == reason;
        match self.bug {
            DropsUsage => reply.usage = Usage::default(),
            DropsReasoningTokens => reply.usage.reasoning = None,
            ChargesTwice => cx.charge(&Spend::from(reply.usage)),
            SharesUsage => {
                let mut last = self.last.lock().unwrap();
                cx.charge(&Spend::from(*last));
                *last = reply.usage;
            }
            EmitsAtTheEnd => heard.lock().unwrap().iter().for_each(|delta| cx.emit(delta)),
            AddsToTheReply => reply.turn.blocks.push("more".into()),
            TrimsText => change_text(&mut reply.turn, |text| text.trim().to_owned()),
            BreaksCharacters => {
                change_text(&mut reply.turn, |text| text.replace('\u{fc}', "\u{fffd}"));
            }
            ParsesArguments => change_calls(&mut reply.turn, |call| {
                call.arguments = call.json().unwrap_or_default().to_string();
            }),
            RepeatsIds => change_calls(&mut reply.turn, |call| call.id = "call".into()),
            KeepsOneCall => {
                let mut calls = 0;
                reply.turn.blocks.retain(|block| {
                    calls += usize::from(matches!(block, Block::Call { .. }));
                    calls <= 1
                });
            }
            RefusesLargeIndexes if heard_call(heard) => {
                return Err(LlmError::new(LlmErrorKind::BadReply));
            }
            SkipsText => reply.turn.blocks.retain(|block| !matches!(block, Block::Text(_))),
            EmptyIsAnError if reply.turn.blocks.is_empty() => {
                return Err(LlmError::new(LlmErrorKind::BadReply));
            }
            RefusalIsAnError if is(StopReason::Refusal) => {
                return Err(LlmError::new(LlmErrorKind::InvalidRequest));
            }
            LimitIsAnEnd if is(StopReason::MaxTokens) => reply.stop = StopReason::End,
            FilterIsAnEnd if is(StopReason::ContentFilter) => reply.stop = StopReason::End,
            _ => {}
        }
        Ok(reply)
    }

    fn error(
        &self,
        error: LlmError,
        cx: &CallCx,
        heard: &Mutex<Vec<Delta>>,
    ) -> Result<Reply, LlmError> {
        let kind = error.kind();
        let empty = || Ok(Reply::new("", StopReason::End, self.id()));
        match (self.bug, kind) {
            (TakesHalfReplies, LlmErrorKind::Stream) => empty(),
            (BreaksAreNoReplies, LlmErrorKind::Stream) => {
                Err(LlmError::new(LlmErrorKind::BadReply))
            }
            (TakesAnyBody, LlmErrorKind::BadReply) => empty(),
            (TakesAnySize, LlmErrorKind::BadReply) => empty(),
            (ErrorsAreUnavailable, _) => Err(LlmError::new(LlmErrorKind::Unavailable)),
            (ErrorsInsideAreStreams, _) if !heard.lock().unwrap().is_empty() => {
                Err(LlmError::new(LlmErrorKind::Stream))
            }
            (ForgetsTheWait, LlmErrorKind::RateLimited { .. }) => {
                let kind = LlmErrorKind::RateLimited { retry_after: None };
                Err(LlmError::new(kind).with_model(self.id()))
            }
            (ServersAreFinal, LlmErrorKind::Unavailable) => {
                Err(LlmError::new(LlmErrorKind::InvalidRequest))
            }
            (ShowsTheKey, _) => Err(error.with_detail(format!("the key was {}", self.key))),
            (ChargesWhatIsNotSent, _) => {
                cx.charge(&Spend::default());
                Err(error)
            }
            _ => Err(error),
        }
    }
}

fn says_nothing(request: &Request<'_>) -> bool {
    request.transcript.entries().iter().any(|entry| match entry {
        Entry::Assistant(turn) => turn.text().is_none() && turn.calls().next().is_none(),
        _ => false,
    })
}

fn heard_call(heard: &Mutex<Vec<Delta>>) -> bool {
    heard.lock().unwrap().iter().any(|delta| matches!(delta, Delta::CallStart { .. }))
}

fn change_text(turn: &mut Turn, change: impl Fn(&str) -> String) {
    for block in &mut turn.blocks {
        if let Block::Text(text) = block {
            *text = change(text);
        }
    }
}

fn change_calls(turn: &mut Turn, change: impl Fn(&mut ToolCall)) {
    for block in &mut turn.blocks {
        if let Block::Call { call, .. } = block {
            change(call);
        }
    }
}

/// Charges the meter of the outer call.
struct Meter(CallCx);

impl harness::llm::Meter for Meter {
    fn charge(&self, spend: &Spend) {
        self.0.charge(spend);
    }
}
