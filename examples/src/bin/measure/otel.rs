//! What spans cost a run: with the layer of `harness-otel` and a run that is not sampled, and with one
//! that is.

use harness_otel::Telemetry;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tracing::dispatcher::{Dispatch, with_default};
use tracing_subscriber::layer::SubscriberExt as _;

use super::{Figure, compare, ours};

const STEPS: u64 = 1_000;
const RUNS: u64 = 20;
/// What a step of a sampled run may take, in nanoseconds.
const ALLOWED: f64 = 5_000.0;

/// Receives everything in no time.
#[derive(Debug)]
struct Sink;

impl SpanExporter for Sink {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

/// Runs with spans of a part of the runs, beside runs without a subscriber.
fn beside_bare(case: &str, sampled: f64) -> Option<Figure> {
    let agent = ours::agent(STEPS).ok()?;
    let builder = Telemetry::builder("measure").spans(Sink).sample(sampled);
    let (telemetry, layer) = builder.layer().ok()?;
    let traced = Dispatch::new(tracing_subscriber::registry().with(layer));
    let figure = compare(
        format!("{case}/{STEPS}"),
        STEPS * RUNS,
        || {
            for _ in 0..RUNS {
                with_default(&traced, || ours::run(&agent, STEPS));
                // The exporter's thread is not measured, but none of its spans may be dropped.
                let _ = telemetry.flush();
            }
        },
        || (0..RUNS).for_each(|_| ours::run(&agent, STEPS)),
    );
    assert_eq!(telemetry.lost(), 0, "spans are lost");
    Some(figure)
}

/// Beside the same run without a subscriber.
pub(super) fn off() -> Vec<Figure> {
    beside_bare("otel-off", 0.0).into_iter().collect()
}

/// Beside what a step may take.
pub(super) fn on() -> Vec<Figure> {
    let figure = beside_bare("otel-on", 1.0);
    let beside = |figure: Figure| Figure { floor: ALLOWED, ratio: figure.ours / ALLOWED, ..figure };
    figure.into_iter().map(beside).collect()
}
