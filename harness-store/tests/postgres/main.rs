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
#[path = "../shared/proxy.rs"]
#[allow(dead_code)]
mod proxy;
mod runtimes;
mod server;
#[path = "../shared/contract.rs"]
mod shared_contract;
#[path = "../shared/faults.rs"]
mod shared_faults;
#[path = "../shared/size.rs"]
mod shared_size;
mod size;
#[path = "../file/support.rs"]
#[allow(dead_code)]
mod support;
#[cfg(feature = "postgres-tls")]
mod tls;
mod versions;
