//! The contract of stores: the store in memory keeps it, and stores that are wrong in one thing each
//! are found out.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod memory;
mod outside;
mod suite;
mod wrappers;
mod wrong;
