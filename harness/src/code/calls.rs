//! A model whose calls belong to a step.
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::Context;
use crate::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};
use crate::step::Cx;

/// A model as one step uses it: its calls count in the budget of the run, and observers see them. What
/// takes a model and knows no step, such as [`LlmPatcher`](super::LlmPatcher), gets this one.
pub struct StepModel<C: Context> {
    model: Arc<dyn Llm>,
    cx: Cx<C>,
}

impl<C: Context> StepModel<C> {
    /// The model, in this step.
    pub fn new(cx: &Cx<C>, model: &Arc<dyn Llm>) -> Self {
        Self { model: Arc::clone(model), cx: cx.clone() }
    }
}

#[async_trait]
impl<C: Context> Llm for StepModel<C> {
    fn id(&self) -> ModelId {
        self.model.id()
    }

    fn caps(&self) -> Caps {
        self.model.caps()
    }

    async fn complete(&self, request: Request<'_>, _cx: &CallCx) -> Result<Reply, LlmError> {
        self.cx.llm(&self.model).request(request).await
    }
}

impl<C: Context> fmt::Debug for StepModel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StepModel").field(&self.model.id()).finish()
    }
}
