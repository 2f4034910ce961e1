//! What is lost, and how long the end waits: with exporters that the test controls.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use harness_otel::{Builder, Conventions, Telemetry};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

/// An exporter that waits until it is released, and fails if it is set to.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<(Mutex<Passed>, Condvar)>);

#[derive(Debug, Default)]
struct Passed {
    released: bool,
    fails: bool,
    begun: bool,
    spans: usize,
    /// Hears of what the thread that exports reports.
    log: Option<tracing::Dispatch>,
}

impl Gate {
    fn open() -> Self {
        let gate = Self::default();
        gate.release();
        gate
    }

    fn release(&self) {
        self.0.0.lock().unwrap().released = true;
        self.0.1.notify_all();
    }

    fn fail(&self, fails: bool) {
        self.0.0.lock().unwrap().fails = fails;
    }

    fn wait(&self, until: impl Fn(&Passed) -> bool) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |passed| !until(passed)).unwrap());
    }

    fn spans(&self) -> usize {
        self.0.0.lock().unwrap().spans
    }
}

impl SpanExporter for Gate {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.0.lock().unwrap().begun = true;
        if let Some(log) = self.0.0.lock().unwrap().log.take() {
            // For what the thread does next.
            std::mem::forget(tracing::dispatcher::set_default(&log));
        }
        self.0.1.notify_all();
        self.wait(|passed| passed.released);
        let mut passed = self.0.0.lock().unwrap();
        if passed.fails {
            return Err(OTelSdkError::InternalFailure("down".to_owned()));
        }
        passed.spans += batch.len();
        self.0.1.notify_all();
        Ok(())
    }
}

fn spans(builder: Builder, how_many: usize) -> Telemetry {
    let (telemetry, layer) = builder.layer().unwrap();
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    for _ in 0..how_many {
        tracing::info_span!("one").in_scope(|| {});
    }
    telemetry
}

#[test]
fn spans_that_wait_are_bounded_and_the_others_counted() {
    let (gate, log) = (Gate::default(), Log::default());
    let dispatch = tracing_subscriber::fmt().with_writer(log.clone()).finish().into();
    gate.0.0.lock().unwrap().log = Some(dispatch);
    let telemetry = spans(Telemetry::builder("test").spans(gate.clone()), 10_000);
    gate.wait(|passed| passed.begun);
    // Those that are being exported count as waiting.
    assert_eq!(telemetry.lost(), 10_000 - 8_192);
    gate.release();
    telemetry.flush().unwrap();
    assert_eq!(gate.spans(), 8_192);
    assert_eq!(telemetry.lost(), 10_000 - 8_192);
    let log = log.text();
    assert!(log.contains("the receiver is too slow, spans are lost"), "{log}");
    assert!(log.contains("spans=1808"), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
}

const UNFLUSHED: &str = "HARNESS_OTEL_UNFLUSHED";

/// The process of the test below.
#[test]
fn exports_what_it_does_not_flush() {
    if std::env::var_os(UNFLUSHED).is_none() {
        return;
    }
    let gate = Gate::open();
    let telemetry = spans(Telemetry::builder("test").spans(gate.clone()), 3);
    gate.wait(|passed| passed.spans == 3);
    drop(telemetry);
}

/// Whatever the variables of the SDK say: with these it would wait for a day, or for a thousand spans.
#[test]
fn spans_are_exported_by_themselves_after_the_delay_of_this_crate() {
    let alone = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drops::exports_what_it_does_not_flush"])
        .env(UNFLUSHED, "1")
        .env("OTEL_BSP_SCHEDULE_DELAY", "86400000")
        .env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1000")
        .output()
        .unwrap();
    assert!(alone.status.success(), "{alone:?}");
    assert!(String::from_utf8_lossy(&alone.stdout).contains("1 passed"), "{alone:?}");
}

#[tokio::test]
async fn shutdown_fails_if_something_that_was_left_is_lost() {
    let gate = Gate::open();
    gate.fail(true);
    let telemetry = spans(Telemetry::builder("test").spans(gate), 3);
    let error = telemetry.shutdown().await.unwrap_err().to_string();
    assert!(error.ends_with("3 spans are lost"), "{error}");
}

/// Inside of a runtime, dropping does not wait: with this grace it would do so indefinitely.
#[tokio::test]
async fn a_dropped_guard_hands_over_inside_of_a_runtime() {
    let gate = Gate::default();
    let grace = Duration::from_secs(86_400);
    drop(spans(Telemetry::builder("test").spans(gate.clone()).grace(grace), 3));
    gate.release();
    gate.wait(|passed| passed.spans == 3);
}

#[test]
fn a_dropped_guard_waits_outside_of_a_runtime() {
    let gate = Gate::open();
    drop(spans(Telemetry::builder("test").spans(gate.clone()), 3));
    assert_eq!(gate.spans(), 3);
}

/// The exporter never returns: without a limit, dropping would not return either.
#[test]
fn a_dropped_guard_does_not_wait_longer_than_its_grace() {
    let grace = Duration::from_millis(1);
    drop(spans(Telemetry::builder("test").spans(Gate::default()).grace(grace), 3));
    let builder = format!("{:?}", Telemetry::builder("test"));
    assert!(builder.contains("grace: 2s"), "{builder}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_loss_is_reported_once_until_an_export_succeeds() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    let _subscribed = tracing::subscriber::set_default(subscriber);
    let gate = Gate::open();
    let exporter = Conventions::new(gate.clone());
    for fails in [false, true, true, true, false, false, true, true] {
        gate.fail(fails);
        let _ = exporter.export(Vec::new()).await;
    }
    let log = log.text();
    assert_eq!(log.matches("failed to export spans").count(), 2, "{log}");
    assert_eq!(log.lines().count(), 2, "{log}");
}
