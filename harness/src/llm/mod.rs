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
//! # Errors
//!
//! A failed model call returns an [`LlmError`]. Its [`Advice`] states whether a retry can help. A
//! tool call never fails: every result is a [`ToolOutcome`] that is sent to the model. A refusal of
//! the model is a reply with [`StopReason::Refusal`].

mod advice;
mod content;
mod context;
mod error;
mod message;
mod name;
mod reply;
mod request;
pub mod scripted;
mod stop;
mod tool;
mod transcript;
mod turn;
mod usage;

pub use advice::Advice;
pub use content::{Content, Image, Part};
pub use context::{CallCx, Meter, Tally};
pub use error::{LlmError, LlmErrorKind, TimeoutPhase};
pub use message::{Message, user};
pub use name::{CallId, ModelId, Protocol, ToolCallId, ToolName};
pub use reply::Reply;
pub use request::Request;
#[doc(no_inline)]
pub use scripted::Scripted;
pub use stop::StopReason;
pub(crate) use tool::schema;
pub use tool::{
    BadArguments, EffectClass, FnTool, MissingValue, Tool, ToolCall, ToolCx, ToolError,
    ToolFailure, ToolOutcome, ToolSet, ToolSetBuilder, ToolSetError, ToolSpec, tool,
};
pub use transcript::{Entry, Open, OpenCall, Pushed, RecordError, Sealed, Transcript};
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

    /// Calls the model and waits for the complete reply.
    ///
    /// An implementation charges the meter of `cx` once for every exchange with its provider,
    /// including failures, and stops at the deadline of `cx`.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete reply. [`LlmError::kind`] is the cause, and
    /// [`LlmError::advice`] states whether a retry can help.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError>;
}

macro_rules! llm_by_pointer {
    ($pointer:ident) => {
        #[async_trait]
        impl<L: Llm + ?Sized> Llm for $pointer<L> {
            fn id(&self) -> ModelId {
                (**self).id()
            }

            async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
                (**self).complete(request, cx).await
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
