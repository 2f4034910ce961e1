use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument as _;

use crate::context::Context;
use crate::llm::{
    CallCx, CallId, Delta, Llm, LlmError, LlmErrorKind, Meter, Open, Reply, Request, Spend,
    TimeoutPhase, ToolSet, Transcript, Usage,
};

use super::effects::CallEnd;
use super::extract::{Ask, ExtractError, Failed, extract};
use super::scope::Scope;
use super::{Cx, StepError, once};

/// How long a call that has reached the end of its attempt waits for the run to end the attempt, so
/// that the step fails by its time-out and not by the model's.
const GRACE: Duration = Duration::from_secs(1);

/// A model that a step calls. [`Cx::llm`](crate::Cx::llm) creates it. Each call is reported to
/// observers under its own [`CallId`](crate::llm::CallId), and charged to the run.
///
/// # Time
///
/// The deadline of the call is the earliest of the step's time-out, the end of the wall budget and
/// the limit set by [`within`](Self::within).
///
/// # Tokens
///
/// If an observer [wants tokens](crate::observe::Observer::wants_tokens), the call streams, and the
/// parts of its reply are [`Token`](crate::observe::EventKind::Token) events. Otherwise the model
/// replies in one piece, unless [`streamed`](Self::streamed) is set.
///
/// # Spend
///
/// The usage of a reply is charged once: by the model, or by the run if the model has not.
#[must_use = "a model does nothing until it is called"]
pub struct Calling<'a, L: ?Sized> {
    model: &'a L,
    scope: Scope,
    id: Option<CallId>,
    within: Option<Duration>,
    streamed: bool,
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
        Calling { model, scope: self.here(), id: None, within: None, streamed: false }
    }
}

