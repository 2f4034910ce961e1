//! The steps of a loop.

mod id;

pub use id::StepId;
