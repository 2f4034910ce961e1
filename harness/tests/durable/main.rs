//! Sessions in a store: run, interrupted, resumed, recovered.
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

mod audit;
mod audit_reports;
mod basics;
mod breakpoints;
mod busy;
mod children;
mod children_ends;
mod children_notices;
#[cfg(all(feature = "code", feature = "testing"))]
mod code_changes;
#[cfg(all(feature = "code", feature = "testing"))]
mod code_forks;
#[cfg(all(feature = "code", feature = "testing"))]
mod code_loop;
#[cfg(all(feature = "code", feature = "testing"))]
mod code_models;
#[cfg(all(feature = "code", feature = "testing"))]
mod code_steps;
mod crashes;
mod effects;
mod engine;
mod equal;
mod faults;
mod forks;
mod former;
mod interrupts;
mod leases;
mod meanwhile;
mod models;
mod modes;
mod nested;
mod operate;
mod queue;
mod reads;
mod rig;
mod runtimes;
mod sessions;
mod settings;
mod stops;
mod table;
mod tool_loop;
mod tools;
mod trace;
mod versions;
