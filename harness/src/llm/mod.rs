//! Models and tools, independent of vendors.
//!
//! An [`Llm`] answers a [`Request`] with a [`Reply`]. Replies, user input and tool outcomes are
//! [`Message`]s, which are folded into a [`Transcript`]. A request takes a transcript only if it is
//! [`Sealed`]: every tool call has an outcome.
//!
//! ```
//! use harness::llm::scripted::{call, say};
//! use harness::llm::{CallCx, Llm, Request, Scripted, ToolSet, Transcript, tool, user};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Weather { city: String }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let tools = ToolSet::builder()
//!     .with(tool("weather", "Reports the weather", |args: Weather| async move {
//!         Ok(format!("it rains in {}", args.city))
//!     }))
//!     .build()?;
//! let model = Scripted::new([call("weather", json!({"city": "Bergen"})), say("take an umbrella")]);
//!
//! let mut talk = Transcript::from_iter([user("what do I need in Bergen?")]);
//! loop {
//!     let request = Request::new(talk.sealed()?).tools(&tools);
//!     let reply = model.complete(request, &CallCx::detached()).await?;
//!     talk.push(reply.into());
//!     if !talk.has_open_calls() {
//!         break;
//!     }
//!     talk.extend(tools.call_all(talk.open_calls()).await);
//! }
//! assert_eq!(talk.last_text().as_deref(), Some("take an umbrella"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Streaming
//!
//! [`Llm::complete`] is the one way to call a model. If its [`CallCx`] has a listener, the parts of
//! the reply go to it as they arrive; [`Llm::stream`] makes them a stream. [`Accumulator`] is the one
//! rule that folds parts into a reply.
//!
//! # Errors
//!
//! A failed model call returns an [`LlmError`]. Its [`Advice`] states whether a retry can help. A
//! tool call never fails: every result is a [`ToolOutcome`] that is sent to the model. A refusal of
//! the model is a reply with [`StopReason::Refusal`].

mod advice;
mod caps;
mod content;
mod context;
mod delta;
mod entry;
mod error;
mod message;
mod name;
mod options;
mod reply;
mod request;
mod schema;
pub mod scripted;
mod stop;
mod stream;
mod tool;
mod transcript;
mod turn;
mod usage;

pub use advice::Advice;
pub use caps::Caps;
pub use content::{Content, Document, Image, Part};
pub use context::{CallCx, Meter, Tally};
pub use delta::{Accumulator, Delta};
pub use entry::{Edit, Entry};
pub use error::{LlmError, LlmErrorKind, TimeoutPhase};
pub use message::{Message, user};
pub use name::{CallId, ModelId, Protocol, ToolCallId, ToolName};
pub use options::{CacheMark, Effort, Options, ResponseSchema, ToolChoice};
pub use reply::Reply;
pub use request::Request;
#[doc(no_inline)]
pub use scripted::Scripted;
pub use stop::StopReason;
pub use stream::ReplyStream;
pub(crate) use tool::schema as arguments_schema;
pub use tool::{
    BadArguments, EffectClass, FnTool, MissingValue, Tool, ToolCall, ToolCx, ToolError,
    ToolFailure, ToolOutcome, ToolQuestion, ToolSet, ToolSetBuilder, ToolSetError, ToolSpec, tool,
};
pub use transcript::{Changed, EditError, Open, OpenCall, Pushed, RecordError, Sealed, Transcript};
pub use turn::{Block, Turn};
pub use usage::{Spend, Usage};

/// Turns an async function into a tool that a model can call.
///
/// The function's parameters are the arguments, its doc comment is the description for the model, and
/// its name is the name of the tool. A parameter's doc comment describes the argument, and `#[serde(..)]`
/// and `#[schemars(..)]` apply to it. A parameter with `#[inject]`, and a [`Cx`](crate::Cx), comes from the caller:
/// see [`Cx::call_tools`](crate::Cx::call_tools).
///
/// | option | |
/// |---|---|
/// | `read`, `write`, `external`, `destructive` | what a call does to the world: [`EffectClass`]. `external` if nothing is said |
/// | `timeout = Duration::from_secs(30)` | bounds a call |
/// | `name = ".."`, `description = ".."` | instead of the function's |
///
/// The function remains as `NAME::run`, for tests.
///
/// ```
/// use harness::llm::ToolError;
/// use harness::prelude::*;
///
/// /// Finds the orders of a customer.
/// #[tool(read)]
/// async fn find_orders(
///     /// The number of the customer.
///     customer: String,
///     limit: Option<u32>,
/// ) -> Result<String, ToolError> {
///     Ok(format!("{} orders of {customer}", limit.unwrap_or(10)))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let tools = ToolSet::builder().with(find_orders).build()?;
/// assert_eq!(tools.specs()[0].description, "Finds the orders of a customer.");
/// assert_eq!(find_orders::run("c-7".into(), None).await.unwrap(), "10 orders of c-7");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub use harness_macros::tool;

