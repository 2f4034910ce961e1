//! The context of a model call: its id, its deadline, its meter.

use super::{CallId, Delta, Spend};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Receives the usage of model calls.
///
/// A model charges its meter once per exchange with its provider, including failures, with the
/// usage that the provider reported. A reply that took two attempts charges both.
///
/// ```
/// use harness::llm::{Meter, Spend};
///
/// #[derive(Debug)]
/// struct Print;
///
/// impl Meter for Print {
///     fn charge(&self, spend: &Spend) {
///         println!("{:?} tokens", spend.usage.total());
///     }
/// }
/// ```
pub trait Meter: Send + Sync {
    /// Counts one exchange. It is called on the task of the model call, so it must not block.
    fn charge(&self, spend: &Spend);
}

/// The context of a model call. Clones share the meter and the listener.
///
/// ```
/// use harness::llm::{CallCx, Tally};
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
///
/// let tally = Arc::new(Tally::default());
/// let cx = CallCx::detached()
///     .with_id("think-7")
///     .with_meter(tally.clone())
///     .with_deadline(Instant::now() + Duration::from_secs(30));
/// assert!(cx.remaining() > Some(Duration::from_secs(29)));
/// ```
#[derive(Clone)]
pub struct CallCx {
    id: Option<CallId>,
    deadline: Option<Instant>,
    meter: Option<Arc<dyn Meter>>,
    listener: Option<Listener>,
    streaming: Option<Streaming>,
}

type Listener = Arc<dyn Fn(&Delta) + Send + Sync>;

impl CallCx {
    /// The context of a call outside any run: no id, no deadline, no meter and no listener.
    pub fn detached() -> Self {
        Self { id: None, deadline: None, meter: None, listener: None, streaming: None }
    }

    /// Sets the id of the call.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<CallId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the deadline of the call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the meter that is charged.
    #[must_use]
    pub fn with_meter(mut self, meter: Arc<dyn Meter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Sets the function that receives the parts of the reply, as they arrive. It is called on the
    /// task of the model call, so it must not block.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&Delta) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets the model whose stream this call serves.
    pub(super) fn with_streaming(mut self, streaming: Streaming) -> Self {
        self.streaming = Some(streaming);
        self
    }

    pub(super) fn streaming(&self) -> Option<Streaming> {
        self.streaming
    }

    /// Whether the parts of the reply are listened to, so that streaming is of use.
    pub fn is_listened_to(&self) -> bool {
        self.listener.is_some()
    }

    /// Passes a part of the reply to the listener, if there is one.
    pub fn emit(&self, delta: &Delta) {
        if let Some(listener) = &self.listener {
            listener(delta);
        }
    }

    /// The id of the call.
    pub fn id(&self) -> Option<&CallId> {
        self.id.as_ref()
    }

    /// The deadline of the call.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The time until the deadline, at least zero. `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        // The clock of the runtime, which tests pause.
        let now = tokio::time::Instant::now().into_std();
        Some(deadline.saturating_duration_since(now))
    }

    /// Charges the meter for one exchange.
    pub fn charge(&self, spend: &Spend) {
        if let Some(meter) = &self.meter {
            meter.charge(spend);
        }
    }
}

impl fmt::Debug for CallCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCx")
            .field("id", &self.id)
            .field("deadline", &self.deadline)
            .field("metered", &self.meter.is_some())
            .field("listened_to", &self.is_listened_to())
            .finish()
    }
}

/// Identifies a model while its call streams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Streaming(&'static str, usize);

impl Streaming {
    pub(super) fn of<L: ?Sized>(model: &L) -> Self {
        Self(std::any::type_name::<L>(), std::ptr::from_ref(model).cast::<()>().addr())
    }
}

/// A meter that sums up usage.
///
/// ```
/// use harness::llm::{Meter, Spend, Tally, Usage};
///
/// let tally = Tally::default();
/// tally.charge(&Usage::tokens(10, 2).into());
/// tally.charge(&Spend::default());
/// assert_eq!(tally.spend().usage.total(), Some(12));
/// assert_eq!(tally.exchanges(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Tally(Mutex<(Spend, u64)>);

impl Tally {
    /// Everything charged so far.
    pub fn spend(&self) -> Spend {
        self.lock().0
    }

    /// The number of exchanges charged.
    pub fn exchanges(&self) -> u64 {
        self.lock().1
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Spend, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for Tally {
    fn charge(&self, spend: &Spend) {
        let mut sum = self.lock();
        sum.0 += *spend;
        sum.1 = sum.1.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_remains_after_the_deadline() {
        let past = CallCx::detached().with_deadline(Instant::now());
        assert_eq!(past.remaining(), Some(Duration::ZERO));
        assert_eq!(CallCx::detached().remaining(), None);
    }

    #[test]
    fn a_clone_shares_the_meter() {
        let tally = Arc::new(Tally::default());
        let cx = CallCx::detached().with_meter(tally.clone()).with_id("a");
        cx.clone().charge(&Spend::default());
        cx.charge(&Spend::default());
        assert_eq!(tally.exchanges(), 2);
        assert_eq!(cx.id(), Some(&"a".into()));
        CallCx::detached().charge(&Spend::default());
    }
}
