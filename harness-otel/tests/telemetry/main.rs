//! What is exported of runs.
#![allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod children;
mod drops;
mod metrics;
mod points;
#[cfg(all(feature = "http", feature = "grpc"))]
mod receiver;
mod replays;
mod rig;
mod setup;
mod spans;
#[cfg(all(feature = "http", feature = "grpc"))]
mod wire;
