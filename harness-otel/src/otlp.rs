//! OTLP to a receiver in another process.

use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig as _};

use crate::setup::SetupError;
use crate::telemetry::Runtime;

/// A protocol, and the receiver's address.
pub(crate) enum Wire {
    #[cfg(feature = "http")]
    Http(String),
    #[cfg(feature = "grpc")]
    Grpc(String),
}

fn failed<E: std::fmt::Display>(signal: &'static str) -> impl FnOnce(E) -> SetupError {
    move |error| SetupError::Exporter { signal, reason: error.to_string() }
}

impl Wire {
    /// Connects when something is exported. Connections of gRPC live in a runtime.
    #[cfg_attr(not(feature = "grpc"), allow(unused_variables, clippy::ptr_arg))]
    pub(crate) fn exporters(
        self,
        runtime: &mut Option<Runtime>,
    ) -> Result<(SpanExporter, MetricExporter), SetupError> {
        match self {
            #[cfg(feature = "http")]
            Self::Http(endpoint) => {
                let endpoint = endpoint.trim_end_matches('/');
                let spans = SpanExporter::builder().with_http();
                let spans = spans.with_endpoint(format!("{endpoint}/v1/traces"));
                let metrics = MetricExporter::builder().with_http();
                let metrics = metrics.with_endpoint(format!("{endpoint}/v1/metrics"));
                Ok((
                    spans.build().map_err(failed("spans"))?,
                    metrics.build().map_err(failed("metrics"))?,
                ))
            }
            #[cfg(feature = "grpc")]
            Self::Grpc(endpoint) => {
                if runtime.is_none() {
                    let made = tokio::runtime::Builder::new_multi_thread()
                        .worker_threads(1)
                        .thread_name("harness-otel-grpc")
                        .enable_all()
                        .build();
                    *runtime = Some(Runtime(Some(made.map_err(failed("spans"))?)));
                }
                let _inside = runtime.as_ref().and_then(|it| it.0.as_ref()).map(|it| it.enter());
                let spans = SpanExporter::builder().with_tonic().with_endpoint(endpoint.clone());
                let metrics = MetricExporter::builder().with_tonic().with_endpoint(endpoint);
                Ok((
                    spans.build().map_err(failed("spans"))?,
                    metrics.build().map_err(failed("metrics"))?,
                ))
            }
        }
    }
}
