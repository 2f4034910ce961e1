//! Sessions in a store: run, interrupted, resumed, gone on with.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unused_crate_dependencies
)]

mod basics;
mod forks;
mod sessions;