impl<'a, L: Llm + ?Sized> Calling<'a, L> {
    /// Limits how long each call may take. It then fails with
    /// [`LlmErrorKind::Timeout`], which a retry may fix.
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// Streams also if no observer wants tokens, for providers that drop long calls without traffic.
    pub fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    /// Sets the id of the call, for those who write it down. An id that a later attempt sets again is that
    /// of the same call.
    #[cfg(feature = "code")]
    pub(crate) fn with_id(mut self, id: impl Into<CallId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Records the reply under `key`, like the result of an effect: a later attempt at this position
    /// gets the recorded reply, and the model is not called again.
    ///
    /// A question that a model drafts is asked with the same words after its answer:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Chat { #[state(reduce = transcript)] talk: Transcript, sent: bool }
    /// # #[derive(Context)] struct Ctx { tools: ToolSet, #[slot(runtime)] model: Arc<dyn Llm> }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { text: String }
    /// async fn send(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    ///     let draft = cx.llm(&cx.model).recorded("draft").complete(&chat.talk, &cx.tools).await?;
    ///     let text = draft.text().unwrap_or_default();
    ///     let sent = cx.ask("send", Send { text }).await?;
    ///     Ok(Chat::update().sent(sent))
    /// }
    /// ```
    pub fn recorded(self, key: impl Into<String>) -> Recorded<'a, L> {
        Recorded { calling: self, key: key.into() }
    }

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
        let Scope { effects, place } = &self.scope;
        let id = self.model.id();
        let name = id.to_string();
        let ((call, span), began) =
            (effects.begin_call(*place, self.id.clone(), &name), Instant::now());
        effects.request(&span, &request);
        let charged = Arc::new(Charge { scope: self.scope.clone(), spends: Mutex::default() });
        let mut cx = CallCx::detached().with_id(call.clone()).with_meter(charged.clone());
        let (own, attempt) = (
            self.within.and_then(|limit| Instant::now().checked_add(limit)),
            effects.deadline(*place),
        );
        if let Some(first) = own.into_iter().chain(attempt).min() {
            cx = cx.with_deadline(first.into_std());
        }
        let tokens = effects.wants_tokens();
        let heard = Arc::new(Mutex::new(false));
        if tokens || self.streamed {
            let (scope, call, heard) = (self.scope.clone(), call.clone(), Arc::clone(&heard));
            cx = cx.with_listener(move |delta| {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = true;
                if tokens {
                    scope.effects.token(scope.place, &call, delta);
                }
            });
        }
        let work = self.model.complete(request, &cx).instrument(span);
        let reply = match own {
            None => work.await,
            Some(at) => timeout_at(at, work).await.unwrap_or_else(|_| {
                let limit = self.within.unwrap_or_default();
                let kind = LlmErrorKind::Timeout { phase: TimeoutPhase::Total };
                let detail = format!("the call took longer than its limit of {limit:?}");
                Err(LlmError::new(kind).with_model(id).with_detail(detail))
            }),
        };
        match &reply {
            Ok(reply) => {
                charged.settle(reply.usage);
                let heard = *heard.lock().unwrap_or_else(PoisonError::into_inner);
                if tokens && !heard {
                    Delta::of(reply).iter().for_each(|delta| cx.emit(delta));
                }
            }
            Err(error) => {
                let timed_out = matches!(error.kind(), LlmErrorKind::Timeout { .. });
                if timed_out && attempt.is_some_and(|at| Instant::now() >= at) {
                    sleep(GRACE).await;
                }
            }
        }
        let (spent, took) = (charged.spent(), began.elapsed());
        let ended = CallEnd { model: &name, reply: reply.as_ref(), spent, took };
        effects.end_call(*place, call, ended);
        reply
    }

    /// The reply as a `T`, read from JSON that follows the schema of `T`.
    ///
    /// A model with structured output gets the schema as a setting. One without it gets a tool that it
    /// must call, or else the schema in its instructions. So does one whose protocol cannot express the
    /// schema in one of these ways. A reply that does not match is sent back once, with what is wrong.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Chat { #[state(reduce = transcript)] talk: Transcript, mood: String }
    /// # #[derive(Context)] struct Ctx { #[slot(runtime)] model: Arc<dyn Llm> }
    /// #[derive(Deserialize, schemars::JsonSchema)]
    /// struct Mood { name: String, sure: bool }
    ///
    /// async fn judge(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    ///     let mood: Mood = cx.llm(&cx.model).extract(&chat.talk).await?;
    ///     Ok(Chat::update().mood(mood.name))
    /// }
    /// ```
    ///
    /// # Errors
    /// The error of the model, a refusal, or a second reply that does not match.
    pub async fn extract<T>(&self, talk: &Transcript) -> Result<T, ExtractError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let sealed = talk.sealed().map_err(unsealed)?;
        self.extract_from(Request::new(sealed)).await
    }

    /// The same for a custom request. Its schema and its tool choice are replaced.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub async fn extract_from<T>(&self, request: Request<'_>) -> Result<T, ExtractError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        // Boxed, so that the compiler sees a step that awaits it as `Send`.
        let extracted = extract(self, self.model.caps(), request).boxed();
        extracted.await.map_err(|failed| match failed {
            Failed::Asking(error) => error.into(),
            Failed::Reading(error) => error,
        })
    }
}

impl<L: Llm + ?Sized> Ask for Calling<'_, L> {
    type Error = LlmError;

    fn ask<'a>(&'a self, request: Request<'a>, _: u32) -> BoxFuture<'a, Result<Reply, LlmError>> {
        self.request(request).boxed()
    }

    fn is_unsupported(error: &LlmError) -> bool {
        error.kind() == LlmErrorKind::Unsupported
    }
}

/// A model call whose reply is recorded. [`Calling::recorded`] creates it.
///
/// The key belongs to the same names as those of [`Cx::once`](crate::Cx::once). The reply is kept
/// until the position is left.
#[must_use = "a model does nothing until it is called"]
pub struct Recorded<'a, L: ?Sized> {
    calling: Calling<'a, L>,
    key: String,
}

