//! What the end of a process, and other processes, can do to sessions in files, in a database and on
//! servers: kills at any moment, processes that stop and continue, and many that want the same.
//!
//! The other processes are this test binary, started again. What they do outside is counted in a
//! file that they append to, and that no store knows of.
//!
//! `HARNESS_TORTURE_KILLS` asks for more kills than usual, `HARNESS_TORTURE_SEED` for those moments
//! that an earlier run has chosen; the machine decides what they hit.
#![cfg(feature = "file")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unused_crate_dependencies
)]

mod approvals;
mod check;
mod child;
mod children;
mod children_apart;
mod code;
mod crashes;
mod crowd;
mod drive;
mod fits;
mod kills;
mod long;
mod loops;
mod operate;
mod outside;
mod place;
#[cfg(feature = "postgres")]
#[path = "../postgres/server.rs"]
#[allow(dead_code)]
mod postgres_server;
#[cfg(any(feature = "postgres", feature = "redis"))]
#[path = "../shared/proxy.rs"]
#[allow(dead_code)]
mod proxy;
mod races;
mod random;
#[cfg(feature = "redis")]
#[path = "../redis/server.rs"]
#[allow(dead_code)]
mod redis_server;
mod stops;
mod store;
mod timers;
mod work;
mod workers;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time: all of them need the machine for themselves.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
