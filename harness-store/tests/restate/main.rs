//! Sessions on a Restate server, against the server of `HARNESS_RESTATE_INGRESS` and
//! `HARNESS_RESTATE_ADMIN`. Each test has agents of its own there; those that kill a server start
//! `HARNESS_RESTATE_BIN`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod children;
mod cluster;
mod crowd;
mod family;
mod inspect;
mod orders;
mod place;
#[path = "../shared/ports.rs"]
mod ports;
mod process;
mod requests;
mod same;
mod server;
mod versions;
