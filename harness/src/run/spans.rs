//! The spans of a run that has some: they follow its events.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tracing::field::Empty;
use tracing::{Level, Span, enabled, info, info_span};

use crate::id::{Position, Seq};
use crate::llm::{CallId, Spend, ToolCallId};
use crate::observe::trace::{Carrier, Content, MAX_TRACE, Relation, carried, installed};
use crate::observe::{End, EventKind};
use crate::step::{Failure, Ids, Place};

/// The span of a run, before the run begins.
pub(crate) struct RunSpan {
    pub(crate) span: Span,
    /// What its session keeps of it.
    pub(crate) trace: Option<Map<String, Value>>,
    sampled: bool,
}

impl RunSpan {
    /// Makes the span of a run in the span `within`. `origin` is what the caller gave, `before` what the
    /// session has of the run before, `caller` what it has of the step that called it.
    pub(crate) fn open(
        ids: &Ids,
        harness: &str,
        within: &Span,
        origin: Option<Map<String, Value>>,
        before: Option<&Map<String, Value>>,
        caller: Option<&Carrier>,
    ) -> Self {
        let span = info_span!(
            target: "harness",
            parent: within,
            "harness.run",
            harness,
            agent = %ids.agent,
            session = %ids.session,
            run = %ids.run,
            parent_run = ids.parent.as_ref().map(|parent| parent.as_str()),
            end = Empty,
            signal = Empty,
            error_kind = Empty,
            steps = Empty,
            input_tokens = Empty,
            output_tokens = Empty,
            cost_micros = Empty,
        );
        let Some(propagate) = installed() else {
            let sampled = !span.is_disabled() && enabled!(target: "harness", Level::DEBUG);
            return Self { span, trace: origin, sampled };
        };
        if let Some(origin) = origin.as_ref().filter(|_| within.is_disabled()) {
            propagate.relate(&span, &carried(origin), Relation::Parent);
        }
        if let Some(before) = before {
            propagate.relate(&span, &carried(before), Relation::Previous);
        }
        if let Some(caller) = caller {
            propagate.relate(&span, caller, Relation::Caller);
        }
        let captured = propagate.capture(&span);
        let sampled = captured.is_some();
        let trace = match (origin, captured) {
            (origin, Some(captured)) if !captured.is_empty() => {
                let captured = captured.into_iter().map(|(name, value)| (name, value.into()));
                let trace: Map<_, _> =
                    origin.clone().into_iter().flatten().chain(captured).collect();
                let bytes = serde_json::to_string(&trace).map_or(usize::MAX, |text| text.len());
                if bytes <= MAX_TRACE { Some(trace) } else { origin }
            }
            (origin, _) => origin,
        };
        Self { span, trace, sampled }
    }

    /// The spans of what the run does, if it is sampled.
    pub(crate) fn spans(&self) -> Option<Box<Spans>> {
        let spans = || Spans { run: self.span.clone(), open: Mutex::default() };
        self.sampled.then(|| Box::new(spans()))
    }
}

/// The span of a run, and those of what it does now.
pub(crate) struct Spans {
    run: Span,
    open: Mutex<Open>,
}

type Step = (Position, Option<u32>);

#[derive(Default)]
struct Open {
    /// The run has settled.
    settled: bool,
    steps: HashMap<Step, Span>,
    calls: HashMap<CallId, Span>,
    tools: HashMap<(Step, ToolCallId), Span>,
}

impl Open {
    /// Of a task that outlives its step, the run.
    fn step<'a>(&'a self, place: Place, run: &'a Span) -> &'a Span {
        let of = |item| self.steps.get(&(place.position, item));
        of(place.item).or_else(|| of(None)).unwrap_or(run)
    }
}

/// Tasks may still hold the span.
fn end(span: &Span) {
    if let Some(propagate) = installed() {
        propagate.end(span);
    }
}

/// OpenTelemetry has no unsigned numbers: of these, `tracing-opentelemetry` makes text.
fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn failed(span: &Span, failure: &Failure) {
    span.record("error_kind", failure.kind.name());
    span.record("outcome", "failed");
}

fn spend(span: &Span, spent: &Spend) {
    let usage = spent.usage;
    let fields = [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_write_tokens", usage.cache_write),
        ("reasoning_tokens", usage.reasoning),
        ("cost_micros", spent.cost_micros),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            span.record(name, whole(value));
        }
    }
}

