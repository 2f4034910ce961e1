//! OpenTelemetry for [`harness`](https://docs.rs/harness).
//!
//! This crate holds nothing yet. It reserves the place of the bridge to OpenTelemetry's conventions
//! for generative AI. Today runs and steps are `tracing` spans, and observers get typed events.
