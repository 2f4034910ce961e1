//! What exports spans and metrics, until it is shut down or dropped.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::metrics::Metrics;
use crate::queue::Losses;
use crate::setup::Builder;

/// How long [`Telemetry::shutdown`] waits for the receiver.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why not everything was exported.
#[derive(Debug, thiserror::Error)]
#[error("failed to export what was left (is the receiver reachable?): {0}")]
pub struct ShutdownError(String);

impl From<OTelSdkError> for ShutdownError {
    fn from(error: OTelSdkError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for ShutdownError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Exports spans and metrics, until it is [shut down](Self::shutdown) or dropped.
///
/// Dropped, it exports what is left, for at most two seconds: in this thread, or, inside of a tokio
/// runtime, which must not be blocked, in a thread of its own, for which the program does not wait.
#[must_use = "dropping it ends the export"]
pub struct Telemetry {
    pub(crate) metrics: Metrics,
    pub(crate) losses: Vec<Arc<Losses>>,
    pub(crate) grace: Duration,
    pub(crate) open: Option<Open>,
}

/// The runtime of the connections, if there are some that need one. It may be dropped anywhere.
#[derive(Debug)]
pub(crate) struct Runtime(#[allow(dead_code)] pub(crate) Option<tokio::runtime::Runtime>);

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) struct Open {
    pub(crate) traces: SdkTracerProvider,
    pub(crate) meters: SdkMeterProvider,
    pub(crate) losses: Vec<Arc<Losses>>,
    pub(crate) _runtime: Option<Runtime>,
}

fn lost(losses: &[Arc<Losses>]) -> u64 {
    losses.iter().map(|losses| losses.lost()).sum()
}

fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<thread::JoinHandle<T>> {
    thread::Builder::new().name("harness-otel-shutdown".to_owned()).spawn(work)
}

impl Open {
    fn flush(&self) -> Result<(), ShutdownError> {
        self.traces.force_flush()?;
        Ok(self.meters.force_flush()?)
    }

    /// The two wait for the receiver at the same time. That of the SDK for metrics waits for as long as
    /// it decides.
    fn end(self, within: Duration) -> Result<(), ShutdownError> {
        let before = lost(&self.losses);
        let meters = self.meters.clone();
        let metrics = spawn(move || meters.shutdown_with_timeout(within))?;
        let spans = self.traces.shutdown_with_timeout(within);
        let metrics =
            metrics.join().map_err(|_| ShutdownError("the export panicked".to_owned()))?;
        // An export that fails at the end is no error for the SDK.
        let lost = lost(&self.losses) - before;
        spans?;
        if lost > 0 {
            return Err(ShutdownError(format!("{lost} spans are lost")));
        }
        Ok(metrics?)
    }

    /// Blocks, but not for longer than that. The exporters need the runtime, if there is one, so it must
    /// not be in a thread of the runtime.
    fn close(self, within: Duration) -> Result<(), ShutdownError> {
        let (done, ended) = mpsc::sync_channel(1);
        spawn(move || drop(done.send(self.end(within))))?;
        ended.recv_timeout(within).unwrap_or_else(|error| {
            Err(ShutdownError(match error {
                mpsc::RecvTimeoutError::Timeout => format!("it takes longer than {within:?}"),
                mpsc::RecvTimeoutError::Disconnected => "the export panicked".to_owned(),
            }))
        })
    }
}

impl Telemetry {
    /// Sets up the export of a service's spans and metrics. See the [crate](crate).
    pub fn builder(service: impl Into<String>) -> Builder {
        Builder::new(service.into())
    }

    /// The observer that makes metrics: pass it to `.observe(..)` of harnesses or agents.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// How many spans were lost: because their export failed, or because too many were waiting for a
    /// receiver that is slow or down. Counted for each exporter.
    pub fn lost(&self) -> u64 {
        lost(&self.losses)
    }

    /// Exports what is pending, and blocks until that is done.
    ///
    /// # Errors
    /// The receiver did not take it.
    pub fn flush(&self) -> Result<(), ShutdownError> {
        self.open.as_ref().map_or(Ok(()), Open::flush)
    }

    /// Exports what is left and ends the export. When it returns `Ok`, the receiver has everything that
    /// was not [lost](Self::lost) before.
    ///
    /// # Errors
    /// The receiver did not take it within ten seconds.
    pub async fn shutdown(mut self) -> Result<(), ShutdownError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let (done, closed) = tokio::sync::oneshot::channel();
        spawn(move || drop(done.send(open.close(PATIENCE))))?;
        closed.await.unwrap_or_else(|_| Err(ShutdownError("the export panicked".to_owned())))
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let grace = self.grace;
        let close = move || {
            if let Err(error) = open.close(grace) {
                tracing::warn!(target: "harness_otel", %error, "telemetry was dropped");
            }
        };
        if tokio::runtime::Handle::try_current().is_err() {
            close();
        } else {
            // Without a thread, what is left is lost.
            let _ = spawn(close);
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("open", &self.open.is_some())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
