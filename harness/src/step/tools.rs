//! Tools that a step calls: each call is an effect of its class.

use std::fmt;
use std::future::IntoFuture;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;
use tracing::Instrument;

use crate::context::Context;
use crate::llm::{EffectClass, Message, ToolCall, ToolCx, ToolFailure, ToolOutcome, ToolSet};

use super::effects::ToolEnd;
use super::once;
use super::scope::Scope;
use super::{Cx, StepError};

/// What the keys of the effects of tool calls begin with; the id of the call follows.
pub(crate) const TOOL: &str = "tool/";

/// Calls of tools that a step makes. [`Cx::call_tools`] creates it, and awaiting it runs all calls
/// concurrently and returns their outcomes in the order of the calls.
#[must_use = "tools run when this is awaited"]
pub struct CallTools<'a, C: Context> {
    cx: &'a Cx<C>,
    tools: &'a ToolSet,
    calls: Vec<ToolCall>,
    values: ToolCx,
}

impl<C: Context> Cx<C> {
    /// Calls tools on behalf of this step, and returns a message for the transcript with the outcome of
    /// each call.
    ///
    /// Each call is an effect under the key `tool/` and its id, protected as its
    /// [`EffectClass`](crate::llm::EffectClass) says: a call that has an outcome is not made again
    /// when the step is attempted again, and an external or destructive call is made at most once. If it
    /// is unknown whether that happened, its outcome is
    /// [`InDoubt`](crate::llm::ToolOutcome::InDoubt), which the model is sent.
    ///
    /// A tool gets this `Cx`, and each value that [`with`](CallTools::with) adds.
    ///
    /// ```
    /// use harness::llm::ToolError;
    /// use harness::prelude::*;
    ///
    /// # #[derive(Clone)] struct Postbox;
    /// # impl Postbox { async fn send(&self, _to: &str) -> Result<u64, std::io::Error> { Ok(7) } }
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Chat { #[state(reduce = transcript)] talk: Transcript }
    /// #[derive(Context)]
    /// struct Ctx {
    ///     tools: ToolSet,
    ///     postbox: Postbox,
    /// }
    ///
    /// /// Sends a greeting.
    /// #[tool(external)]
    /// async fn greet(
    ///     /// The address.
    ///     to: String,
    ///     #[inject] postbox: Postbox,
    /// ) -> Result<String, ToolError> {
    ///     Ok(format!("sent as {}", postbox.send(&to).await?))
    /// }
    ///
    /// async fn act(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    ///     let outcomes = cx.call_tools(&cx.tools, chat.talk.open_calls()).with(cx.postbox.clone());
    ///     Ok(Chat::update().talk(outcomes.await?))
    /// }
    ///
    /// let tools = ToolSet::builder().with(greet).build()?;
    /// # let _ = tools;
    /// # Ok::<(), harness::llm::ToolSetError>(())
    /// ```
    ///
    /// # Errors
    /// Awaiting it fails if two calls have one id, or the run may not begin effects any more. A failure
    /// of a tool is an outcome.
    pub fn call_tools<'a>(
        &'a self,
        tools: &'a ToolSet,
        calls: impl IntoIterator<Item = ToolCall>,
    ) -> CallTools<'a, C> {
        let calls = calls.into_iter().collect();
        CallTools { cx: self, tools, calls, values: ToolCx::new().with(self.clone()) }
    }
}

impl<C: Context> CallTools<'_, C> {
    /// Gives the tools a value, which a parameter with `#[inject]` or [`ToolCx::get`] reads by its
    /// type.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.values = self.values.with(value);
        self
    }
}

impl<'a, C: Context> IntoFuture for CallTools<'a, C> {
    type Output = Result<Vec<Message>, StepError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { cx, tools, calls, values } = self;
        let calls = calls.into_iter().map(move |call| {
            let running =
                Running { here: cx.here(), tools: tools.clone(), values: values.clone(), call };
            async move {
                let id = running.call.id.clone();
                let outcome = running.under_its_class(cx).await?;
                Ok(Message::Outcome { call: id, outcome })
            }
        });
        // An error does not drop the other calls.
        join_all(calls).map(|done| done.into_iter().collect()).boxed()
    }
}

impl<C: Context> fmt::Debug for CallTools<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallTools").field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// One call.
struct Running {
    here: Scope,
    tools: ToolSet,
    values: ToolCx,
    call: ToolCall,
}

impl Running {
    async fn under_its_class<C: Context>(self, cx: &Cx<C>) -> Result<ToolOutcome, StepError> {
        let Some(spec) = self.tools.spec(&self.call.name) else {
            return Ok(self.tools.call(&self.call).await);
        };
        let key = format!("{TOOL}{}", self.call.id);
        let class = spec.effect;
        if class == EffectClass::Read {
            let here = self.here.clone();
            return Ok(here.wrap(self.run()).await);
        }
        let (here, call) = (self.here.clone(), self.call.clone());
        let known = once::is_recorded(&here, &key);
        let effect = cx.once(&key, async move || Ok(self.run().await));
        let outcome = match class.is_guarded() {
            false => effect.await,
            true => effect.probe(async || Ok(Some(ToolOutcome::InDoubt))).await,
        }?;
        if known {
            let ended = ToolEnd { class, outcome: &outcome, took: None };
            here.effects.end_tool(here.place, &call, ended);
        }
        Ok(outcome)
    }

    async fn run(self) -> ToolOutcome {
        let Self { here: Scope { effects, place }, tools, values, call } = self;
        let spec = tools.spec(&call.name);
        let (class, limit) = spec.map(|spec| (spec.effect, spec.timeout)).unwrap_or_default();
        let span = effects.begin_tool(place, &call, class);
        let began = Instant::now();
        let running = tools.call_with(&call, &values).instrument(span);
        let outcome = match limit {
            None => running.await,
            Some(limit) => match tokio::time::timeout(limit, running).await {
                Ok(outcome) => outcome,
                Err(_) if class == EffectClass::Read => {
                    let text = format!("tool `{}` took longer than its {limit:?}", call.name);
                    ToolOutcome::failed(ToolFailure::TimedOut, text)
                }
                // It was dropped half-way.
                Err(_) => ToolOutcome::InDoubt,
            },
        };
        effects.end_tool(
            place,
            &call,
            ToolEnd { class, outcome: &outcome, took: Some(began.elapsed()) },
        );
        outcome
    }
}
