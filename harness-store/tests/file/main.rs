//! The store of sessions in files.
#![cfg(feature = "file")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod damage;
mod disk;
mod golden;
mod model;
mod process;
mod rewrite;
mod size;
mod support;
