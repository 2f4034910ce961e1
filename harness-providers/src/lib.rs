//! LLM adapters for [`harness`](https://docs.rs/harness).
//!
//! This crate holds nothing yet. It reserves the place of the adapters for the vendors' protocols.
//! Today a model is whatever implements `harness::llm::Llm`; `harness::llm::Scripted` does.
