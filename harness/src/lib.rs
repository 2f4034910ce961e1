//! Typed state-machine loops for agents.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

// The derives name this crate `::harness`; this lets them work inside it too.
#[allow(unused_extern_crates, reason = "only derives use the name")]
extern crate self as harness;

#[cfg(any(doc, doctest))]
pub mod _guide;
mod agent;
mod clock;
pub mod context;
mod declare;
pub mod graph;
mod id;
pub mod llm;
pub mod observe;
pub mod prelude;
pub mod question;
mod run;
mod session;
pub mod signal;
pub mod state;
pub mod step;
mod text;

#[doc(hidden)]
pub mod __private;

pub use async_trait::async_trait;

pub use agent::Agent;
pub use clock::UtcMillis;
#[doc(inline)]
pub use context::Context;
pub use declare::{
    Define, Dynamic, Given, Harness, HarnessBuilder, HasSteps, LoopBuilder, NeedsAnswer, NeedsExit,
    NeedsSteps, Provided, Registry, StepDef, StepName, Stepped, ThenEndOrRoute, Unprovided,
};
#[doc(inline)]
pub use graph::{Budget, BuildError, Graph, Limit, Target, end, to};
pub use id::{
    AgentId, InterruptId, InvalidSessionId, MAX_SESSION_ID, OpId, Position, RunId, SessionId,
};
pub use question::Question;
pub use run::{
    Ended, Exhausted, Failed, Interrupted, NotEnded, Outcome, Resume, Run, RunControl, RunError,
    RunRequest, Stopped, Waiting,
};
pub use signal::Signal;
#[doc(inline)]
pub use state::State;
pub use step::{
    Answered, Answers, Ask, AskError, Calling, Cx, Failure, FailureKind, Fatal, Handler, Interrupt,
    NotThisQuestion, Pending, Retry, StepError, StepId, StepResult, View,
};
