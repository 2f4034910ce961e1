//! The inspector over HTTP, as a browser and as an attacker use it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod acts;
#[cfg(feature = "code")]
mod code;
#[cfg(feature = "code")]
mod coded;
mod guards;
mod pages;
mod rig;
mod sqlite;
