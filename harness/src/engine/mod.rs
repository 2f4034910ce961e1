//! Sessions on a durable-execution engine, which keeps their logs instead of a store.
//!
//! Such an engine runs a function, an *invocation*, and journals the results of the pieces of work
//! that the function hands to it. If the process dies, the engine calls the function again and returns
//! the journalled results instead of repeating that work. A harness runs on it unchanged: this module
//! makes the function, and the engine implements [`Engine`], which is one method.
//!
//! The seam is that of all stores. A run does nothing of importance before the write that led to it is
//! acknowledged: a commit, the intent of an effect, a question. Here, the piece of work is to run the
//! session up to its next write, and the write is acknowledged once the engine has journalled
//! it. So
//!
//! - nothing nests: a step with three effects is four pieces of work, and between two of them its body
//!   is suspended;
//! - a replay runs no code of the loop, so a step that behaves differently the second time cannot
//!   contradict the journal. What was done since the last write runs again, with its effects under
//!   their keys, as after a crash with any store;
//! - the log is the same as in a store.
//!
//! Between invocations, an engine keeps the session's [`Checkpoint`].
//!
//! ```
//! # use harness::prelude::*;
//! use harness::engine::{Engine, EngineError, Invocation, Turn, Work};
//!
//! # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
//! # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
//! # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
//! /// Journals nothing: it survives nothing.
//! struct Forgetful;
//!
//! #[harness::async_trait]
//! impl Engine for Forgetful {
//!     async fn run(&self, _number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
//!         Ok(work.await)
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
//! #     Step::Ask => define
//! #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
//! #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
//! # }).build()?;
//! let agent = harness.agent("notices", ());
//! let asks = Invocation::new(&agent, "notice-7").run(&Forgetful, "input-1", Doc::update(), ()).await?;
//! let Turn::Settled { outcome: Outcome::Interrupted(waiting), checkpoint } = asks else { panic!() };
//!
//! // Later, in another invocation:
//! let yes = waiting.pending::<Send>()?.answer(true);
//! let invocation = Invocation::new(&agent, "notice-7").checkpoint(checkpoint);
//! let turn = invocation.resume(&Forgetful, yes, ()).await?;
//! assert!(matches!(turn, Turn::Settled { outcome: Outcome::Ended(it), .. } if it.state.sent));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod checkpoint;
mod delivery;
mod invocation;
mod journalled;
mod write;

pub use checkpoint::{Checkpoint, ChildOver, ChildStop};
pub use delivery::Delivery;
pub use invocation::{HostError, Invocation, Turn};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::inbox::Body;
pub use crate::run::ChildStart;
use crate::store::Message;

/// A piece of work of an invocation: runs the session up to its next write, and returns that as
/// JSON.
pub type Work = BoxFuture<'static, Vec<u8>>;

/// Why an engine did not return the result of a piece of work, in its own terms: the invocation was
/// cancelled, say, or the result is larger than a message of the engine may be.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// Whether a message asks the run that holds a session to stop. An engine stops the run itself: an
/// invocation reads its inbox when it begins.
#[must_use]
pub fn asks_to_stop(message: &Message) -> bool {
    matches!(Body::read(message), Some(Body::Stop { .. }))
}

/// One invocation of a durable-execution engine.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Runs `work` and journals its result, or returns the result that the journal has at this place,
    /// without polling `work`. An invocation calls it for one piece of work after the other; `number`
    /// counts them from 1.
    ///
    /// The result must be durable when it is returned: what follows it may act on the world.
    ///
    /// # Errors
    /// The engine's own. The invocation is given up, with the session as of the last result.
    async fn run(&self, number: u64, work: Work) -> Result<Vec<u8>, EngineError>;

    /// Whether it [delivers](Self::deliver) to other sessions. If not, the default, a step that
    /// [calls an agent](crate::Cx::call) gets an error.
    fn delivers(&self) -> bool {
        false
    }

    /// Delivers something to another session of the engine, once, although a replay of this
    /// invocation delivers it again: its place among the results is the same. Does not wait for the
    /// other session.
    ///
    /// # Errors
    /// The engine's own. The invocation is given up, as in [`run`](Self::run).
    async fn deliver(&self, delivery: Delivery) -> Result<(), EngineError> {
        Err(format!("this engine delivers nothing to other sessions: {delivery:?}").into())
    }
}
