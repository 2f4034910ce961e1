//! Calls of a model inside, observed.

use harness::llm::{CallCx, Llm, LlmError, Meter, Reply, Request, Spend};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls a model, and counts each of its exchanges: those that it charges, or else that of its reply.
pub(super) async fn metered<L: Llm + ?Sized>(
    model: &L,
    request: Request<'_>,
    cx: &CallCx,
    count: impl Fn(&Spend) + Send + Sync + 'static,
) -> Result<Reply, LlmError> {
    let meter = Arc::new(Both { outer: cx.clone(), count, any: AtomicBool::new(false) });
    let inner = cx.clone().with_meter(meter.clone());
    let reply = model.complete(request, &inner).await;
    if let Ok(reply) = &reply
        && !meter.any.load(Ordering::Relaxed)
    {
        // The caller charges what the model has not.
        (meter.count)(&reply.usage.into());
    }
    reply
}

/// Charges the caller, and counts.
struct Both<F> {
    outer: CallCx,
    count: F,
    any: AtomicBool,
}

impl<F: Fn(&Spend) + Send + Sync> Meter for Both<F> {
    fn charge(&self, spend: &Spend) {
        self.any.store(true, Ordering::Relaxed);
        self.outer.charge(spend);
        (self.count)(spend);
    }
}
