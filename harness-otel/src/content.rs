//! What model calls and tool calls contain, for those who want to export it.

use harness::llm::{Block, Entry, Part, Reply, Request, ToolOutcome, Turn};
use harness::observe::trace::Content;
use serde_json::{Value, json};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;

use crate::semconv;

/// How much of it is exported. It is a layer so that a span's subscriber has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capture {
    /// The most bytes of an attribute; none are exported at zero.
    pub(crate) most: usize,
}

impl<S: Subscriber> Layer<S> for Capture {}

/// Adds the attributes of the content to a span, if its subscriber wants them.
pub(crate) fn record(span: &Span, content: Content<'_>) {
    let most = |subscriber: &tracing::Dispatch| Some(subscriber.downcast_ref::<Capture>()?.most);
    let most = span.with_subscriber(|(_, subscriber)| most(subscriber)).flatten().unwrap_or(0);
    if most == 0 {
        return;
    }
    let set = |name: &'static str, text: String| span.set_attribute(name, text);
    match content {
        Content::Request(request) => {
            set(semconv::INPUT_MESSAGES, input(request, most));
            if let Some(system) = request.system {
                let parts = json!([{"type": "text", "content": cut(system, most)}]);
                set(semconv::SYSTEM_INSTRUCTIONS, parts.to_string());
            }
        }
        Content::Reply(reply) => set(semconv::OUTPUT_MESSAGES, output(reply, most)),
        Content::Call(call) => set(semconv::TOOL_ARGUMENTS, cut(&call.arguments, most)),
        Content::Outcome(outcome) => {
            let result = result(outcome, most);
            set(
                semconv::TOOL_RESULT,
                result.as_str().map_or_else(|| result.to_string(), str::to_owned),
            );
        }
        _ => {}
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

/// The last messages, as many as there is room for, and at least one.
fn input(request: &Request<'_>, most: usize) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut bytes = 0;
    for entry in request.transcript.transcript().entries().iter().rev() {
        let of_entry = match entry {
            Entry::User(content) => {
                vec![json!({"role": "user", "parts": parts(content, most)})]
            }
            Entry::Assistant(turn) => of_turn(turn, most),
            _ => Vec::new(),
        };
        for message in of_entry.into_iter().rev() {
            let message = message.to_string();
            bytes += message.len();
            if bytes > most && !messages.is_empty() {
                return list(messages);
            }
            messages.push(message);
        }
    }
    list(messages)
}

fn list(mut messages: Vec<String>) -> String {
    messages.reverse();
    format!("[{}]", messages.join(","))
}

fn output(reply: &Reply, most: usize) -> String {
    let parts = assistant(&reply.turn, most);
    json!([{"role": "assistant", "parts": parts, "finish_reason": reply.stop.name()}]).to_string()
}

fn parts(content: &[Part], most: usize) -> Vec<Value> {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({"type": "text", "content": cut(text, most)}),
        Part::Json(value) => json!({"type": "text", "content": cut(&value.to_string(), most)}),
        // Images and documents are not exported.
        _ => json!({"type": "blob"}),
    };
    content.iter().map(part).collect()
}

fn assistant(turn: &Turn, most: usize) -> Vec<Value> {
    let part = |block: &Block| match block {
        Block::Text(text) => Some(json!({"type": "text", "content": cut(text, most)})),
        Block::Reasoning(text) => Some(json!({"type": "reasoning", "content": cut(text, most)})),
        Block::Call { call, .. } => {
            let arguments = cut(&call.arguments, most);
            let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
            let (id, name) = (call.id.as_str(), call.name.as_str());
            Some(json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments}))
        }
        _ => None,
    };
    turn.blocks.iter().filter_map(part).collect()
}

/// A turn, and the outcomes of its calls.
fn of_turn(turn: &Turn, most: usize) -> Vec<Value> {
    let outcomes = turn.blocks.iter().filter_map(|block| match block {
        Block::Call { call, outcome: Some(outcome) } => {
            let (id, result) = (call.id.as_str(), result(outcome, most));
            Some(json!({"type": "tool_call_response", "id": id, "response": result}))
        }
        _ => None,
    });
    let outcomes: Vec<Value> = outcomes.collect();
    let mut messages = vec![json!({"role": "assistant", "parts": assistant(turn, most)})];
    if !outcomes.is_empty() {
        messages.push(json!({"role": "tool", "parts": outcomes}));
    }
    messages
}

/// What the model sees of an outcome; of one without content, its kind.
fn result(outcome: &ToolOutcome, most: usize) -> Value {
    match outcome {
        ToolOutcome::Ok(content)
        | ToolOutcome::Failed { content, .. }
        | ToolOutcome::Steered { content } => match &**content {
            [Part::Text(text)] => Value::String(cut(text, most)),
            content => Value::Array(parts(content, most)),
        },
        _ => Value::String(outcome.kind().to_owned()),
    }
}
