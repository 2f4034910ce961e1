//! OTLP to a receiver in another process.

use http::{HeaderMap, HeaderName, HeaderValue};
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

/// The receiver's address without slashes at its end. `no_tls` is what is expected instead of `https`, if
/// that is not built in. The exporters would take an empty address, or one without a scheme, for that of
/// another receiver, and fail later, and only in a log.
fn checked(endpoint: &str, no_tls: Option<&'static str>) -> Result<String, SetupError> {
    let endpoint = endpoint.trim().trim_end_matches('/');
    // What precedes the host may be a password.
    let shown = endpoint.rsplit('@').next().unwrap_or_default().to_owned();
    let wrong = |expected| Err(SetupError::Endpoint { endpoint: shown, expected });
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        return wrong("a URL such as `http://localhost:4318`");
    };
    if rest.is_empty() || rest.starts_with([':', '/', '?', '#']) {
        return wrong("a host after `://`");
    }
    match (scheme.to_ascii_lowercase().as_str(), no_tls) {
        ("http", _) | ("https", None) => Ok(endpoint.to_owned()),
        ("https", Some(expected)) => wrong(expected),
        _ => wrong("a URL that begins with `http://` or `https://`"),
    }
}

/// What is sent with each request. An empty value is refused: it is a token that was not set.
pub(crate) fn headers(given: Vec<(String, String)>) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wrong = |expected| SetupError::Header { name: name.clone(), expected };
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|_| wrong("a name such as `authorization`"))?;
        if value.trim().is_empty() {
            return Err(wrong("a value that is not empty"));
        }
        let text = HeaderValue::from_str(&value);
        let mut text = text.map_err(|_| wrong("a value on one line, of ASCII characters"))?;
        text.set_sensitive(true);
        headers.insert(key, text);
    }
    Ok(headers)
}

#[cfg(feature = "http")]
const NO_HTTPS: Option<&str> = match cfg!(feature = "http-tls") {
    true => None,
    false => Some("`http://`; for `https://`, the feature `http-tls` of `harness-otel`"),
};
#[cfg(feature = "grpc")]
const NO_GRPCS: Option<&str> = match cfg!(feature = "grpc-tls") {
    true => None,
    false => Some("`http://`; for `https://`, the feature `grpc-tls` of `harness-otel`"),
};

impl Wire {
    /// Connects when something is exported. Connections of gRPC live in a runtime.
    #[cfg_attr(not(feature = "grpc"), allow(unused_variables, clippy::ptr_arg))]
    pub(crate) fn exporters(
        self,
        headers: &HeaderMap,
        runtime: &mut Option<Runtime>,
    ) -> Result<(SpanExporter, MetricExporter), SetupError> {
        match self {
            #[cfg(feature = "http")]
            Self::Http(endpoint) => {
                use opentelemetry_otlp::WithHttpConfig as _;

                let endpoint = checked(&endpoint, NO_HTTPS)?;
                // The exporters decode what they get.
                let text = |(name, value): (&HeaderName, &HeaderValue)| {
                    Some((name.to_string(), value.to_str().ok()?.replace('%', "%25")))
                };
                let headers: std::collections::HashMap<_, _> =
                    headers.iter().filter_map(text).collect();
                let spans = SpanExporter::builder().with_http().with_headers(headers.clone());
                let spans = spans.with_endpoint(format!("{endpoint}/v1/traces"));
                let metrics = MetricExporter::builder().with_http().with_headers(headers);
                let metrics = metrics.with_endpoint(format!("{endpoint}/v1/metrics"));
                Ok((
                    spans.build().map_err(failed("spans"))?,
                    metrics.build().map_err(failed("metrics"))?,
                ))
            }
            #[cfg(feature = "grpc")]
            Self::Grpc(endpoint) => {
                use opentelemetry_otlp::WithTonicConfig as _;
                use opentelemetry_otlp::tonic_types::metadata::MetadataMap;

                let endpoint = checked(&endpoint, NO_GRPCS)?;
                if runtime.is_none() {
                    let made = tokio::runtime::Builder::new_multi_thread()
                        .worker_threads(1)
                        .thread_name("harness-otel-grpc")
                        .enable_all()
                        .build();
                    *runtime = Some(Runtime(Some(made.map_err(failed("spans"))?)));
                }
                let _inside = runtime.as_ref().and_then(|it| it.0.as_ref()).map(|it| it.enter());
                let headers = MetadataMap::from_headers(headers.clone());
                let spans = SpanExporter::builder().with_tonic().with_metadata(headers.clone());
                let spans = spans.with_endpoint(endpoint.clone());
                let metrics = MetricExporter::builder().with_tonic().with_metadata(headers);
                let metrics = metrics.with_endpoint(endpoint);
                // Without it, the exporters trust no certificate.
                #[cfg(feature = "grpc-tls")]
                let (spans, metrics) = {
                    use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;

                    let tls = ClientTlsConfig::new().with_enabled_roots();
                    (spans.with_tls_config(tls.clone()), metrics.with_tls_config(tls))
                };
                Ok((
                    spans.build().map_err(failed("spans"))?,
                    metrics.build().map_err(failed("metrics"))?,
                ))
            }
        }
    }
}

#[cfg(all(test, feature = "http", feature = "grpc"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tracing_subscriber::Registry;

    use super::*;
    use crate::Telemetry;

    /// Why no exporter is made.
    fn refused(builder: crate::Builder) -> Option<String> {
        builder.layer::<Registry>().err().map(|error| error.to_string())
    }

    #[test]
    fn without_tls_an_address_that_needs_it_is_refused_and_the_feature_is_named() {
        for endpoint in ["https://me:canary@host:4318/", "HTTPS://host"] {
            let error = checked(endpoint, Some("`http://`")).unwrap_err().to_string();
            assert!(error.contains("`http://`") && !error.contains("canary"), "{error}");
            assert_eq!(checked(endpoint, None).unwrap(), endpoint.trim_end_matches('/'));
        }
        let builder = || Telemetry::builder("test");
        for (builder, builtin, feature) in [
            (builder().http("https://localhost:1"), cfg!(feature = "http-tls"), "`http-tls`"),
            (builder().grpc("https://localhost:1"), cfg!(feature = "grpc-tls"), "`grpc-tls`"),
        ] {
            match refused(builder) {
                Some(error) => assert!(!builtin && error.contains(feature), "{error}"),
                None => assert!(builtin, "{feature} is not built in"),
            }
        }
    }
}
