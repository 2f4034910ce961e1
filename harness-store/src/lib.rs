//! Session stores for [`harness`](https://docs.rs/harness).
//!
//! This crate holds nothing yet. It reserves the place of the durable session stores: a session
//! lives in the memory of its process today, in the outcome of its run.
