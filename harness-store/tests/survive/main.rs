//! What sessions in files must survive, seen from outside: agents run, and what the disk, the clock,
//! other versions and hostile input do to them is reported, and loses nothing.
#![cfg(feature = "file")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unused_crate_dependencies
)]

mod clock;
mod damage;
mod disk;
mod encoding;
mod formats;
mod housekeeping;
mod ids;
mod large;
mod migrate;
mod panics;
mod rig;
