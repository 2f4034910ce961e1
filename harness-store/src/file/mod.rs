//! Sessions in the files of one machine.
//!
//! Each session is one append-only log (`record` says how it is written, `index` what it adds up
//! to), in a directory named by the beginning of the SHA-256 of its id and a file named by the
//! rest. Every change is one record at the end of that file, written by one `write`; the order of
//! the records decides all that two processes may disagree on. Nobody holds a lock while writing,
//! so no process that was stopped halfway keeps another from going on.

mod append;
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
mod read;
mod record;
mod remove;
mod session;
mod start;
mod store;

#[cfg(test)]
mod tests;

pub use inner::Sync;
pub use store::{FileStore, FileStoreOptions};
