//! Another model after an error.

use harness::async_trait;
use harness::llm::{CallCx, Caps, Delta, Llm, LlmError, ModelId, Reply, Request};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Asks the next model when one fails and another may succeed.
///
/// The [advice](harness::llm::Advice::elsewhere) of an error decides: a model that is overloaded,
/// limited, unknown or cannot express the request leads to the next one; a request that is invalid does
/// not. After the deadline of the call no model is asked.
///
/// ```
/// use harness::llm::scripted::fail;
/// use harness::llm::{CallCx, Llm, LlmError, LlmErrorKind, Request, Scripted, Transcript, user};
/// use harness_providers::wrap::Fallback;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let busy = Scripted::new([fail(LlmError::new(LlmErrorKind::Overloaded))]);
/// let model = Fallback::new(busy).or(Scripted::new(["hello"]));
/// let talk = Transcript::from_iter([user("hi")]);
/// let reply = model.complete(Request::new(talk.sealed()?), &CallCx::detached()).await?;
/// assert_eq!(reply.text().as_deref(), Some("hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If a listener has parts of the failed reply, it gets [`Delta::Restart`] before those of the next
/// one. Every exchange is charged. [`Reply::model`] names the model that replied; the
/// [id](Llm::id) is that of the first. Opaque blocks of a transcript go back to the model that wrote
/// them and to no other, as with every adapter.
#[derive(Clone)]
pub struct Fallback {
    models: Vec<Arc<dyn Llm>>,
}

impl Fallback {
    /// Begins with the model that is asked first.
    pub fn new(first: impl Llm) -> Self {
        Self { models: vec![Arc::new(first)] }
    }

    /// Adds the model that is asked next.
    #[must_use]
    pub fn or(mut self, next: impl Llm) -> Self {
        self.models.push(Arc::new(next));
        self
    }
}

#[async_trait]
impl Llm for Fallback {
    fn id(&self) -> ModelId {
        self.models.first().map_or_else(|| ModelId::new("fallback", ""), Llm::id)
    }

    /// What all of the models can do.
    fn caps(&self) -> Caps {
        self.models.iter().map(Llm::caps).reduce(Caps::and).unwrap_or_default()
    }

    /// # Errors
    ///
    /// Of the errors that a retry may mend, the one with the shortest wait; without one, the error of
    /// the first model.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let heard = Arc::new(AtomicBool::new(false));
        let mut inner = cx.clone();
        if cx.is_listened_to() {
            let (outer, heard) = (cx.clone(), Arc::clone(&heard));
            inner = inner.with_listener(move |delta| {
                heard.store(true, Ordering::Relaxed);
                outer.emit(delta);
            });
        }
        let mut errors = Vec::new();
        for model in &self.models {
            if heard.swap(false, Ordering::Relaxed) {
                cx.emit(&Delta::Restart);
            }
            let error = match model.complete(request, &inner).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let ends = !error.advice().elsewhere || cx.remaining() == Some(Duration::ZERO);
            errors.push(error);
            if ends {
                break;
            }
        }
        Err(worst(errors))
    }
}

/// The error to act on.
fn worst(mut errors: Vec<LlmError>) -> LlmError {
    let retryable = errors.iter().enumerate().filter(|(_, error)| error.is_retryable());
    let wait = |(_, error): &(usize, &LlmError)| error.advice().after.unwrap_or_default();
    let at = retryable.min_by_key(wait).map_or(0, |(at, _)| at);
    errors.swap_remove(at)
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.models.iter().map(|model| model.id().to_string()).collect();
        f.debug_struct("Fallback").field("models", &ids).finish()
    }
}

#[cfg(test)]
mod tests;
