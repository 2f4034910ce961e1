//! Replies that are kept.

use super::canonical::{canonical, digest};
use harness::async_trait;
use harness::llm::{
    CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request, TimeoutPhase,
};
use quick_cache::sync::Cache;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Instant, timeout_at};

/// Keeps replies, and replies to an equal request with the kept one.
///
/// Requests are equal if a model sees the same: transcript, tools, schema and settings. The reply of a
/// hit has [`cached`](Reply::cached) set and a usage of zero, and charges nothing. Errors are not kept.
/// Equal requests at the same time share one call; if it fails or is dropped, the next of them calls.
///
/// ```
/// use harness::llm::{CallCx, Llm, Request, Scripted, Transcript, user};
/// use harness_providers::wrap::Cached;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = Cached::new(Scripted::new(["hello"]), 1_000);
/// let talk = Transcript::from_iter([user("hi")]);
/// for cached in [false, true] {
///     let reply = model.complete(Request::new(talk.sealed()?), &CallCx::detached()).await?;
///     assert_eq!((reply.text().as_deref(), reply.cached), (Some("hello"), cached));
/// }
/// assert_eq!(model.counts().hits, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cached<L> {
    model: L,
    kept: Cache<[u8; 32], Arc<Reply>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How often a [`Cached`] model had a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Requests that a kept reply answered.
    pub hits: u64,
    /// Requests that called the model.
    pub misses: u64,
    /// The replies that are kept now.
    pub kept: usize,
}

impl<L: Llm> Cached<L> {
    /// Creates a model that keeps at most about `capacity` replies. Replies that are used stay longest.
    pub fn new(model: L, capacity: usize) -> Self {
        let kept = Cache::new(capacity.max(1));
        Self { model, kept, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// How often it had a reply.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            kept: self.kept.len(),
        }
    }
}

#[async_trait]
impl<L: Llm> Llm for Cached<L> {
    fn id(&self) -> ModelId {
        self.model.id()
    }

    fn caps(&self) -> Caps {
        self.model.caps()
    }

    /// # Errors
    ///
    /// Those of the model. [`LlmErrorKind::Timeout`] if the deadline passes while an equal request is
    /// under way.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let key = digest(&canonical(&self.model.id(), &request)?);
        let kept = self.kept.get_value_or_guard_async(&key);
        let kept = match cx.deadline() {
            None => kept.await,
            Some(deadline) => {
                timeout_at(Instant::from_std(deadline), kept).await.map_err(|_| {
                    LlmError::new(LlmErrorKind::Timeout { phase: TimeoutPhase::Total })
                        .with_model(self.id())
                        .with_detail("an equal request was under way")
                })?
            }
        };
        match kept {
            Ok(reply) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                Ok(Reply::clone(&reply).as_cached())
            }
            Err(open) => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                // An error drops `open`, and the next equal request calls.
                let reply = self.model.complete(request, cx).await?;
                let _ = open.insert(Arc::new(reply.clone()));
                Ok(reply)
            }
        }
    }
}

impl<L: Llm> fmt::Debug for Cached<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached")
            .field("model", &self.model.id())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
