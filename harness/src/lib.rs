//! Typed state-machine loops for agents: `agent = llm + harness`. The model is a part you swap; the
//! harness is the part you keep.
//!
//! A loop works on a [`State`]: typed data with a reducer for each field. Its *steps* are async
//! functions that get a [`View`] of the state and a [`Cx`], and return an update. After a step, a pure
//! *route* reads the state and returns a [`Signal`]; the loop declares where each signal leads. The
//! resources of the steps are the *slots* of a [`Context`], filled when the harness is built, when an
//! agent is made, or at each run.
//!
//! ```
//! use harness::prelude::*;
//!
//! #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
//! struct Guess {
//!     low: u32,
//!     high: u32,
//!     #[state(reduce = add)]
//!     tries: u32,
//! }
//!
//! #[derive(Context)]
//! struct Ctx {
//!     #[slot(runtime)]
//!     secret: u32,
//! }
//!
//! #[derive(StepId, Clone, Debug, PartialEq, Eq)]
//! enum Step { Halve }
//!
//! #[derive(Signal, Clone, Copy, Debug, PartialEq)]
//! enum Next { Again, Found }
//!
//! async fn halve(guess: View<Guess>, cx: Cx<Ctx>) -> StepResult<Guess> {
//!     let middle = guess.low.midpoint(guess.high);
//!     let update = Guess::update().tries(1);
//!     Ok(if middle < cx.secret { update.low(middle + 1) } else { update.high(middle) })
//! }
//!
//! fn found(guess: &Guess) -> Next {
//!     if guess.low == guess.high { Next::Found } else { Next::Again }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let guesser = Harness::<Ctx, Guess>::builder("guesser")
//!     .start(Step::Halve)
//!     .steps(|define, step| match step {
//!         Step::Halve => define.run(halve).route(found, |signal| match signal {
//!             Next::Again => to(Step::Halve),
//!             Next::Found => end(),
//!         }),
//!     })
//!     .build()?;
//!
//! let input = Guess::update().high(1_000);
//! let slots = Ctx::runtime().secret(421).build();
//! let ended = guesser.agent("g", ()).run(input, slots).await?.ended()?;
//! assert_eq!((ended.state.low, ended.state.tries), (421, 10));
//! assert_eq!(ended.by::<Next>(), Some(Next::Found));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! | you want to | see |
//! |---|---|
//! | declare data, and how it changes | [`State`](derive@State), [`state`] |
//! | declare the resources of steps | [`Context`](derive@Context) |
//! | declare a loop | [`Harness`], [`Define`], [`declare`] |
//! | run it, stop it, resume it | [`Agent`], [`RunRequest`], [`Run`], [`Outcome`] |
//! | work on the items of a list at once | [`Define::each`] |
//! | ask a person | [`Define::ask`], [`Cx::ask`], [`Answers`] |
//! | do something once | [`Cx::once`] |
//! | keep sessions, and resume them in another process | [`Agent::store`], [`store`], [`_guide::sessions`] |
//! | list, inspect, answer and delete sessions | [`Sessions`], [`inspect`] |
//! | read the past of a session, or fork it | [`Agent::history`], [`Agent::fork`] |
//! | call a model and tools | [`llm`], [`Cx::llm`] |
//! | have an agent with tools in ten lines | [`loops::tool_loop`] |
//! | decide which tools run, and ask a person | [`approval`] |
//! | run the sessions of agents in many processes | [`worker`], [`Agent::enqueue`] |
//! | observe runs | [`observe`] |
//! | run sessions on a durable-execution engine | [`engine`] |
//! | test a step or a loop | `testing` (feature `testing`) |
//! | run code that an agent writes step by step | `esg` (feature `code`) |
//! | have an agent that writes a program and repairs it | `loops::code_loop`, `code` (feature `code`) |
//!
//! The guide is [`_guide`], with a page on each of these. This root has the names that a loop uses
//! every day; the types that the compiler names, and those that only tools need, are in the modules.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `code` | no | `esg`: the crate `harness-esg`, for programs of Python steps that rerun only what an edit affects |
//! | `report` | no | `inspect::report`: a report of any session, as HTML and as Markdown |
//! | `terminal` | no | `observe::Terminal`: live progress of runs on a terminal |
//! | `testing` | no | `testing`: tests of steps and loops with scripted answers, stores that fail or record calls, the contract of stores as a suite; the clock follows the paused time of tokio |

#![deny(missing_docs)]

// The derives name this crate `::harness`; this lets them work inside it too.
#[allow(unused_extern_crates, reason = "only derives use the name")]
extern crate self as harness;

#[cfg(any(doc, doctest))]
pub mod _guide;
mod agent;
pub mod approval;
mod clock;
#[cfg(feature = "code")]
pub mod code;
pub mod compat;
pub mod context;
pub mod declare;
pub mod engine;
pub mod graph;
pub mod id;
mod inbox;
pub mod inspect;
mod journal;
pub mod llm;
pub mod loops;
pub mod observe;
pub mod prelude;
pub mod question;
mod recovery;
mod rule;
pub mod run;
pub mod session;
pub mod signal;
pub mod state;
pub mod step;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
pub mod worker;

#[doc(hidden)]
pub mod __private;

pub use async_trait::async_trait;
#[cfg(feature = "code")]
pub use harness_esg as esg;

pub use agent::Agent;
pub use clock::UtcMillis;
#[doc(inline)]
pub use context::Context;
#[doc(inline)]
pub use declare::{Define, Harness};
#[doc(inline)]
pub use graph::{Budget, BuildError, end, end_with, to};
#[doc(inline)]
pub use id::{InterruptId, RunId, Seq, SessionId};
pub use inbox::AnswerError;
#[doc(inline)]
pub use inspect::Sessions;
pub use journal::Durability;
#[doc(inline)]
pub use question::Question;
#[doc(inline)]
pub use run::{
    Ended, Exhausted, Failed, Interrupted, OnBusy, Outcome, Run, RunError, RunRequest, Stopped,
};
#[doc(inline)]
pub use signal::Signal;
#[doc(inline)]
pub use state::{Has, State};
#[doc(inline)]
pub use step::{
    Answered, Answers, Cx, Failure, FailureKind, Interrupt, ResultExt, Retry, StepError, StepId,
    StepResult, View,
};

// The README's program is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
