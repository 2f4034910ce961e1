//! The spans of runs, and their place in the traces of a system of many processes.
//!
//! A run and what it does are `tracing` spans with the target `harness`: `harness.run`, in it
//! `harness.step` and `harness.item`, in these `harness.chat`, `harness.tool` and `harness.replay`, which is
//! that of the code steps of a program. What happens in them are `tracing` events. They follow the [events](super::Event) of the run.
//!
//! The run's span has level INFO and is always made. Whether the others are made is decided once for
//! each run, so that they cost nothing where nothing reads them: with a [`Propagate`], if the run is
//! sampled; otherwise, if DEBUG is enabled for the target `harness`.
//!
//! The crate `harness-otel` has a [`Propagate`] for OpenTelemetry.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use tracing::Span;

use crate::llm::{Reply, Request, ToolCall, ToolOutcome};

/// The context of a span as text that other processes read: `traceparent`, `tracestate`.
pub type Carrier = BTreeMap<String, String>;

/// How a run's span relates to another span, which may be of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// It is a part of it: the origin that the caller [gave](crate::RunRequest::trace).
    Parent,
    /// It continues the session after it: the run before.
    Previous,
    /// It continues because of it: where an answer was given.
    Answer,
    /// It begins a turn because of it: where an input was queued.
    Input,
    /// It does what it has called: the step of a run that is not in this process, or is over.
    Caller,
}

/// What a model call or a tool call contains. No span has it, unless a [`Propagate`] adds it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// The request of a model call.
    Request(&'a Request<'a>),
    /// Its reply.
    Reply(&'a Reply),
    /// A tool call.
    Call(&'a ToolCall),
    /// Its outcome.
    Outcome(&'a ToolOutcome),
}

/// Knows the contexts of spans. There is at most one in a process.
///
/// ```
/// use harness::observe::trace::{Carrier, Propagate, Relation};
///
/// /// Samples every run, and has no contexts.
/// struct Everything;
///
/// impl Propagate for Everything {
///     fn capture(&self, _span: &tracing::Span) -> Option<Carrier> {
///         Some(Carrier::new())
///     }
///     fn relate(&self, _span: &tracing::Span, _to: &Carrier, _relation: Relation) {}
/// }
///
/// assert!(harness::observe::trace::install(Everything));
/// ```
pub trait Propagate: Send + Sync + 'static {
    /// The context of a span, if it is sampled. Asked once of the span of each run: the context is
    /// stored with the session, so that later runs of it can refer to it. If it is `None`, the run has
    /// no spans of steps and calls.
    fn capture(&self, span: &Span) -> Option<Carrier>;

    /// Relates a span to another one: to a [parent](Relation::Parent) when it was just made, to the
    /// others at any time.
    fn relate(&self, span: &Span, to: &Carrier, relation: Relation);

    /// What the call of a span contains. Called in the run's thread, for runs that are sampled.
    fn content(&self, span: &Span, content: Content<'_>) {
        let _ = (span, content);
    }

    /// The work that a span stands for is over, although tasks may still hold the span.
    fn end(&self, span: &Span) {
        let _ = span;
    }
}

/// The largest trace that a session keeps, in bytes of JSON.
pub(crate) const MAX_TRACE: usize = 1024;

static INSTALLED: OnceLock<Box<dyn Propagate>> = OnceLock::new();

/// Sets how spans are propagated. Returns `false`, and changes nothing, if that was set before.
pub fn install(propagate: impl Propagate) -> bool {
    INSTALLED.set(Box::new(propagate)).is_ok()
}

/// The context of the current span, to send with a request. Empty if it is not sampled, or nothing is
/// [installed](install).
pub fn current() -> Carrier {
    installed().and_then(|it| it.capture(&Span::current())).unwrap_or_default()
}

/// The context of the current span, to keep with an answer or an input that is given here.
pub(crate) fn origin() -> Option<Carrier> {
    of_span(&Span::current())
}

/// The context of a span, to keep with what it causes. `None` if it is too long for that.
pub(crate) fn of_span(span: &Span) -> Option<Carrier> {
    let carrier = installed()?.capture(span)?;
    let bytes: usize = carrier.iter().map(|(name, value)| name.len() + value.len()).sum();
    (!carrier.is_empty() && bytes <= MAX_TRACE).then_some(carrier)
}

pub(crate) fn installed() -> Option<&'static dyn Propagate> {
    INSTALLED.get().map(|it| &**it)
}

/// The context in the trace that a session keeps.
pub(crate) fn carried(trace: &Map<String, Value>) -> Carrier {
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    trace.iter().filter_map(text).collect()
}

impl fmt::Debug for dyn Propagate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Propagate")
    }
}
