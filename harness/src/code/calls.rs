//! A model whose calls belong to a step.
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::Context;
use crate::llm::{Advice, CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request};
use crate::step::{Cx, StepError};

/// A model as one step uses it: its calls count in the budget of the run, and observers see them. What
/// takes a model and knows no step, such as [`LlmPatcher`](super::LlmPatcher), gets this one.
///
/// A call with an [id](CallCx::with_id) has this id in events too, and its reply is recorded under it: a
/// later attempt at the step that makes the call again gets the recorded reply.
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

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let calling = self.cx.llm(&self.model);
        let Some(id) = cx.id() else { return calling.request(request).await };
        let recorded = calling.with_id(id.clone()).recorded(format!("call {id}"));
        recorded.request(request).await.map_err(|error| self.of_model(&error))
    }
}

impl<C: Context> StepModel<C> {
    /// The error of a recorded call, as that of a model.
    fn of_model(&self, error: &StepError) -> LlmError {
        let (id, source) = (self.model.id(), error.source());
        let Some(of_model) = source.downcast_ref::<LlmError>() else {
            return LlmError::new(LlmErrorKind::InvalidRequest)
                .with_model(id)
                .with_detail(format!("its reply cannot be recorded: {error}"));
        };
        let said = of_model.advice();
        let advice = if said.retryable { Advice::retry() } else { Advice::give_up() };
        let advice = advice.elsewhere(said.elsewhere).after(said.after);
        LlmError::new(of_model.kind())
            .with_model(id)
            .with_detail(of_model.to_string())
            .with_advice(advice)
    }
}

impl<C: Context> fmt::Debug for StepModel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StepModel").field(&self.model.id()).finish()
    }
}
