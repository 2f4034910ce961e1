//! The store of sessions in a PostgreSQL database, against the server of `HARNESS_POSTGRES_URL`. Each
//! test has a schema of its own there; those that kill a server start one.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod due;
mod faults;
mod group;
mod model;
#[path = "../file/model.rs"]
mod operations;
mod place;
mod process;
#[path = "../shared/proxy.rs"]
#[allow(dead_code)]
mod proxy;
mod server;
mod size;
#[path = "../file/support.rs"]
#[allow(dead_code)]
mod support;
#[cfg(feature = "postgres-tls")]
mod tls;
mod trips;
mod versions;