impl Spans {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The span of a step or an item.
    pub(super) fn step(&self, place: Place) -> Span {
        self.open().step(place, &self.run).clone()
    }

    /// Relates the run to a span that caused what it does next.
    pub(super) fn relate(&self, to: &Carrier, relation: Relation) {
        if let Some(propagate) = installed() {
            propagate.relate(&self.run, to, relation);
        }
    }

    /// What the call of a span contains.
    pub(super) fn content(span: &Span, content: Content<'_>) {
        if !span.is_disabled()
            && let Some(propagate) = installed()
        {
            propagate.content(span, content);
        }
    }

    /// The span of a model call.
    pub(super) fn call(&self, call: &CallId) -> Span {
        self.open().calls.get(call).cloned().unwrap_or_else(Span::none)
    }

    /// The span of a tool call.
    pub(super) fn tool(&self, place: Place, call: &ToolCallId) -> Span {
        let key = ((place.position, place.item), call.clone());
        self.open().tools.get(&key).cloned().unwrap_or_else(Span::none)
    }

    /// An event of the run, and the key of its item. `name` is the current step's.
    pub(super) fn on(
        &self,
        (place, item_key): (Option<Place>, Option<&str>),
        name: Option<&str>,
        stored: Option<(Seq, u64)>,
        kind: &EventKind,
    ) {
        let mut open = self.open();
        if open.settled {
            return;
        }
        let Some(place) = place else {
            // Nothing that is in the spans may wait for them.
            let over = self.on_run(&mut open, kind);
            let settled = open.settled;
            drop(open);
            over.steps.values().chain(over.calls.values()).chain(over.tools.values()).for_each(end);
            if settled {
                end(&self.run);
            }
            return;
        };
        let key = (place.position, place.item);
        let closed = match kind {
            EventKind::StepStarted => {
                if !open.steps.contains_key(&key) {
                    let span = self.begin(&open, (place, item_key), name.unwrap_or_default());
                    open.steps.insert(key, span);
                }
                None
            }
            EventKind::Committed { .. }
            | EventKind::Diverted { .. }
            | EventKind::ItemDone { .. } => open.steps.remove(&key),
            EventKind::CallStarted { call, model } => {
                let span = info_span!(
                    target: "harness",
                    parent: open.step(place, &self.run),
                    "harness.chat",
                    call = call.as_str(),
                    model,
                    replied = Empty,
                    stop = Empty,
                    cached = Empty,
                    error_kind = Empty,
                    input_tokens = Empty,
                    output_tokens = Empty,
                    cache_read_tokens = Empty,
                    cache_write_tokens = Empty,
                    reasoning_tokens = Empty,
                    cost_micros = Empty,
                );
                open.calls.insert(call.clone(), span);
                None
            }
            EventKind::CallEnded { call, .. } => open.calls.remove(call),
            EventKind::ToolStarted { call, tool, class } => {
                let span = info_span!(
                    target: "harness",
                    parent: open.step(place, &self.run),
                    "harness.tool",
                    call = call.as_str(),
                    tool = tool.as_str(),
                    class = %class,
                    outcome = Empty,
                    error_kind = Empty,
                );
                open.tools.insert((key, call.clone()), span);
                None
            }
            EventKind::ToolEnded { call, .. } => open.tools.remove(&(key, call.clone())),
            _ => None,
        };
        let over = closed.is_some();
        let span = closed.unwrap_or_else(|| open.step(place, &self.run).clone());
        drop(open);
        record(&span, stored, kind);
        if over {
            end(&span);
        }
    }

    fn begin(&self, open: &Open, (place, key): (Place, Option<&str>), name: &str) -> Span {
        match place.item {
            None => info_span!(
                target: "harness",
                parent: &self.run,
                "harness.step",
                step = name,
                position = whole(place.position.0),
                attempt = whole(place.attempt),
                outcome = Empty,
                signal = Empty,
                next = Empty,
                error_kind = Empty,
                seq = Empty,
                bytes = Empty,
            ),
            Some(item) => info_span!(
                target: "harness",
                parent: open.step(Place { item: None, ..place }, &self.run),
                "harness.item",
                step = name,
                position = whole(place.position.0),
                item = whole(item),
                item_key = key,
                attempt = whole(place.attempt),
                outcome = Empty,
                error_kind = Empty,
                seq = Empty,
                bytes = Empty,
            ),
        }
    }

