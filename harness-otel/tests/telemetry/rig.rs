//! Exports spans and metrics into memory, and draws spans as a tree.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::prelude::*;
use harness_otel::{Builder, Telemetry, semconv};
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::metrics::InMemoryMetricExporter;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

/// Telemetry of this thread.
pub struct Traced {
    spans: InMemorySpanExporter,
    metrics: InMemoryMetricExporter,
    pub telemetry: Telemetry,
    _subscribed: DefaultGuard,
}

impl Traced {
    pub fn new() -> Self {
        Self::of(|builder| builder)
    }

    pub fn of(change: impl FnOnce(Builder) -> Builder) -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let builder = Telemetry::builder("test").spans(spans.clone()).metrics(metrics.clone());
        let (telemetry, layer) = change(builder).layer().unwrap();
        let subscriber = tracing_subscriber::registry().with(layer);
        let _subscribed = tracing::subscriber::set_default(subscriber);
        Self { spans, metrics, telemetry, _subscribed }
    }

    /// The spans that were exported, by their start.
    pub fn spans(&self) -> Vec<SpanData> {
        self.telemetry.flush().unwrap();
        let mut spans = self.spans.get_finished_spans().unwrap();
        spans.sort_by_key(|span| span.start_time);
        spans
    }

    /// Their trees.
    pub fn tree(&self) -> String {
        let spans = self.spans();
        let known = |id: SpanId| spans.iter().any(|span| span.span_context.span_id() == id);
        let mut out = String::new();
        for root in spans.iter().filter(|span| !known(span.parent_span_id)) {
            draw(&spans, root, 0, &mut out);
        }
        out
    }

    /// The points of each metric: its attributes, and how often or how much.
    pub fn points(&self) -> BTreeMap<String, Vec<String>> {
        self.telemetry.flush().unwrap();
        crate::points::of(&self.metrics.get_finished_metrics().unwrap())
    }
}

fn draw(spans: &[SpanData], span: &SpanData, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let kind = if span.span_kind == SpanKind::Client { " (client)" } else { "" };
    let parent = if span.parent_span_is_remote { " (remote parent)" } else { "" };
    let status = match &span.status {
        Status::Error { description } => format!(" ERROR {description}"),
        _ => String::new(),
    };
    let _ = writeln!(out, "{pad}{}{kind}{parent}{status}", span.name);
    let _ = writeln!(out, "{pad}  {}", attributes(&span.attributes));
    for event in &span.events.events {
        let _ = writeln!(out, "{pad}  * {} {}", event.name, attributes(&event.attributes));
    }
    for link in &span.links.links {
        let to = spans.iter().find(|it| it.span_context.span_id() == link.span_context.span_id());
        let to = to.map_or("?", |span| &*span.name);
        let other = link.span_context.trace_id() != span.span_context.trace_id();
        let trace = if other { "another trace" } else { "the same trace" };
        let _ = writeln!(out, "{pad}  -> {to} in {trace} {}", attributes(&link.attributes));
    }
    let id = span.span_context.span_id();
    for child in spans.iter().filter(|child| child.parent_span_id == id) {
        assert_eq!(child.span_context.trace_id(), span.span_context.trace_id());
        draw(spans, child, depth + 1, out);
    }
}

/// Without what differs from run to run.
pub fn attributes(attributes: &[KeyValue]) -> String {
    let mut texts: Vec<String> = attributes
        .iter()
        .filter(|it| !matches!(it.key.as_str(), semconv::BYTES | semconv::OPERATION))
        .map(|it| {
            let id = matches!(
                it.key.as_str(),
                semconv::RUN | semconv::PARENT_RUN | semconv::CALL | "harness.call"
            ) || it.key.as_str() == "harness.interrupt"
                || matches!(&it.value, Value::String(text) if text.as_str().starts_with("child-"));
            let value = if id { "ID".to_owned() } else { it.value.to_string() };
            format!("{}={value}", it.key.as_str().replace("harness.", "").replace("gen_ai.", ""))
        })
        .collect();
    texts.sort();
    texts.join(" ")
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    pub lines: Vec<String>,
    pub sent: bool,
}

pub fn line(text: &str) -> StepResult<Doc> {
    Ok(Doc::update().lines([text.to_owned()]))
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

/// A loop of one step that may be retried twice.
pub fn only<F, Fut>(name: &str, body: F) -> Agent<(), Doc>
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    let retry = Retry::every(std::time::Duration::from_millis(1)).times(2);
    Harness::<(), Doc>::builder("only")
        .start(Step::Work)
        .steps(move |define, Step::Work| define.run(body.clone()).retry(retry).end())
        .build()
        .unwrap()
        .agent(name, ())
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "send")]
pub struct Sending {
    pub to: String,
}

/// Asks whether to send it.
pub fn asking() -> Agent<(), Doc> {
    only("bot", |_, cx: Cx<()>| async move {
        let sent = cx.ask("send", Sending { to: "a secret".to_owned() }).await?;
        Ok(Doc::update().sent(sent))
    })
}

/// Counts what was exported by the end.
#[derive(Clone, Debug, Default)]
pub struct Kept(pub std::sync::Arc<std::sync::Mutex<Vec<SpanData>>>);

impl opentelemetry_sdk::trace::SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}
