//! Gives spans of `harness` their names, on the exporter's thread.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Array, Key, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::queue::Losses;
use crate::semconv::{self, Names};

/// The longest text of an attribute, in bytes.
const MAX_TEXT: usize = 4096;
/// What the redaction calls the message of an event, and why a span has failed.
const MESSAGE: &str = "message";
const STATUS: &str = "otel.status_description";

pub(crate) type Redact = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// An exporter that gives the spans of `harness` the names of the [conventions](semconv), and passes them
/// to another one. Wrap an exporter of your own with it; [`Telemetry`](crate::Telemetry) does so with
/// its own.
///
/// Spans of other crates keep their names. The text of an attribute, and the message of an event, is cut at
/// 4 KiB.
///
/// ```
/// use harness_otel::{Console, Conventions};
/// use opentelemetry_sdk::trace::SdkTracerProvider;
///
/// let exporter = Conventions::new(Console::default());
/// let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
/// # let _ = provider;
/// ```
pub struct Conventions<E> {
    exporter: E,
    names: Names,
    redact: Option<Redact>,
    losses: Arc<Losses>,
}

impl<E: SpanExporter> Conventions<E> {
    /// Wraps an exporter.
    pub fn new(exporter: E) -> Self {
        Self { exporter, names: Names::default(), redact: None, losses: Arc::default() }
    }

    /// Sets which names are used.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Replaces the text of attributes, of spans of any crate. The function takes the name and the text
    /// of an attribute, and returns the text to export, or `None` to omit the attribute. Of an attribute
    /// with several texts it gets each.
    ///
    /// It also gets, as `message`, the messages of the events of other crates, and, as
    /// `otel.status_description`, what these say of a span that has failed.
    ///
    /// ```
    /// # use harness_otel::{Conventions, Console};
    /// let exporter = Conventions::new(Console::default())
    ///     .redact(|name, text| (name != "db.query.text").then(|| text.to_owned()));
    /// # let _ = exporter;
    /// ```
    #[must_use]
    pub fn redact(
        mut self,
        redact: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.redact = Some(Arc::new(redact));
        self
    }

    pub(crate) fn with_redact(mut self, redact: Option<Redact>) -> Self {
        self.redact = redact;
        self
    }

    pub(crate) fn with_losses(mut self, losses: Arc<Losses>) -> Self {
        self.losses = losses;
        self
    }

    fn convert(&self, mut span: SpanData) -> SpanData {
        self.clean_messages(&mut span);
        if let Some(kind) = span.name.strip_prefix("harness.").map(str::to_owned) {
            self.name(&mut span, &kind);
        }
        self.clean(&mut span.attributes);
        for event in &mut span.events.events {
            self.clean(&mut event.attributes);
        }
        span
    }

    /// Gives a span of `harness` its names.
    fn name(&self, span: &mut SpanData, kind: &str) {
        let mut attributes = Vec::with_capacity(span.attributes.len() + 2);
        for KeyValue { key, value, .. } in std::mem::take(&mut span.attributes) {
            if key.as_str() == "error_kind" {
                span.status = Status::error(value.to_string());
            }
            match (key.as_str(), &value) {
                ("model", Value::String(model)) => attributes.extend(of_model(model.as_str())),
                ("replied", Value::String(model)) => {
                    let model = model.as_str();
                    let name = model.split_once('/').map_or(model, |(_, name)| name).to_owned();
                    attributes.push(KeyValue::new(semconv::RESPONSE_MODEL, name));
                }
                ("stop", Value::String(stop)) => {
                    let stop = Value::Array(Array::String(vec![stop.clone()]));
                    attributes.push(KeyValue::new(semconv::FINISH_REASONS, stop));
                }
                ("cost_micros", Value::I64(micros)) => {
                    #[allow(clippy::cast_precision_loss)]
                    attributes.push(KeyValue::new(semconv::COST, *micros as f64 / 1e6));
                }
                (field, _) => {
                    let key = match semconv::attribute(kind, field, self.names) {
                        Some(name) => Key::from_static_str(name),
                        None => key,
                    };
                    attributes.push(KeyValue::new(key, value));
                }
            }
        }
        let text = |key: &str| {
            let found = attributes.iter().find(|it| it.key.as_str() == key);
            found.map(|it| it.value.to_string()).unwrap_or_default()
        };
        let is_root = !attributes.iter().any(|it| it.key.as_str() == semconv::PARENT_RUN);
        let (operation, subject) = match kind {
            "run" if is_root && self.names == Names::Newest => {
                (semconv::INVOKE_WORKFLOW, text(semconv::WORKFLOW))
            }
            "run" => (semconv::INVOKE_AGENT, text(semconv::AGENT)),
            "chat" => (semconv::CHAT, text(semconv::REQUEST_MODEL)),
            "tool" => (semconv::EXECUTE_TOOL, text(semconv::TOOL)),
            "item" => ("item", format!("{} {}", text(semconv::STEP), text(semconv::ITEM))),
            "replay" => ("replay", text(semconv::STEP)),
            _ => ("step", text(semconv::STEP)),
        };
        span.name = Cow::Owned(format!("{operation} {subject}"));
        span.span_kind = if kind == "chat" { SpanKind::Client } else { SpanKind::Internal };
        if matches!(kind, "run" | "chat" | "tool") {
            attributes.push(KeyValue::new(semconv::OPERATION, operation));
        }
        span.attributes = attributes;
        for event in &mut span.events.events {
            // Those of other crates are as they were.
            if !event.attributes.iter().any(is_ours) {
                continue;
            }
            event.name = Cow::Owned(format!("harness.{}", event.name.replace(' ', "_")));
            event.attributes.retain(|it| !matches!(it.key.as_str(), "level" | "target"));
            for attribute in &mut event.attributes {
                let field = attribute.key.as_str();
                attribute.key = match field {
                    "error_kind" => Key::from_static_str(semconv::ERROR_TYPE),
                    field => Key::new(format!("harness.{field}")),
                };
            }
        }
    }

