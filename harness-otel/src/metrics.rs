//! Metrics of runs, made of their events.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::UtcMillis;
use harness::observe::{Event, EventKind, Observer};
use harness::{FailureKind, RunId};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

use crate::export::of_model;
use crate::semconv::{self, Names};

/// How many values an attribute may have. The others count as [`OTHER`].
const MOST_VALUES: usize = 200;
const OTHER: &str = "_other";
/// How many runs are followed at a time.
const MOST_RUNS: usize = 65_536;

const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Up to a week: what waits may wait for a person, or for a worker that is down.
const AGES: [f64; 14] = [
    0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0,
    604_800.0,
];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

const BYTES: [f64; 10] = [
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// An observer that makes metrics of the events of runs: pass it to `.observe(..)` of a harness or an
/// agent. Cheap to clone.
///
/// No attribute is an id, an argument or a text of a person or a model, and each has at most 200 values:
/// further ones count as `_other`.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    tokens: Histogram<u64>,
    calls: Histogram<f64>,
    tools: Histogram<f64>,
    runs: Histogram<f64>,
    steps: Histogram<f64>,
    commits: Counter<u64>,
    bytes: Histogram<u64>,
    interrupts: Counter<u64>,
    retries: Counter<u64>,
    lost: Counter<u64>,
    active: UpDownCounter<i64>,
    busy: UpDownCounter<i64>,
    waited: Histogram<f64>,
    spent: Counter<f64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: HashMap<RunId, Running>,
    values: HashMap<&'static str, HashSet<String>>,
}

/// A run that has not settled.
struct Running {
    since: UtcMillis,
    /// Whether it takes a place of a worker.
    worker: bool,
    steps: HashMap<(u64, Option<u32>), UtcMillis>,
}

impl State {
    /// An attribute with a bounded number of values.
    fn attribute(&mut self, name: &'static str, value: &str) -> KeyValue {
        let values = self.values.entry(name).or_default();
        if !values.contains(value) {
            if values.len() >= MOST_VALUES {
                return KeyValue::new(name, OTHER);
            }
            values.insert(value.to_owned());
        }
        KeyValue::new(name, value.to_owned())
    }

    fn model(&mut self, model: &str) -> Vec<KeyValue> {
        let [provider, name] = of_model(model);
        vec![
            self.attribute(semconv::PROVIDER, &provider.value.to_string()),
            self.attribute(semconv::REQUEST_MODEL, &name.value.to_string()),
            KeyValue::new(semconv::OPERATION, semconv::CHAT),
        ]
    }
}

#[allow(clippy::cast_precision_loss)]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}

fn between(from: UtcMillis, to: UtcMillis) -> f64 {
    seconds(to.0.saturating_sub(from.0))
}

impl Metrics {
    /// Creates the instruments. [`Telemetry::metrics`](crate::Telemetry::metrics) does it for a program
    /// that has no meter of its own.
    pub fn new(meter: &Meter, names: Names) -> Self {
        let duration = |name: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(SECONDS.to_vec()).build()
        };
        let counter = |name: &'static str| meter.u64_counter(name).build();
        Self(Arc::new(Inner {
            tokens: meter
                .u64_histogram(semconv::TOKEN_USAGE)
                .with_unit("{token}")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            calls: duration(semconv::operation_duration(names)),
            tools: duration(semconv::TOOL_DURATION),
            runs: duration(semconv::AGENT_DURATION),
            steps: duration(semconv::STEP_DURATION),
            commits: counter(semconv::COMMITS),
            bytes: meter
                .u64_histogram(semconv::COMMIT_BYTES)
                .with_unit("By")
                .with_boundaries(BYTES.to_vec())
                .build(),
            interrupts: counter(semconv::INTERRUPTS),
            retries: counter(semconv::RETRIES),
            lost: counter(semconv::LEASE_LOSSES),
            active: meter.i64_up_down_counter(semconv::ACTIVE_RUNS).build(),
            busy: meter.i64_up_down_counter(semconv::BUSY_WORKERS).build(),
            waited: meter
                .f64_histogram(semconv::QUEUE_AGE)
                .with_unit("s")
                .with_boundaries(AGES.to_vec())
                .build(),
            spent: meter.f64_counter(semconv::SPENT).with_unit("{usd}").build(),
            state: Mutex::default(),
        }))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn interrupt(&self, agent: KeyValue, state: &'static str) {
        self.interrupts.add(1, &[agent, KeyValue::new(semconv::INTERRUPT_STATE, state)]);
    }

    /// A run starts. One that continues with what its inbox has starts again.
    fn run(&self, state: &mut State, event: &Event, worker: bool, agent: &KeyValue) {
        if state.runs.len() < MOST_RUNS && !state.runs.contains_key(&event.run) {
            let running = Running { since: event.at, worker, steps: HashMap::new() };
            state.runs.insert(event.run.clone(), running);
            self.at_work(1, worker, agent);
        }
    }

