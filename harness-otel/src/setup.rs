//! One call that sets everything up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanExporter};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::console::Console;
use crate::content::Capture;
use crate::export::{Conventions, Redact};
use crate::late::Late;
use crate::metrics::Metrics;
use crate::propagate::W3c;
use crate::queue::Queue;
use crate::semconv::Names;
use crate::telemetry::{Open, Runtime, Telemetry};
use crate::warnings::Warnings;

/// How often metrics are exported.
const EVERY: Duration = Duration::from_secs(5);
/// How long a [`Telemetry`] that is dropped waits.
const GRACE: Duration = Duration::from_secs(2);

/// What exports: itself a network, say, whose threads must not be traced.
const EXPORTERS: [&str; 7] =
    ["opentelemetry", "opentelemetry_sdk", "opentelemetry_otlp", "hyper", "h2", "reqwest", "tonic"];

type MakeQueue = Box<dyn FnOnce(Names, Option<Redact>) -> Queue>;
type AddReader = Box<dyn FnOnce(MeterProviderBuilder) -> MeterProviderBuilder>;

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
    /// The address of a receiver is none.
    #[error("the endpoint of a receiver is `{endpoint}` (expected {expected})")]
    Endpoint {
        /// What was given, without the name and the password of a user.
        endpoint: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` of requests to receivers cannot be sent (expected {expected})")]
    Header {
        /// Its name.
        name: String,
        /// What was expected.
        expected: &'static str,
    },
}

/// What to set up: see [`Telemetry::builder`].
#[must_use = "nothing is set up before `install` or `layer`"]
pub struct Builder {
    service: String,
    attributes: Vec<KeyValue>,
    names: Names,
    redact: Option<Redact>,
    ratio: f64,
    content: usize,
    grace: Duration,
    spans: Vec<MakeQueue>,
    readers: Vec<AddReader>,
    #[cfg(any(feature = "http", feature = "grpc"))]
    wires: Vec<crate::otlp::Wire>,
    #[cfg(any(feature = "http", feature = "grpc"))]
    headers: Vec<(String, String)>,
}

impl Builder {
    pub(crate) fn new(service: String) -> Self {
        Self {
            service,
            attributes: Vec::new(),
            names: Names::default(),
            redact: None,
            ratio: 1.0,
            content: 0,
            grace: GRACE,
            spans: Vec::new(),
            readers: Vec::new(),
            #[cfg(any(feature = "http", feature = "grpc"))]
            wires: Vec::new(),
            #[cfg(any(feature = "http", feature = "grpc"))]
            headers: Vec::new(),
        }
    }

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

    /// Exports the messages of model calls, and the arguments and results of tool calls, too: each
    /// attribute up to so many bytes. A text that is longer is cut, and of messages the last are
    /// exported. Without it, none are.
    ///
    /// They may contain what persons said, and secrets: [`redact`](Self::redact) sees them as the
    /// attributes `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`,
    /// `gen_ai.tool.call.arguments` and `gen_ai.tool.call.result`.
    pub fn content(mut self, most_bytes: usize) -> Self {
        self.content = most_bytes;
        self
    }

    /// Writes each span as a line to the standard error, for development.
    pub fn console(self) -> Self {
        self.spans(Console::default())
    }

    /// Exports spans with an exporter of your own.
    pub fn spans(mut self, exporter: impl SpanExporter + 'static) -> Self {
        self.spans.push(Box::new(move |names, redact| {
            Queue::new(Conventions::new(exporter).names(names).with_redact(redact))
        }));
        self
    }

    /// Exports metrics with an exporter of your own.
    pub fn metrics(mut self, exporter: impl PushMetricExporter) -> Self {
        self.readers.push(Box::new(move |builder| {
            builder.with_reader(PeriodicReader::builder(exporter).with_interval(EVERY).build())
        }));
        self
    }

    /// Exports spans and metrics by OTLP over HTTP, to a receiver such as `http://localhost:4318`, or, with
    /// the feature `http-tls`, `https://otlp.example.com`.
    #[cfg(feature = "http")]
    pub fn http(mut self, endpoint: impl Into<String>) -> Self {
        self.wires.push(crate::otlp::Wire::Http(endpoint.into()));
        self
    }

    /// Exports spans and metrics by OTLP over gRPC, to a receiver such as `http://localhost:4317`, or, with
    /// the feature `grpc-tls`, `https://otlp.example.com`. It has a thread of its own for that, so that it
    /// also works outside of a tokio runtime.
    #[cfg(feature = "grpc")]
    pub fn grpc(mut self, endpoint: impl Into<String>) -> Self {
        self.wires.push(crate::otlp::Wire::Grpc(endpoint.into()));
        self
    }

    /// Adds a header to each request to a receiver, such as a token. Those of the environment variable
    /// `OTEL_EXPORTER_OTLP_HEADERS` are sent as well.
    #[cfg(any(feature = "http", feature = "grpc"))]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long a [`Telemetry`] waits at most for the receiver when it is dropped. The default is
    /// two seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Makes the exporters that need a network.
    #[cfg(any(feature = "http", feature = "grpc"))]
    fn connect(mut self) -> Result<(Self, Option<Runtime>), SetupError> {
        let mut runtime = None;
        let headers = crate::otlp::headers(std::mem::take(&mut self.headers))?;
        for wire in std::mem::take(&mut self.wires) {
            let (spans, metrics) = wire.exporters(&headers, &mut runtime)?;
            self = self.spans(spans).metrics(metrics);
        }
        Ok((self, runtime))
    }

    #[cfg(not(any(feature = "http", feature = "grpc")))]
    #[allow(clippy::unnecessary_wraps, reason = "exporters that need a network can fail")]
    fn connect(self) -> Result<(Self, Option<Runtime>), SetupError> {
        Ok((self, None))
    }

    /// Sets everything up, with a `tracing` subscriber for the process that exports spans, writes what
    /// this crate warns of to the standard error, and does nothing else.
    ///
    /// # Errors
    /// An exporter cannot be made, an address or a header is wrong, or there is a subscriber.
    pub fn install(self) -> Result<Telemetry, SetupError> {
        let (telemetry, layer) = self.layer()?;
        match tracing_subscriber::registry().with(layer).with(Warnings).try_init() {
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
    /// An exporter cannot be made, or an address or a header is wrong.
    pub fn layer<S>(self) -> Result<(Telemetry, impl Layer<S>), SetupError>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let (this, runtime) = self.connect()?;
        let Self { service, attributes, names, redact, ratio, content, .. } = this;
        let Self { grace, spans, readers, .. } = this;
        let resource =
            Resource::builder().with_service_name(service).with_attributes(attributes).build();
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio)));
        let mut traces =
            SdkTracerProvider::builder().with_resource(resource.clone()).with_sampler(sampler);
        let mut losses = Vec::new();
        for make in spans {
            let queue = make(names, redact.clone());
            losses.push(queue.losses());
            traces = traces.with_span_processor(queue);
        }
        let mut meters = SdkMeterProvider::builder().with_resource(resource);
        for add in readers {
            meters = add(meters);
        }
        let (traces, meters) = (traces.build(), meters.build());
        let scope = || {
            InstrumentationScope::builder("harness").with_version(env!("CARGO_PKG_VERSION")).build()
        };
        let metrics = Metrics::new(&meters.meter_with_scope(scope()), names);
        let spans = tracing_opentelemetry::layer()
            .with_tracer(Late(traces.tracer_with_scope(scope())))
            .with_location(false)
            .with_threads(false)
            .with_level(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let exporters = EXPORTERS.map(|target| (target, LevelFilter::OFF));
        let filter = Targets::new().with_default(LevelFilter::INFO).with_targets(exporters);
        // The first one stays: each reads the context of any span.
        harness::observe::trace::install(W3c::new());
        let open = Open { traces, meters, losses: losses.clone(), _runtime: runtime };
        let telemetry = Telemetry { metrics, losses, grace, open: Some(open) };
        Ok((telemetry, Capture { most: content }.and_then(spans).with_filter(filter)))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("service", &self.service)
            .field("names", &self.names)
            .field("ratio", &self.ratio)
            .field("content", &self.content)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
