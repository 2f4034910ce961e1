//! LLM adapters for [`harness`](https://docs.rs/harness).
//!
//! This crate is empty. It is reserved for adapters to the protocols of vendors. A model is any type
//! that implements `harness::llm::Llm`, such as `harness::llm::Scripted`.