    /// An event of the whole run. Returns the spans that are over.
    fn on_run(&self, open: &mut Open, kind: &EventKind) -> Open {
        match kind {
            EventKind::RunStarted { resumed, cause, .. } => {
                info!(target: "harness", parent: &self.run, resumed, cause = cause.name(), "started");
            }
            EventKind::Answered { id, expired, .. } => {
                info!(target: "harness", parent: &self.run, interrupt = id.as_str(), expired, "answered");
            }
            EventKind::Dropped => {
                self.run.record("end", "dropped");
                let over = std::mem::take(open);
                open.settled = true;
                return over;
            }
            EventKind::Settled { end, steps, spent } => {
                let how = end.name();
                for span in open.steps.values() {
                    match end {
                        End::Failed { failure } => failed(span, failure),
                        _ => drop(span.record("outcome", how)),
                    }
                }
                self.run.record("end", how);
                self.run.record("steps", whole(*steps));
                spend(&self.run, spent);
                if let Some(signal) = end.signal() {
                    self.run.record("signal", signal);
                }
                if let End::Failed { failure } = end {
                    self.run.record("error_kind", failure.kind.name());
                }
                let over = std::mem::take(open);
                open.settled = true;
                return over;
            }
            _ => {}
        }
        Open::default()
    }
}

/// What an event says of the span of its step or call.
fn record(span: &Span, stored: Option<(Seq, u64)>, kind: &EventKind) {
    if let Some((seq, bytes)) = stored {
        span.record("seq", whole(seq.0));
        span.record("bytes", whole(bytes));
    }
    match kind {
        EventKind::Custom(payload) => {
            info!(target: "harness", parent: span, name = payload.name(), "emitted");
        }
        EventKind::CallEnded { recorded: true, call, model, .. } => {
            info!(target: "harness", parent: span, call = call.as_str(), model, "recorded reply");
        }
        EventKind::CallEnded { replied, stop, cached, error_kind, spent, .. } => {
            spend(span, spent);
            span.record("cached", cached);
            if let Some(replied) = replied {
                span.record("replied", replied.as_str());
            }
            if let Some(stop) = stop {
                span.record("stop", stop.name());
            }
            if let Some(error) = error_kind {
                span.record("error_kind", error);
            }
        }
        EventKind::ToolEnded { recorded: true, call, tool, .. } => {
            info!(target: "harness", parent: span, call = call.as_str(), tool = tool.as_str(), "recorded outcome");
        }
        EventKind::ToolEnded { outcome, failure, .. } => {
            span.record("outcome", outcome);
            if let Some(failure) = failure {
                span.record("error_kind", failure.name());
            }
        }
        EventKind::Retrying { failure, after_ms } => {
            let (error_kind, attempts) = (failure.kind.name(), whole(failure.attempts));
            let after_ms = whole(*after_ms);
            info!(target: "harness", parent: span, error_kind, attempts, after_ms, "retrying");
        }
        EventKind::Asked { interrupt } => {
            let (interrupt, question) = (interrupt.id.as_str(), &*interrupt.name);
            info!(target: "harness", parent: span, interrupt, question, "asked");
        }
        EventKind::TimerStarted { due, .. } => {
            info!(target: "harness", parent: span, due = whole(due.0), "timer started");
        }
        EventKind::TimerFired { .. } => info!(target: "harness", parent: span, "timer fired"),
        EventKind::Planned { items } => {
            info!(target: "harness", parent: span, items = whole(*items), "planned")
        }
        EventKind::ItemDone { failure: Some(failure) } | EventKind::Diverted { failure, .. } => {
            failed(span, failure);
        }
        EventKind::ItemDone { failure: None } => drop(span.record("outcome", "done")),
        EventKind::Committed { signal, next } => {
            span.record("outcome", "committed");
            if let Some(signal) = signal {
                span.record("signal", signal);
            }
            span.record("next", next.as_deref().unwrap_or("end"));
        }
        _ => {}
    }
}
