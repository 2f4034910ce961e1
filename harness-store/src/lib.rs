//! Session stores for [`harness`](https://docs.rs/harness): where the logs of durable sessions are
//! kept.

#![forbid(unsafe_code)]

#[cfg(feature = "file")]
mod file;

pub use harness::store::MemoryStore;

#[cfg(feature = "file")]
pub use file::{Backup, FileStore, FileStoreOptions, Sync};
