//! What a run does, seen from outside: by its outcome, its event log, and what its steps did.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod approvals;
mod asks;
mod budget;
mod children;
mod common;
mod drops;
mod effect_policies;
mod effects;
mod errors;
mod events;
mod expiry;
mod finally;
mod model;
mod models;
mod observers;
mod order;
mod panics;
mod sessions;
mod spans;
mod stop;
mod tool_loop;
