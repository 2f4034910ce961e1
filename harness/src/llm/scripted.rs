//! A scripted model, for tests and for examples without a network.

use super::{
    Advice, Block, CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request, Spend,
    StopReason, ToolCall, ToolName, Turn, Usage,
};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod seen;
mod stream;

pub use seen::Seen;

/// A model that replies from a script. Clones share the script and the recorded requests.
///
/// Each request takes the next line and is recorded. After the last line, a request fails with an
/// error that is not retryable. [Pushing](Self::push) a line continues the script.
///
/// ```
/// use harness::llm::scripted::{call, say};
/// use harness::llm::{CallCx, Llm, Request, Scripted, Transcript, user};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = Scripted::new([call("search", json!({"query": "rust"})), say("found it")]);
///
/// let talk = Transcript::from_iter([user("find rust")]);
/// let reply = model.complete(Request::new(talk.sealed()?), &CallCx::detached()).await?;
/// assert_eq!(reply.calls().next().map(|call| call.id.as_str()), Some("call-1-0"));
/// assert_eq!(model.seen()[0].transcript, talk);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The id of a tool call contains the index of its turn and its call in the transcript. So ids are
/// the same in every run and unique within a transcript. Deadlines are ignored.
///
/// A call that is listened to is streamed: text in words, arguments in halves. The model can do
/// everything but structured output, which [`with_caps`](Self::with_caps) changes.
#[derive(Clone)]
pub struct Scripted {
    id: ModelId,
    caps: Caps,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

enum Script {
    Lines(Mutex<VecDeque<Line>>),
    Function(Box<dyn Fn(Request<'_>) -> Line + Send + Sync>),
}

/// A line of a script: a reply or an error, and its usage.
///
/// [`say`], [`call`] and [`fail`] create lines. Texts, turns, replies and errors convert into
/// lines.
///
/// ```
/// use harness::llm::StopReason;
/// use harness::llm::scripted::say;
/// use serde_json::json;
///
/// let two_calls = say("let me look").and_call("search", json!({})).and_call("now", json!({}));
/// let cut = say("the answer i").stop(StopReason::MaxTokens);
/// # let _ = (two_calls, cut);
/// ```
#[derive(Debug)]
#[must_use = "a line has no effect outside a script"]
pub struct Line {
    draft: Result<Draft, LlmError>,
    spend: Spend,
}

#[derive(Debug, Default)]
struct Draft {
    pieces: Vec<Piece>,
    stop: Option<StopReason>,
    model: Option<ModelId>,
}

#[derive(Debug)]
enum Piece {
    Block(Block),
    /// A call. It gets its id when the line is used.
    Call(ToolName, Value),
}

/// A reply with text.
pub fn say(text: impl Into<String>) -> Line {
    Line::from(Draft::default()).and_say(text)
}

/// A reply with `value` as JSON text, for structured output.
pub fn say_json(value: &Value) -> Line {
    say(value.to_string())
}

/// A reply that calls a tool.
pub fn call(name: impl Into<ToolName>, arguments: Value) -> Line {
    Line::from(Draft::default()).and_call(name, arguments)
}

/// A model call that fails.
pub fn fail(error: LlmError) -> Line {
    Line { draft: Err(error), spend: Spend::default() }
}

impl Line {
    /// Adds text to the same turn. A failure is unchanged.
    pub fn and_say(self, text: impl Into<String>) -> Self {
        self.and(Piece::Block(Block::Text(text.into())))
    }

    /// Adds a tool call to the same turn. A failure is unchanged.
    pub fn and_call(self, name: impl Into<ToolName>, arguments: Value) -> Self {
        self.and(Piece::Call(name.into(), arguments))
    }

    /// Sets the stop reason. The default is `ToolCalls` or `End`. A failure is unchanged.
    pub fn stop(mut self, reason: StopReason) -> Self {
        if let Ok(draft) = &mut self.draft {
            draft.stop = Some(reason);
        }
        self
    }

    /// Sets the usage of the exchange, for a reply or a failure.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.spend.usage = usage;
        self
    }

    /// Sets the cost of the exchange, in millionths of a US dollar.
    pub fn cost_micros(mut self, micros: u64) -> Self {
        self.spend.cost_micros = Some(micros);
        self
    }

    fn and(mut self, piece: Piece) -> Self {
        if let Ok(draft) = &mut self.draft {
            draft.pieces.push(piece);
        }
        self
    }

    /// Makes the reply, as the entry `entry` of the transcript.
    fn read(self, entry: usize, asked: &ModelId) -> Result<Reply, LlmError> {
        let draft = self.draft?;
        let pieces = draft.pieces.into_iter().enumerate();
        let turn = Turn::new(pieces.map(|(at, piece)| match piece {
            Piece::Block(block) => block,
            Piece::Call(name, arguments) => {
                ToolCall::new(format!("call-{entry}-{at}"), name, arguments.to_string()).into()
            }
        }));
        let stop = draft.stop.unwrap_or(match turn.calls().next() {
            Some(_) => StopReason::ToolCalls,
            None => StopReason::End,
        });
        let model = draft.model.unwrap_or_else(|| asked.clone());
        Ok(Reply::new(turn, stop, model).with_usage(self.spend.usage))
    }
}

impl From<Draft> for Line {
    fn from(draft: Draft) -> Self {
        Self { draft: Ok(draft), spend: Spend::default() }
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        say(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        say(text)
    }
}

impl From<LlmError> for Line {
    fn from(error: LlmError) -> Self {
        fail(error)
    }
}

/// The blocks are kept, with the ids and the text of their calls.
impl From<Turn> for Line {
    fn from(turn: Turn) -> Self {
        Self::from(Draft {
            pieces: turn.blocks.into_iter().map(Piece::Block).collect(),
            stop: turn.stop,
            model: turn.model,
        })
    }
}

/// The reply is kept.
impl From<Reply> for Line {
    fn from(reply: Reply) -> Self {
        let usage = reply.usage;
        let mut turn = reply.turn;
        turn.stop = Some(reply.stop);
        turn.model = Some(reply.model);
        Self::from(turn).usage(usage)
    }
}

impl Scripted {
    /// Creates a model that replies with these lines in order, one per request.
    ///
    /// ```
    /// use harness::llm::scripted::{Scripted, fail};
    /// use harness::llm::{LlmError, LlmErrorKind};
    ///
    /// let texts = Scripted::new(["hello", "bye"]);
    /// let fails_once = Scripted::new([fail(LlmError::new(LlmErrorKind::Overloaded)), "hello".into()]);
    /// # let _ = (texts, fails_once);
    /// ```
    pub fn new(lines: impl IntoIterator<Item = impl Into<Line>>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self::of(Script::Lines(Mutex::new(lines)))
    }

