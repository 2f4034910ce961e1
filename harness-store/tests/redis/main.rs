//! The store of sessions on a Redis server, against the server of `HARNESS_REDIS_URL`. Each test has
//! keys of its own there; those that kill a server start one.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod due;
mod faults;
mod model;
#[path = "../file/model.rs"]
mod operations;
mod place;
mod promises;
#[path = "../shared/proxy.rs"]
mod proxy;
mod replicas;
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
#[cfg(feature = "redis-tls")]
mod tls;
