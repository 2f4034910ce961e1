//! Bounds the spans that wait for the receiver, and counts those that are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};

use crate::export::Conventions;

/// How long spans wait for others before they are exported.
const DELAY: Duration = Duration::from_millis(500);
/// How many spans may wait or be on their way. Further ones are dropped.
pub(crate) const MOST_PENDING: usize = 8_192;

/// What an exporter has not received.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Spans that wait, or are being exported.
    pending: AtomicUsize,
    /// Spans that were dropped, or whose export has failed.
    lost: AtomicU64,
    /// Those of them that a report has counted.
    counted: AtomicU64,
    /// Whether a loss was reported since the last export without one.
    reported: AtomicBool,
}

impl Losses {
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether there is room for a span that is over. If not, it is lost.
    fn enter(&self) -> bool {
        let more = |pending| (pending < MOST_PENDING).then_some(pending + 1);
        let entered = self.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !entered {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        entered
    }

    /// An export begins.
    pub(crate) fn leaving(&self, spans: usize) -> Leaving<'_> {
        Leaving { losses: self, spans }
    }

    /// An export is over. Runs in the exporter's thread: the span of a run that just ended is still
    /// locked where it is found that there is no room for it.
    fn report(&self, error: Option<&OTelSdkError>) {
        let lost = self.lost();
        let spans = lost - self.counted.swap(lost, Ordering::Relaxed);
        if spans == 0 && error.is_none() {
            self.reported.store(false, Ordering::Relaxed);
            return;
        }
        if self.reported.swap(true, Ordering::Relaxed) {
            return;
        }
        match error {
            Some(error) => tracing::warn!(
                target: "harness_otel",
                spans,
                %error,
                "failed to export spans, they are lost (further losses are counted, and not reported until an export succeeds)"
            ),
            None => tracing::warn!(
                target: "harness_otel",
                spans,
                "the receiver is too slow, spans are lost (further losses are counted, and not reported until none is lost)"
            ),
        }
    }
}

/// Spans that are being exported.
pub(crate) struct Leaving<'a> {
    losses: &'a Losses,
    spans: usize,
}

impl Leaving<'_> {
    pub(crate) fn end(self, error: Option<&OTelSdkError>) {
        if error.is_some() {
            self.losses.lost.fetch_add(self.spans as u64, Ordering::Relaxed);
        }
        self.losses.report(error);
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        // An exporter that is used without the queue has no pending spans.
        let less = |pending: usize| Some(pending.saturating_sub(self.spans));
        let _ = self.losses.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A batch processor that counts what it drops: that of the SDK does not disclose it.
#[derive(Debug)]
pub(crate) struct Queue {
    batches: BatchSpanProcessor,
    losses: Arc<Losses>,
}

impl Queue {
    pub(crate) fn new<E: SpanExporter + 'static>(exporter: Conventions<E>) -> Self {
        let losses = Arc::<Losses>::default();
        let config = BatchConfigBuilder::default()
            .with_scheduled_delay(DELAY)
            .with_max_queue_size(MOST_PENDING)
            .build();
        let exporter = exporter.with_losses(Arc::clone(&losses));
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        Self { batches, losses }
    }

    pub(crate) fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.losses.enter() {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the second in which all spans of a settled run are to be with the receiver, they wait for at most
    /// a half: the rest is left for the way there.
    #[test]
    fn spans_wait_for_half_a_second_at_most() {
        assert!(2 * DELAY <= Duration::from_secs(1), "{DELAY:?}");
    }
}
