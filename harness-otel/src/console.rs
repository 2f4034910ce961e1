//! Spans as lines, for development.

use std::fmt::Write as _;
use std::io::Write as _;

use opentelemetry::trace::Status;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// An exporter that writes each span that is over as a line to the standard error: how long it took, its
/// name, its error, its attributes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Console;

impl SpanExporter for Console {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let lines: String = batch.iter().map(line).collect();
        // A closed terminal is not an error.
        let _ = std::io::stderr().write_all(lines.as_bytes());
        Ok(())
    }
}

fn line(span: &SpanData) -> String {
    let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
    let mut line = format!("{took:>10.1?}  {}", span.name);
    if let Status::Error { description } = &span.status {
        let _ = write!(line, "  ERROR {description}");
    }
    for attribute in &span.attributes {
        let _ = write!(line, "  {}={}", attribute.key, attribute.value);
    }
    let mut line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::{Duration, SystemTime};

    use opentelemetry::KeyValue;
    use opentelemetry::trace::{Span as _, SpanBuilder, Tracer as _, TracerProvider as _};
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

    use super::*;

    #[test]
    fn a_span_is_one_line_of_text() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let begun = SystemTime::UNIX_EPOCH;
        let attribute = KeyValue::new("a", "x\n\u{1b}[31my");
        let span =
            SpanBuilder::from_name("step Work").with_start_time(begun).with_attributes([attribute]);
        let mut span = provider.tracer("test").build(span);
        span.set_status(Status::error("lost"));
        span.end_with_timestamp(begun + Duration::from_millis(1_234));
        let spans = exporter.get_finished_spans().unwrap();
        assert_eq!(line(&spans[0]), "      1.2s  step Work  ERROR lost  a=x  [31my\n");
    }
}