    /// A run is over.
    fn settled(
        &self,
        state: &mut State,
        event: &Event,
        agent: KeyValue,
        end: &'static str,
        error: Option<FailureKind>,
    ) {
        let Some(run) = state.runs.remove(&event.run) else { return };
        self.at_work(-1, run.worker, &agent);
        let mut attributes = vec![agent, KeyValue::new(semconv::END, end)];
        if let Some(error) = error {
            attributes.push(KeyValue::new(semconv::ERROR_TYPE, error.name()));
        }
        self.runs.record(between(run.since, event.at), &attributes);
    }

    fn at_work(&self, more: i64, worker: bool, agent: &KeyValue) {
        self.active.add(more, std::slice::from_ref(agent));
        if worker {
            self.busy.add(more, std::slice::from_ref(agent));
        }
    }

    /// A step or an item is over.
    fn step(&self, state: &mut State, event: &Event, agent: KeyValue, outcome: &'static str) {
        let started = state
            .runs
            .get_mut(&event.run)
            .and_then(|run| run.steps.remove(&(event.position.0, event.item)));
        let (Some(started), Some(name)) = (started, &event.step) else { return };
        let attributes =
            [agent, state.attribute(semconv::STEP, name), KeyValue::new(semconv::OUTCOME, outcome)];
        self.steps.record(between(started, event.at), &attributes);
    }

    fn on_event(&self, event: &Event) {
        let mut state = self.state();
        let agent = state.attribute(semconv::AGENT, event.agent.as_str());
        match &event.kind {
            EventKind::RunStarted { cause, waited_ms, worker, .. } => {
                self.run(&mut state, event, *worker, &agent);
                if let Some(waited_ms) = waited_ms {
                    let cause = KeyValue::new(semconv::CAUSE, cause.name());
                    self.waited.record(seconds(*waited_ms), &[agent, cause]);
                }
            }
            EventKind::StepStarted => {
                if let Some(run) = state.runs.get_mut(&event.run) {
                    run.steps.entry((event.position.0, event.item)).or_insert(event.at);
                }
            }
            EventKind::Committed { .. } => {
                self.commits.add(1, std::slice::from_ref(&agent));
                if let Some(bytes) = event.bytes {
                    self.bytes.record(bytes, std::slice::from_ref(&agent));
                }
                self.step(&mut state, event, agent, "committed");
            }
            EventKind::ItemDone { failure } => {
                let outcome = if failure.is_some() { "failed" } else { "done" };
                self.step(&mut state, event, agent, outcome);
            }
            EventKind::Diverted { .. } => self.step(&mut state, event, agent, "failed"),
            EventKind::Retrying { failure, .. } => {
                let error = KeyValue::new(semconv::ERROR_TYPE, failure.kind.name());
                self.retries.add(1, &[agent, error]);
            }
            EventKind::CallEnded { recorded: false, model, error_kind, spent, took_ms, .. } => {
                let mut attributes = state.model(model);
                for (kind, tokens) in [("input", spent.usage.input), ("output", spent.usage.output)]
                {
                    let Some(tokens) = tokens else { continue };
                    attributes.push(KeyValue::new(semconv::TOKEN_TYPE, kind));
                    self.tokens.record(tokens, &attributes);
                    attributes.pop();
                }
                if let Some(micros) = spent.cost_micros {
                    #[allow(clippy::cast_precision_loss)]
                    self.spent.add(micros as f64 / 1e6, &attributes);
                }
                if let Some(error) = error_kind {
                    attributes.push(KeyValue::new(semconv::ERROR_TYPE, *error));
                }
                self.calls.record(seconds(*took_ms), &attributes);
            }
            EventKind::ToolEnded { recorded: false, tool, outcome, failure, took_ms, .. } => {
                let mut attributes = vec![
                    state.attribute(semconv::TOOL, tool.as_str()),
                    KeyValue::new(semconv::OUTCOME, *outcome),
                ];
                if let Some(failure) = failure {
                    attributes.push(KeyValue::new(semconv::ERROR_TYPE, failure.name()));
                }
                self.tools.record(seconds(*took_ms), &attributes);
            }
            EventKind::Asked { .. } => self.interrupt(agent, "asked"),
            EventKind::Answered { expired: true, .. } => self.interrupt(agent, "expired"),
            EventKind::Answered { expired: false, .. } => self.interrupt(agent, "resolved"),
            EventKind::Settled { end, .. } => {
                let kind = end.failure().map(|failure| failure.kind);
                if kind == Some(FailureKind::LeaseLost) {
                    self.lost.add(1, std::slice::from_ref(&agent));
                }
                self.settled(&mut state, event, agent, end.name(), kind);
            }
            EventKind::Dropped => self.settled(&mut state, event, agent, "dropped", None),
            _ => {}
        }
    }
}

impl Observer for Metrics {
    fn on_event(&self, event: &Event) {
        self.0.on_event(event);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
