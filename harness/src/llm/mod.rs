//! Models and tools, without a vendor.
//!
//! An [`Llm`] answers a [`Request`] with a [`Reply`]. A reply, what people say and how tool calls
//! come out are [`Message`]s, which are folded into a [`Transcript`]; a request takes a transcript
//! only when it is [`Sealed`], that is, when no tool call waits for its outcome.
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
//!     .with(tool("weather", "Tells the weather", |args: Weather| async move {
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
//! # What fails where
//!
//! A call of a model fails with [`LlmError`], which says by its [`Advice`] whether trying again can
//! help. A call of a tool never fails: whatever happens is a [`ToolOutcome`] that the model is told.
//! A refusal of the model is a reply with [`StopReason::Refusal`].

mod advice;
mod content;
mod context;
mod error;
mod message;
mod name;
mod reply;
mod request;
pub mod scripted;
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
pub use reply::{Reply, StopReason};
pub use request::Request;
#[doc(no_inline)]
pub use scripted::Scripted;
pub use tool::{
    BadArguments, FnTool, Tool, ToolCall, ToolError, ToolFailure, ToolOutcome, ToolSet,
    ToolSetBuilder, ToolSetError, ToolSpec, tool,
};
pub use transcript::{Entry, Open, OpenCall, Pushed, RecordError, Sealed, Transcript};
pub use turn::{Block, Turn};
pub use usage::{Spend, Usage};

use async_trait::async_trait;
use std::sync::Arc;

/// A model that can be asked.
///
/// It holds nothing that belongs to one call, so any number of calls may run at once; `Arc<dyn Llm>`
/// and `Box<dyn Llm>` are models too. A wrapper is a model that holds a model:
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
    /// Which model this is.
    fn id(&self) -> ModelId;

    /// Asks the model and waits for the whole reply.
    ///
    /// An implementation charges the meter of `cx` once for every exchange with its provider,
    /// failures included, and gives up at the deadline of `cx`.
    ///
    /// # Errors
    ///
    /// Fails when there is no whole reply. [`LlmError::kind`] says why, [`LlmError::advice`] whether
    /// trying again can help.
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

    /// What a step does: own everything, be `Send`, await a model behind a pointer.
    async fn step(model: Arc<dyn Llm>, talk: Transcript) -> Option<Message> {
        let request = Request::new(talk.sealed().ok()?);
        let reply = model.complete(request, &CallCx::detached()).await.ok()?;
        Some(reply.into())
    }

    #[tokio::test]
    async fn a_model_behind_a_pointer_is_a_model() {
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
    fn what_steps_share_is_send_and_sync() {
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