impl<L: Llm + ?Sized> Recorded<'_, L> {
    /// As [`Calling::complete`].
    ///
    /// # Errors
    /// As [`Calling::complete`]. A fatal error if `key` is used twice in one attempt or the reply
    /// cannot be recorded.
    pub async fn complete(&self, talk: &Transcript, tools: &ToolSet) -> Result<Reply, StepError> {
        let sealed = talk.sealed().map_err(unsealed)?;
        self.request(Request::new(sealed).tools(tools)).await
    }

    /// As [`Calling::request`].
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn request(&self, request: Request<'_>) -> Result<Reply, StepError> {
        self.ask(request, 0).await
    }

    /// As [`Calling::extract`]. A second reply is recorded under `key/2`.
    ///
    /// # Errors
    /// As [`Calling::extract`] and [`complete`](Self::complete).
    pub async fn extract<T>(&self, talk: &Transcript) -> Result<T, StepError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let sealed = talk.sealed().map_err(unsealed)?;
        self.extract_from(Request::new(sealed)).await
    }

    /// As [`Calling::extract_from`].
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub async fn extract_from<T>(&self, request: Request<'_>) -> Result<T, StepError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let caps = self.calling.model.caps();
        let extracted = extract(self, caps, request).boxed();
        extracted.await.map_err(|failed| match failed {
            Failed::Asking(error) => error,
            Failed::Reading(error) => error.into(),
        })
    }
}

impl<L: Llm + ?Sized> Ask for Recorded<'_, L> {
    type Error = StepError;

    fn ask<'a>(
        &'a self,
        request: Request<'a>,
        again: u32,
    ) -> BoxFuture<'a, Result<Reply, StepError>> {
        let key = match again {
            0 => self.key.clone(),
            again => format!("{}/{}", self.key, again + 1),
        };
        async move {
            let scope = &self.calling.scope;
            if let Some(reply) = once::recorded::<Reply>(scope, &key)? {
                let model = self.calling.model.id().to_string();
                let id = self.calling.id.clone();
                scope.effects.recorded_call(scope.place, id, &model, &reply);
                return Ok(reply);
            }
            let reply = self.calling.request(request).await?;
            once::record(scope, &key, reply).await
        }
        .boxed()
    }

    fn is_unsupported(error: &StepError) -> bool {
        let error = error.source().downcast_ref::<LlmError>();
        error.is_some_and(|error| error.kind() == LlmErrorKind::Unsupported)
    }
}

impl<L: ?Sized> std::fmt::Debug for Calling<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calling").field("place", &self.scope.place).finish_non_exhaustive()
    }
}

impl<L: ?Sized> std::fmt::Debug for Recorded<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("key", &self.key).finish_non_exhaustive()
    }
}

fn unsealed(open: Open) -> LlmError {
    LlmError::new(LlmErrorKind::InvalidRequest).because(open)
}

/// Charges a call to the run.
struct Charge {
    scope: Scope,
    /// What the model has charged, and the run in its stead.
    spends: Mutex<Vec<Spend>>,
}

impl Charge {
    /// Charges the usage of a reply, unless the model has: alone, or in the sum of its exchanges.
    fn settle(&self, usage: Usage) {
        let charged = {
            let spends = self.spends();
            let mut usages = spends.iter().map(|spend| spend.usage);
            usages.any(|charged| charged == usage)
                || spends.iter().map(|spend| spend.usage).sum::<Usage>() == usage
        };
        if !charged {
            self.charge(&usage.into());
        }
    }

    fn spent(&self) -> Spend {
        self.spends().iter().copied().sum()
    }

    fn spends(&self) -> MutexGuard<'_, Vec<Spend>> {
        self.spends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for Charge {
    fn charge(&self, spend: &Spend) {
        self.spends().push(*spend);
        self.scope.charge(spend);
    }
}
