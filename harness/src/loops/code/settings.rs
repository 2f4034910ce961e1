//! What a code loop is made of.

use std::sync::Arc;

use harness::Budget;
use harness::code::Bench;
use harness::llm::Llm;

/// How often a program is patched, and written, in one turn, unless a loop says otherwise.
const PATCHES: u32 = 12;
const WRITES: u32 = 3;

type Get<C, T> = Arc<dyn Fn(&C) -> T + Send + Sync>;

pub(super) struct Settings<C> {
    pub(super) name: String,
    pub(super) model: Get<C, Arc<dyn Llm>>,
    pub(super) bench: Get<C, Bench>,
    pub(super) patches: u32,
    pub(super) writes: u32,
    pub(super) is_reviewed: bool,
    pub(super) budget: Option<Budget>,
}

impl<C> Settings<C> {
    pub(super) fn new(model: Get<C, Arc<dyn Llm>>, bench: Get<C, Bench>) -> Self {
        Self {
            name: "code-loop".to_owned(),
            model,
            bench,
            patches: PATCHES,
            writes: WRITES,
            is_reviewed: true,
            budget: None,
        }
    }
}

impl<C> Clone for Settings<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            model: Arc::clone(&self.model),
            bench: Arc::clone(&self.bench),
            ..*self
        }
    }
}
