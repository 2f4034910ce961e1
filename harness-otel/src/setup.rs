//! One call that sets everything up, and the guard that ends it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanExporter,
};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::console::Console;
use crate::export::{Conventions, Redact};
use crate::metrics::Metrics;
use crate::propagate::W3c;
use crate::semconv::Names;

/// How long spans wait for others before they are exported.
const DELAY: Duration = Duration::from_millis(500);
/// How many spans may wait. Further ones are dropped.
const MOST_PENDING: usize = 8_192;
/// How often metrics are exported.
const EVERY: Duration = Duration::from_secs(5);
/// How long a [`Telemetry`] that is dropped waits.
const GRACE: Duration = Duration::from_secs(2);
/// How long [`Telemetry::shutdown`] waits for the receiver.
const PATIENCE: Duration = Duration::from_secs(10);

/// What exports: itself a network, say, whose threads must not be traced.
const EXPORTERS: [&str; 7] =
    ["opentelemetry", "opentelemetry_sdk", "opentelemetry_otlp", "hyper", "h2", "reqwest", "tonic"];

type Spans = Box<dyn FnOnce(Names, Option<Redact>) -> Result<BatchSpanProcessor, SetupError>>;
type Readers = Box<dyn FnOnce(MeterProviderBuilder) -> Result<MeterProviderBuilder, SetupError>>;

/// Why telemetry was not set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The program has a subscriber.
    #[error("a `tracing` subscriber is installed already (add `Builder::layer` to it)")]
    Subscriber,
    /// The transport cannot be made.
    #[error("failed to create the exporter of {signal} (check the endpoint): {reason}")]
    Exporter {
        /// `spans` or `metrics`.
        signal: &'static str,
        /// What the transport reports.
        reason: String,
    },
}

/// Why not everything was exported.
#[derive(Debug, thiserror::Error)]
#[error("failed to export what was left (is the receiver reachable?): {0}")]
pub struct ShutdownError(String);

/// What to set up: see [`Telemetry::builder`].
#[must_use = "nothing is set up before `install` or `layer`"]
pub struct Builder {
    service: String,
    attributes: Vec<KeyValue>,
    names: Names,
    redact: Option<Redact>,
    ratio: f64,
    spans: Vec<Spans>,
    readers: Vec<Readers>,
}

impl Builder {
    /// Adds an attribute of the service, such as its version.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.push(KeyValue::new(name.into(), value));
        self
    }

    /// Sets which names of the conventions are used.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Sets the part of the runs that are sampled, from 0 to 1. The default is all. A run in the trace of
    /// another system is sampled as that system has decided.
    pub fn sample(mut self, ratio: f64) -> Self {
        self.ratio = ratio;
        self
    }

    /// Replaces the text of attributes before they are exported: see
    /// [`Conventions::redact`](crate::Conventions::redact).
    pub fn redact(
        mut self,
        redact: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.redact = Some(Arc::new(redact));
        self
    }

    /// Writes each span as a line to the standard error, for development.
    pub fn console(self) -> Self {
        self.spans(Console::default())
    }

    /// Exports spans with an exporter of your own.
    pub fn spans(mut self, exporter: impl SpanExporter + 'static) -> Self {
        self.spans.push(Box::new(move |names, redact| Ok(batched(exporter, names, redact))));
        self
    }

    /// Exports metrics with an exporter of your own.
    pub fn metrics(mut self, exporter: impl PushMetricExporter) -> Self {
        self.readers.push(Box::new(move |builder| Ok(read(builder, exporter))));
        self
    }

    /// Exports spans and metrics by OTLP over HTTP, to a receiver such as `http://localhost:4318`.
    #[cfg(feature = "http")]
    pub fn http(mut self, endpoint: impl Into<String>) -> Self {
        use opentelemetry_otlp::WithExportConfig as _;

        let endpoint = endpoint.into();
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let (traces, metrics) = (format!("{endpoint}/v1/traces"), format!("{endpoint}/v1/metrics"));
        self.spans.push(Box::new(move |names, redact| {
            let exporter = opentelemetry_otlp::SpanExporter::builder().with_http();
            let exporter = exporter.with_endpoint(traces).build().map_err(not_made("spans"))?;
            Ok(batched(exporter, names, redact))
        }));
        self.readers.push(Box::new(move |builder| {
            let exporter = opentelemetry_otlp::MetricExporter::builder().with_http();
            let exporter = exporter.with_endpoint(metrics).build().map_err(not_made("metrics"))?;
            Ok(read(builder, exporter))
        }));
        self
    }

    /// Sets everything up, with a `tracing` subscriber for the process that exports spans and does
    /// nothing else.
    ///
    /// # Errors
    /// An exporter cannot be made, or there is a subscriber.
    pub fn install(self) -> Result<Telemetry, SetupError> {
        let (telemetry, layer) = self.layer()?;
        match tracing_subscriber::registry().with(layer).try_init() {
            Ok(()) => Ok(telemetry),
            Err(_) => Err(SetupError::Subscriber),
        }
    }

    /// Sets everything up for a program that has a subscriber: add the layer to it.
    ///
    /// ```
    /// use harness_otel::Telemetry;
    /// use tracing_subscriber::prelude::*;
    ///
    /// let (telemetry, layer) = Telemetry::builder("my-service").console().layer()?;
    /// let subscriber = tracing_subscriber::registry().with(layer); // and what the program has
    /// # let _ = (subscriber, telemetry);
    /// # Ok::<(), harness_otel::SetupError>(())
    /// ```
    ///
    /// # Errors
    /// An exporter cannot be made.
    pub fn layer<S>(self) -> Result<(Telemetry, impl Layer<S>), SetupError>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let Self { service, attributes, names, redact, ratio, spans, readers } = self;
        let resource =
            Resource::builder().with_service_name(service).with_attributes(attributes).build();
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio)));
        let mut traces =
            SdkTracerProvider::builder().with_resource(resource.clone()).with_sampler(sampler);
        for make in spans {
            traces = traces.with_span_processor(make(names, redact.clone())?);
        }
        let mut meters = SdkMeterProvider::builder().with_resource(resource);
        for make in readers {
            meters = make(meters)?;
        }
        let (traces, meters) = (traces.build(), meters.build());
        let scope = || {
            InstrumentationScope::builder("harness").with_version(env!("CARGO_PKG_VERSION")).build()
        };
        let metrics = Metrics::new(&meters.meter_with_scope(scope()), names);
        let spans = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer_with_scope(scope()))
            .with_location(false)
            .with_threads(false)
            .with_level(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let exporters = EXPORTERS.map(|target| (target, LevelFilter::OFF));
        let filter = Targets::new().with_default(LevelFilter::INFO).with_targets(exporters);
        // The first one stays: each reads the context of any span.
        harness::observe::trace::install(W3c::new());
        let telemetry = Telemetry { metrics, open: Some(Open { traces, meters }) };
        Ok((telemetry, spans.with_filter(filter)))
    }
}