    /// Redacts what was written for persons: messages of events, and why a span has failed. Those of
    /// `harness` are names.
    fn clean_messages(&self, span: &mut SpanData) {
        for event in &mut span.events.events {
            // Names that are not made for the event are in the source.
            let Cow::Owned(message) = &event.name else { continue };
            if event.attributes.iter().any(is_ours) {
                continue;
            }
            match self.cleaned(MESSAGE, message, MAX_TEXT) {
                Kept::Whole => {}
                Kept::Changed(text) => event.name = Cow::Owned(text),
                Kept::Nothing => event.name = Cow::Borrowed("event"),
            }
        }
        if let Status::Error { description } = &span.status {
            match self.cleaned(STATUS, description, MAX_TEXT) {
                Kept::Whole => {}
                Kept::Changed(text) => span.status = Status::error(text),
                Kept::Nothing => span.status = Status::error(""),
            }
        }
    }

    fn clean(&self, attributes: &mut Vec<KeyValue>) {
        attributes.retain_mut(|KeyValue { key, value, .. }| {
            let is_content = semconv::CONTENT.contains(&key.as_str());
            let most = if is_content { usize::MAX } else { MAX_TEXT };
            let clean = |text: &mut StringValue| {
                match self.cleaned(key.as_str(), text.as_str(), most) {
                    Kept::Whole => {}
                    Kept::Changed(kept) => *text = kept.into(),
                    Kept::Nothing => return false,
                }
                true
            };
            match value {
                Value::String(text) => clean(text),
                Value::Array(Array::String(texts)) => {
                    texts.retain_mut(clean);
                    true
                }
                _ => true,
            }
        });
    }

    /// What is exported of a text: at most so many bytes.
    fn cleaned(&self, name: &str, text: &str, most: usize) -> Kept {
        let mut kept = match &self.redact {
            None if text.len() <= most => return Kept::Whole,
            None => text.to_owned(),
            Some(redact) => match redact(name, text) {
                Some(text) => text,
                None => return Kept::Nothing,
            },
        };
        if kept.len() > most {
            kept.truncate(kept.floor_char_boundary(most));
            kept.push('…');
        }
        Kept::Changed(kept)
    }
}

/// What is exported of a text.
enum Kept {
    Whole,
    Changed(String),
    Nothing,
}

fn is_ours(attribute: &KeyValue) -> bool {
    let KeyValue { key, value, .. } = attribute;
    key.as_str() == "target" && matches!(value, Value::String(it) if it.as_str() == "harness")
}

/// The provider and the model of `provider/model`.
pub(crate) fn of_model(model: &str) -> [KeyValue; 2] {
    let (provider, name) = model.split_once('/').unwrap_or(("unknown", model));
    [
        KeyValue::new(semconv::PROVIDER, provider.to_owned()),
        KeyValue::new(semconv::REQUEST_MODEL, name.to_owned()),
    ]
}

impl<E: SpanExporter> SpanExporter for Conventions<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let leaving = self.losses.leaving(batch.len());
        let batch = batch.into_iter().map(|span| self.convert(span)).collect();
        let exported = self.exporter.export(batch).await;
        leaving.end(exported.as_ref().err());
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E> Conventions<E> {
    /// How many spans could not be exported.
    pub fn lost(&self) -> u64 {
        self.losses.lost()
    }
}

impl<E: fmt::Debug> fmt::Debug for Conventions<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conventions")
            .field("exporter", &self.exporter)
            .field("names", &self.names)
            .field("redacts", &self.redact.is_some())
            .finish()
    }
}
