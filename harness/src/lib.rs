//! Typed state-machine loops for agents.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

// The derives name this crate `::harness`; this lets them work inside it too.
#[allow(unused_extern_crates, reason = "only derives use the name")]
extern crate self as harness;

pub mod context;
pub mod question;
pub mod signal;
pub mod state;
pub mod step;

#[doc(hidden)]
pub mod __private;

#[doc(inline)]
pub use context::Context;
#[doc(inline)]
pub use question::Question;
#[doc(inline)]
pub use signal::Signal;
#[doc(inline)]
pub use state::State;
#[doc(inline)]
pub use step::StepId;
pub mod llm;
