//! What a scan answers, against hand-made cases, against CPython and against noise.
#![cfg(feature = "code")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "esg_scan/cases.rs"]
mod cases;
#[path = "esg_scan/deep.rs"]
mod deep;
#[path = "esg_scan/errors.rs"]
mod errors;
#[path = "esg_scan/noise.rs"]
mod noise;
#[path = "esg_scan/rules.rs"]
mod rules;
#[path = "esg_scan/sharing.rs"]
mod sharing;
#[path = "esg_scan/stdlib.rs"]
mod stdlib;
#[path = "esg_scan/vectors.rs"]
mod vectors;