#[cfg(feature = "http")]
fn not_made(
    signal: &'static str,
) -> impl FnOnce(opentelemetry_otlp::ExporterBuildError) -> SetupError {
    move |error| SetupError::Exporter { signal, reason: error.to_string() }
}

fn batched(
    exporter: impl SpanExporter + 'static,
    names: Names,
    redact: Option<Redact>,
) -> BatchSpanProcessor {
    let config = BatchConfigBuilder::default()
        .with_scheduled_delay(DELAY)
        .with_max_queue_size(MOST_PENDING)
        .build();
    let exporter = Conventions::new(exporter).names(names).with_redact(redact);
    BatchSpanProcessor::builder(exporter).with_batch_config(config).build()
}

fn read(builder: MeterProviderBuilder, exporter: impl PushMetricExporter) -> MeterProviderBuilder {
    builder.with_reader(PeriodicReader::builder(exporter).with_interval(EVERY).build())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("service", &self.service)
            .field("names", &self.names)
            .field("ratio", &self.ratio)
            .finish_non_exhaustive()
    }
}

/// Exports spans and metrics, until it is [shut down](Self::shutdown) or dropped.
///
/// Dropped, it exports what is left, for at most two seconds: in this thread, or, inside of a tokio
/// runtime, which must not be blocked, in a thread of its own, for which the program does not wait.
#[must_use = "dropping it ends the export"]
pub struct Telemetry {
    metrics: Metrics,
    open: Option<Open>,
}

struct Open {
    traces: SdkTracerProvider,
    meters: SdkMeterProvider,
}

impl Open {
    fn flush(&self) -> Result<(), ShutdownError> {
        both(self.traces.force_flush(), self.meters.force_flush())
    }

    fn close(self, within: Duration) -> Result<(), ShutdownError> {
        both(self.traces.shutdown_with_timeout(within), self.meters.shutdown_with_timeout(within))
    }
}

fn both(
    spans: Result<(), OTelSdkError>,
    metrics: Result<(), OTelSdkError>,
) -> Result<(), ShutdownError> {
    spans.and(metrics).map_err(|error| ShutdownError(error.to_string()))
}

impl Telemetry {
    /// Sets up the export of a service's spans and metrics. See the [crate](crate).
    pub fn builder(service: impl Into<String>) -> Builder {
        Builder {
            service: service.into(),
            attributes: Vec::new(),
            names: Names::default(),
            redact: None,
            ratio: 1.0,
            spans: Vec::new(),
            readers: Vec::new(),
        }
    }

    /// The observer that makes metrics: pass it to `.observe(..)` of harnesses or agents.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Exports what is pending, and blocks until that is done.
    ///
    /// # Errors
    /// The receiver did not take it.
    pub fn flush(&self) -> Result<(), ShutdownError> {
        self.open.as_ref().map_or(Ok(()), Open::flush)
    }

    /// Exports what is left and ends the export. When it returns `Ok`, the receiver has everything.
    ///
    /// # Errors
    /// The receiver did not take it within ten seconds.
    pub async fn shutdown(mut self) -> Result<(), ShutdownError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let (done, closed) = tokio::sync::oneshot::channel();
        // It blocks, and the exporters need the runtime.
        let closing = std::thread::Builder::new().name("harness-otel-shutdown".to_owned());
        let closing = closing.spawn(move || drop(done.send(open.close(PATIENCE))));
        closing.map_err(|error| ShutdownError(error.to_string()))?;
        closed.await.unwrap_or_else(|_| Err(ShutdownError("the export panicked".to_owned())))
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let close = move || {
            if let Err(error) = open.close(GRACE) {
                tracing::warn!(target: "harness_otel", %error, "telemetry was dropped");
            }
        };
        let closing = std::thread::Builder::new().name("harness-otel-shutdown".to_owned());
        let Ok(closing) = closing.spawn(close) else { return };
        if tokio::runtime::Handle::try_current().is_err() {
            let _ = closing.join();
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("open", &self.open.is_some()).finish_non_exhaustive()
    }
}
