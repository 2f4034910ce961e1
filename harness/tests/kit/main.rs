//! The kit for tests of steps and loops.
#![allow(missing_docs, clippy::panic, clippy::unwrap_used)]

mod loops;
mod steps;
mod time;
