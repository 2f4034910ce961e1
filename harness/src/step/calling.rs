use std::sync::Arc;

use crate::context::Context;
use crate::llm::{
    CallCx, Llm, LlmError, LlmErrorKind, Meter, Open, Reply, Request, Spend, ToolSet, Transcript,
};

use super::Cx;
use super::effects::{Effects, Place};

/// A model that a step calls. [`Cx::llm`](crate::Cx::llm) creates it. Each call is reported to
/// observers under its own [`CallId`](crate::llm::CallId), and charged to the run.
#[must_use = "a model does nothing until it is called"]
pub struct Calling<'a, L: ?Sized> {
    model: &'a L,
    effects: Arc<dyn Effects>,
    place: Place,
}

impl<C: Context> Cx<C> {
    /// Calls a model on behalf of this step: `cx.llm(&cx.model).complete(&chat.talk, &cx.tools)`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Chat { #[state(reduce = transcript)] talk: Transcript }
    /// # #[derive(Context)] struct Ctx { tools: ToolSet, #[slot(runtime)] model: Arc<dyn Llm> }
    /// async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    ///     let reply = cx.llm(&cx.model).complete(&chat.talk, &cx.tools).await?;
    ///     Ok(Chat::update().talk([reply.into()]))
    /// }
    /// ```
    pub fn llm<'a, L: Llm + ?Sized>(&self, model: &'a L) -> Calling<'a, L> {
        let here = self.here();
        Calling { model, effects: here.effects, place: here.place }
    }
}

impl<L: Llm + ?Sized> Calling<'_, L> {
    /// Completes the transcript with these tools.
    ///
    /// # Errors
    /// The error of the model, or a transcript with tool calls that have no outcome. `?` follows the
    /// advice of the error on whether to retry.
    pub async fn complete(&self, talk: &Transcript, tools: &ToolSet) -> Result<Reply, LlmError> {
        let sealed = talk.sealed().map_err(unsealed)?;
        self.request(Request::new(sealed).tools(tools)).await
    }

    /// Sends a custom request, for example with a system prompt, a limit or a temperature.
    ///
    /// # Errors
    /// The error of the model.
    pub async fn request(&self, request: Request<'_>) -> Result<Reply, LlmError> {
        let name = self.model.id().to_string();
        let call = self.effects.begin_call(self.place, &name);
        let meter = Charge { effects: Arc::clone(&self.effects), place: self.place };
        let cx = CallCx::detached().with_id(call.clone()).with_meter(Arc::new(meter));
        let reply = self.model.complete(request, &cx).await;
        let error = reply.as_ref().err().map(ToString::to_string);
        self.effects.end_call(self.place, call, &name, error.as_deref());
        reply
    }
}

impl<L: ?Sized> std::fmt::Debug for Calling<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calling").field("place", &self.place).finish_non_exhaustive()
    }
}

fn unsealed(open: Open) -> LlmError {
    LlmError::new(LlmErrorKind::InvalidRequest).because(open)
}

/// Charges a call to the run.
struct Charge {
    effects: Arc<dyn Effects>,
    place: Place,
}

impl Meter for Charge {
    fn charge(&self, spend: &Spend) {
        self.effects.charge(self.place, spend);
    }
}
