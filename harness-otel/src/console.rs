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
