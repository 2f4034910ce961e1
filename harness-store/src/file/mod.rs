//! Sessions in the files of one machine.
//!
//! Each session is one append-only log (`record` documents its format, `index` folds it), in a
//! directory named by the beginning of the SHA-256 of its id and a file named by the rest. Each change
//! is one record at the end of that file, written by one `write`. The order of the records decides
//! whatever two processes may disagree on: the first claim record with a fence wins. No lock is held
//! across an append, so a process that is suspended halfway blocks no other.
//!
//! Beside a log there are a checkpoint (up to where the log was acknowledged), the state of the lease
//! and the place of the last snapshot.

mod append;
mod backup;
mod catalog;
mod checkpoint;
mod claim;
mod disk;
mod error;
mod index;
mod inner;
mod lease;
mod list;
mod liveness;
mod paths;
mod place;
mod read;
mod record;
mod remove;
mod session;
mod start;
mod store;

#[cfg(test)]
mod tests;

pub use backup::Backup;
pub use inner::Sync;
pub use store::{FileStore, FileStoreOptions};
