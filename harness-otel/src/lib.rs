//! OpenTelemetry for [`harness`](https://docs.rs/harness).
//!
//! This crate is empty. It is reserved for a bridge to the semantic conventions of OpenTelemetry for
//! generative AI. Runs and steps are `tracing` spans, and observers receive typed events.