/// The crate that describes the arguments of tools to models.
#[doc(no_inline)]
pub use schemars;

pub(crate) use schema::schema_of;

use async_trait::async_trait;
use std::sync::Arc;

/// A language model.
///
/// It holds no state of a single call, so any number of calls can run concurrently. `Arc<dyn Llm>`
/// and `Box<dyn Llm>` are models too. A wrapper is a model that contains a model:
///
/// ```
/// use harness::llm::{CallCx, Llm, LlmError, ModelId, Reply, Request};
///
/// /// Asks a second model when the first is overloaded.
/// struct Fallback<A, B>(A, B);
///
/// #[async_trait::async_trait]
/// impl<A: Llm, B: Llm> Llm for Fallback<A, B> {
///     fn id(&self) -> ModelId {
///         self.0.id()
///     }
///
///     async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
///         match self.0.complete(request, cx).await {
///             Err(error) if error.is_retryable() => self.1.complete(request, cx).await,
///             done => done,
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Llm: Send + Sync + 'static {
    /// The id of the model.
    fn id(&self) -> ModelId;

    /// What the model can do. By default nothing is known.
    fn caps(&self) -> Caps {
        Caps::default()
    }

    /// Calls the model and waits for the complete reply.
    ///
    /// An implementation charges the meter of `cx` once for every exchange with its provider,
    /// including failures, and stops at the deadline of `cx`. If `cx`
    /// [is listened to](CallCx::is_listened_to), it emits the parts of the reply as they arrive;
    /// [`Reply::collect`] emits and folds them. One that replies in one piece need not: its listener
    /// gets the parts of the reply at the end. A wrapper that passes `cx` on streams what its model
    /// streams.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete reply. [`LlmError::kind`] is the cause, and
    /// [`LlmError::advice`] states whether a retry can help.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError>;

    /// Calls the model and returns the parts of its reply as they arrive.
    ///
    /// This is [`complete`](Self::complete) with a listener, so there is nothing to implement.
    fn stream<'a>(&'a self, request: Request<'a>, cx: &CallCx) -> ReplyStream<'a> {
        ReplyStream::of(self, request, cx)
    }
}

macro_rules! llm_by_pointer {
    ($pointer:ident) => {
        #[async_trait]
        impl<L: Llm + ?Sized> Llm for $pointer<L> {
            fn id(&self) -> ModelId {
                (**self).id()
            }

            fn caps(&self) -> Caps {
                (**self).caps()
            }

            async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
                (**self).complete(request, cx).await
            }

            fn stream<'a>(&'a self, request: Request<'a>, cx: &CallCx) -> ReplyStream<'a> {
                (**self).stream(request, cx)
            }
        }
    };
}

llm_by_pointer!(Arc);
llm_by_pointer!(Box);

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a step: owns its arguments, is `Send`, and awaits a model behind a pointer.
    async fn step(model: Arc<dyn Llm>, talk: Transcript) -> Option<Message> {
        let request = Request::new(talk.sealed().ok()?);
        let reply = model.complete(request, &CallCx::detached()).await.ok()?;
        Some(reply.into())
    }

    #[tokio::test]
    async fn a_pointer_to_a_model_is_a_model() {
        let model: Arc<dyn Llm> = Arc::new(Scripted::new(["a", "b"]));
        let boxed: Box<dyn Llm> = Box::new(model.clone());
        let nested: Arc<dyn Llm> = Arc::new(boxed);
        assert_eq!(nested.id(), model.id());
        let talk = Transcript::from_iter([user("hi")]);
        for text in ["a", "b"] {
            let step = tokio::spawn(step(nested.clone(), talk.clone()));
            let Some(Message::Assistant(turn)) = step.await.unwrap() else {
                panic!("the script has a line");
            };
            assert_eq!(turn.text().as_deref(), Some(text));
        }
    }

    #[test]
    fn types_that_steps_share_are_send_and_sync() {
        fn shared<T: Send + Sync + Clone + 'static>() {}
        fn sent<T: Send + Sync + 'static>() {}
        shared::<Transcript>();
        shared::<ToolSet>();
        shared::<CallCx>();
        shared::<Scripted>();
        shared::<Reply>();
        sent::<LlmError>();
        sent::<Advice>();
    }
}
