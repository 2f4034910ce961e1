//! Sessions in the files of one machine.
//!
//! Each session is one append-only log (`record` documents its format, `index` folds it), in a
//! directory named by the beginning of the SHA-256 of its id and a file named by the rest. Each change
//! is one record at the end of that file, written by one `write`. The order of the records decides
//! whatever two processes may disagree on: the first claim record with a fence wins. No lock is held
//! across an append, so a process that is suspended halfway blocks no other.
//!
//! Beside a log there may be a checkpoint (up to where the log was acknowledged), until when a lease
//! was renewed, and where a reader can start. Beside the logs of a directory there is a file that
//! counts what may make them due (`due`). Beside the sessions there are the files of open stores
//! (`liveness`) and one that shows whether the store is a copy (`place`).

mod append;
mod backup;
mod candidate;
mod catalog;
mod checkpoint;
mod claim;
mod due;
mod error;
mod index;
mod inner;
mod lease;
mod list;
mod paths;
mod place;
mod read;
mod record;
mod remove;
mod session;
mod start;
mod store;
mod threads;

#[cfg(test)]
mod tests;

use crate::local::{disk, liveness};

pub use backup::Backup;
pub use store::{FileStore, FileStoreOptions};
