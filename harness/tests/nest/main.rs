//! Nested loops.
#![allow(missing_docs, clippy::panic, clippy::unwrap_used)]

mod basics;
mod ends;
mod part;
