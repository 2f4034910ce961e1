//! Scans compared with hand-made cases, with CPython and with noise.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "scan/cases.rs"]
mod cases;
#[path = "scan/changed.rs"]
mod changed;
#[path = "scan/deep.rs"]
mod deep;
#[path = "scan/errors.rs"]
mod errors;
#[path = "scan/noise.rs"]
mod noise;
#[path = "scan/rules.rs"]
mod rules;
#[path = "scan/sharing.rs"]
mod sharing;
#[path = "scan/stdlib.rs"]
mod stdlib;
#[path = "scan/vectors.rs"]
mod vectors;
