//! What a tool loop is made of.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use harness::approval::Policy;
use harness::context::Context;
use harness::llm::{Edit, Llm, Request, ToolSet, Transcript};
use harness::step::CallTools;
use harness::{Budget, Cx, Retry, StepError};

use crate::loops::state::Converses;

/// How often the model is called with tools in one turn, unless a loop says otherwise.
const TURNS: u32 = 50;

type Get<C, T> = Arc<dyn Fn(&C) -> T + Send + Sync>;
type Change = Arc<dyn for<'a> Fn(Request<'a>) -> Request<'a> + Send + Sync>;
type Value<C> = Arc<dyn for<'a> Fn(&Cx<C>, CallTools<'a, C>) -> CallTools<'a, C> + Send + Sync>;
type Future<T> = Pin<Box<dyn std::future::Future<Output = Result<T, StepError>> + Send>>;
pub(super) type Edits<C> = Arc<dyn Fn(Transcript, Cx<C>) -> Future<Vec<Edit>> + Send + Sync>;

pub(super) struct Settings<S, C: Context> {
    pub(super) name: String,
    pub(super) model: Get<C, Arc<dyn Llm>>,
    pub(super) tools: Get<C, ToolSet>,
    pub(super) policy: Policy,
    pub(super) system: Option<Get<S, String>>,
    pub(super) request: Option<Change>,
    pub(super) max_turns: u32,
    pub(super) budget: Option<Budget>,
    pub(super) retry: Retry,
    pub(super) within: Option<Duration>,
    pub(super) concurrency: usize,
    pub(super) streamed: bool,
    pub(super) in_text: Option<bool>,
    pub(super) values: Vec<Value<C>>,
    pub(super) compaction: Option<Compaction<C>>,
}

/// How and when a transcript is shortened.
pub(super) struct Compaction<C: Context> {
    pub(super) above: u64,
    pub(super) edits: Edits<C>,
}

impl<S: Converses, C: Context> Settings<S, C> {
    pub(super) fn new(model: Get<C, Arc<dyn Llm>>, tools: Get<C, ToolSet>) -> Self {
        Self {
            name: "tool-loop".to_owned(),
            model,
            tools,
            policy: Policy::new(),
            system: None,
            request: None,
            max_turns: TURNS,
            budget: None,
            retry: Retry::exponential(),
            within: None,
            concurrency: 8,
            streamed: false,
            in_text: None,
            values: Vec::new(),
            compaction: None,
        }
    }
}

impl<S, C: Context> Clone for Settings<S, C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            model: Arc::clone(&self.model),
            tools: Arc::clone(&self.tools),
            policy: self.policy.clone(),
            system: self.system.clone(),
            request: self.request.clone(),
            values: self.values.clone(),
            compaction: self.compaction.clone(),
            ..*self
        }
    }
}

impl<C: Context> Clone for Compaction<C> {
    fn clone(&self) -> Self {
        Self { above: self.above, edits: Arc::clone(&self.edits) }
    }
}
