//! The store of sessions in files.
#![cfg(feature = "file")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
