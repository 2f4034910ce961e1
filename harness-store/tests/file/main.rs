//! The stores of sessions in files and in a database.
#![cfg(feature = "file")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod damage;
mod disk;
mod due;
#[cfg(feature = "encrypt")]
mod encrypted;
mod golden;
mod model;
mod process;
mod rewrite;
#[path = "../shared/contract.rs"]
#[allow(dead_code)]
mod shared_contract;
#[path = "../shared/size.rs"]
#[allow(dead_code)]
mod shared_size;
mod size;
#[cfg(feature = "sqlite")]
mod sqlite;
mod support;
