//! The kit for tests of steps and loops.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::unit_arg
)]

mod loops;
#[path = "../durable/rig.rs"]
mod rig;
mod steps;
mod time;
mod timer_crashes;
mod timer_items;
mod timers;