    /// Creates a model that computes its replies.
    ///
    /// ```
    /// use harness::llm::Scripted;
    ///
    /// let counts = Scripted::from_fn(|request| format!("{} entries", request.transcript.len()));
    /// # let _ = counts;
    /// ```
    pub fn from_fn<L: Into<Line>>(
        function: impl Fn(Request<'_>) -> L + Send + Sync + 'static,
    ) -> Self {
        Self::of(Script::Function(Box::new(move |request| function(request).into())))
    }

    /// Sets the id of the model. The default is `scripted/script`.
    #[must_use]
    pub fn with_id(mut self, id: ModelId) -> Self {
        self.id = id;
        self
    }

    /// Sets what the model can do.
    ///
    /// ```
    /// use harness::llm::{Caps, Llm, Scripted};
    ///
    /// let model = Scripted::new(["{}"]).with_caps(Caps::default().structured_output(true));
    /// assert!(model.caps().structured_output);
    /// ```
    #[must_use]
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Appends a line to the script. Has no effect on a model that computes its replies.
    pub fn push(&self, line: impl Into<Line>) {
        if let Script::Lines(lines) = &*self.script {
            locked(lines).push_back(line.into());
        }
    }

    /// The requests so far, in order, including those that failed.
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.seen).clone()
    }

    fn of(script: Script) -> Self {
        Self {
            id: ModelId::new("scripted", "script"),
            caps: Caps::default()
                .streaming(true)
                .tools(true)
                .tool_choice(true)
                .parallel_calls(true)
                .images(true)
                .documents(true)
                .reasoning(true),
            script: Arc::new(script),
            seen: Arc::default(),
        }
    }

    /// The next line, or `None` after the last one.
    fn next(&self, request: Request<'_>) -> Option<Line> {
        match &*self.script {
            Script::Lines(lines) => locked(lines).pop_front(),
            Script::Function(function) => Some(function(request)),
        }
    }
}

#[async_trait]
impl Llm for Scripted {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let seen = Seen::new(request, cx);
        let number = {
            let mut all = locked(&self.seen);
            all.push(seen);
            all.len()
        };
        let Some(line) = self.next(request) else {
            return Err(LlmError::new(LlmErrorKind::Unavailable)
                .with_model(self.id.clone())
                .with_detail(format!("the script has no line for request {number}"))
                .with_remedy("add one to `Scripted::new` or with `Scripted::push`")
                .with_advice(Advice::give_up()));
        };
        cx.charge(&line.spend);
        let reply = line.read(request.transcript.len(), &self.id)?;
        if self.caps.streaming && cx.is_listened_to() {
            for delta in stream::parts(&reply) {
                cx.emit(&delta);
                tokio::task::yield_now().await;
            }
        }
        Ok(reply)
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut show = f.debug_struct("Scripted");
        show.field("id", &self.id);
        if let Script::Lines(lines) = &*self.script {
            show.field("left", &locked(lines).len());
        }
        show.field("seen", &locked(&self.seen).len()).finish()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
