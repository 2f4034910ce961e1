//! What this crate warns of, for programs whose only subscriber exports spans and prints nothing.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Writes the warnings of this crate to the standard error, each as one line.
#[derive(Debug)]
pub(crate) struct Warnings;

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == "harness_otel" && *metadata.level() <= Level::WARN {
            let mut line = Line::default();
            event.record(&mut line);
            eprintln!("harness_otel: {}{}", line.message, line.fields);
        }
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields += &format!(", {name}={value:?}"),
        }
    }
}
