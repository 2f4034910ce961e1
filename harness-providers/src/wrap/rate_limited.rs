//! Limits of requests, tokens and concurrency.

use super::locked;
use super::observe::metered;
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Calls a model no faster than its provider allows.
///
/// Calls wait in order. The allowance refills evenly, up to what one window has. Tokens count when they
/// are charged: a call begins while some are left, and what it uses beyond delays the calls after it.
/// When the provider asks to wait, every call waits that long.
///
/// ```
/// use harness::llm::Scripted;
/// use harness_providers::wrap::RateLimited;
/// use std::time::Duration;
///
/// # let model = Scripted::new(["a"]);
/// let minute = Duration::from_secs(60);
/// let model =
///     RateLimited::new(model).requests(50, minute).tokens(100_000, minute).concurrency(8);
/// # let _ = model;
/// ```
///
/// A call whose wait would pass its deadline fails as [`LlmErrorKind::RateLimited`], with the wait if
/// it is known, and nothing is sent. Calls are not repeated: that is up to the step, or to a
/// [`Fallback`](super::Fallback).
pub struct RateLimited<L> {
    model: L,
    concurrency: Option<Semaphore>,
    /// The call that is next.
    next: tokio::sync::Mutex<()>,
    limits: Arc<Mutex<Limits>>,
}

#[derive(Debug, Default)]
struct Limits {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// When the provider allows the next request.
    from: Option<Instant>,
}

impl<L: Llm> RateLimited<L> {
    /// Creates a model without limits. It waits when its provider asks to.
    pub fn new(model: L) -> Self {
        Self {
            model,
            concurrency: None,
            next: tokio::sync::Mutex::default(),
            limits: Arc::default(),
        }
    }

    /// Sets how many requests may begin in a window.
    #[must_use]
    pub fn requests(self, amount: u32, window: Duration) -> Self {
        locked(&self.limits).requests = Some(Bucket::new(amount.into(), window));
        self
    }

    /// Sets how many tokens, of input and output, a window has.
    #[must_use]
    pub fn tokens(self, amount: u64, window: Duration) -> Self {
        locked(&self.limits).tokens = Some(Bucket::new(amount, window));
        self
    }

    /// Sets how many calls may be under way at the same time.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(Semaphore::new(calls.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Waits until a request may begin.
    async fn admit(&self, due: Option<Instant>) -> Result<(), LlmError> {
        // Waiting in vain delays the error only.
        self.wait(due, locked(&self.limits).wait(Instant::now()))?;
        let _turn = self.within(due, self.next.lock()).await?;
        loop {
            let wait = {
                let mut limits = locked(&self.limits);
                let wait = limits.wait(Instant::now());
                if wait.is_zero() {
                    limits.take();
                    return Ok(());
                }
                wait
            };
            sleep_until(self.wait(due, wait)?).await;
        }
    }

    /// When a wait ends, if that is not too late.
    fn wait(&self, due: Option<Instant>, wait: Duration) -> Result<Instant, LlmError> {
        match Instant::now().checked_add(wait) {
            Some(at) if wait.is_zero() || due.is_none_or(|due| at <= due) => Ok(at),
            Some(_) => Err(self.limited(Some(wait))),
            // An amount of zero never refills.
            None => Err(self.limited(None)),
        }
    }

    async fn within<T>(
        &self,
        due: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<T, LlmError> {
        match due {
            None => Ok(work.await),
            Some(due) => timeout_at(due, work).await.map_err(|_| self.limited(None)),
        }
    }

    fn limited(&self, retry_after: Option<Duration>) -> LlmError {
        LlmError::new(LlmErrorKind::RateLimited { retry_after })
            .with_model(self.id())
            .with_detail("the limits of this process leave no place before the deadline")
    }
}

#[async_trait]
impl<L: Llm> Llm for RateLimited<L> {
    fn id(&self) -> ModelId {
        self.model.id()
    }

    fn caps(&self) -> Caps {
        self.model.caps()
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let due = cx.deadline().map(Instant::from_std);
        let _place = match &self.concurrency {
            None => None,
            // It is never closed.
            Some(places) => self.within(due, places.acquire()).await?.ok(),
        };
        self.admit(due).await?;
        let limits = Arc::clone(&self.limits);
        let reply = metered(&self.model, request, cx, move |spend| {
            if let Some(tokens) = &mut locked(&limits).tokens {
                tokens.spend(spend.usage.total().unwrap_or(0));
            }
        })
        .await;
        if let Err(error) = &reply
            && let Some(after) = error.advice().after
            && let Some(from) = Instant::now().checked_add(after)
        {
            let mut limits = locked(&self.limits);
            limits.from = limits.from.max(Some(from));
        }
        reply
    }
}

impl Limits {
    /// How long the next request has to wait.
    fn wait(&mut self, now: Instant) -> Duration {
        let asked = self.from.map_or(Duration::ZERO, |from| from.saturating_duration_since(now));
        let buckets = [&mut self.requests, &mut self.tokens].into_iter().flatten();
        buckets.map(|bucket| bucket.wait(now)).fold(asked, Duration::max)
    }

    /// Begins a request.
    fn take(&mut self) {
        if let Some(requests) = &mut self.requests {
            requests.spend(1);
        }
    }
}

/// An amount that refills evenly.
#[derive(Debug)]
struct Bucket {
    most: f64,
    per_second: f64,
    /// Below zero if more was spent than there was.
    left: f64,
    at: Option<Instant>,
}

impl Bucket {
    fn new(amount: u64, window: Duration) -> Self {
        let most = amount as f64;
        let window = window.max(Duration::from_millis(1)).as_secs_f64();
        Self { most, per_second: most / window, left: most, at: None }
    }

    /// How long it takes until there is one.
    fn wait(&mut self, now: Instant) -> Duration {
        let past = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        self.left = (self.left + past.as_secs_f64() * self.per_second).min(self.most);
        // A timer has milliseconds, so the last part of one counts as it.
        if self.left >= 0.999 {
            return Duration::ZERO;
        }
        // Without an amount it takes indefinitely.
        let wait = Duration::try_from_secs_f64((1.0 - self.left) / self.per_second);
        wait.unwrap_or(Duration::MAX)
    }

    fn spend(&mut self, amount: u64) {
        self.left -= amount as f64;
    }
}

impl<L: Llm> fmt::Debug for RateLimited<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited").field("model", &self.model.id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
