//! Steps that run their body for each of several items.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unit_arg,
    unused_crate_dependencies
)]

mod asks;
mod basics;
mod bench;
mod crashes;
mod failures;
mod keys;
mod many;
mod merge;
mod order;
#[path = "../durable/rig.rs"]
mod rig;
mod stops;
