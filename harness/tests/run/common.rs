//! A state, loops of one and two steps, and a probe through which steps and tests meet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use harness::observe::Recorder;
pub use harness::prelude::*;
use harness::{
    Define, Ended, Exhausted, Failed, Interrupted, Stopped,
    declare::{LoopBuilder, NeedsSteps},
};
pub use harness::{FailureKind, declare::StepDef, graph::Limit};
use tokio::sync::Semaphore;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Log {
    #[state(reduce = append)]
    pub lines: Vec<String>,
    #[state(reduce = add)]
    pub n: u32,
    pub note: Option<String>,
}

/// An update that adds one line.
pub fn line(text: impl Into<String>) -> <Log as State>::Update {
    Log::update().lines([text.into()])
}

#[derive(Context)]
pub struct Ctx {
    #[slot(required)]
    pub probe: Probe,
}

/// What steps did, and gates that keep a step and its test in step with each other.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    hits: Vec<String>,
    gates: HashMap<String, Arc<Semaphore>>,
}

impl Probe {
    /// Notes that something was done; says how often by now.
    pub fn hit(&self, what: impl Into<String>) -> usize {
        let what = what.into();
        self.0.lock().unwrap().hits.push(what.clone());
        self.count(&what)
    }

    pub fn hits(&self) -> Vec<String> {
        self.0.lock().unwrap().hits.clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().hits.iter().filter(|hit| *hit == what).count()
    }

    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut seen = self.0.lock().unwrap();
        let gate = seen.gates.entry(name.to_owned());
        Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    /// Lets one pass, now or later.
    pub fn open(&self, gate: &str) {
        self.gate(gate).add_permits(1);
    }

    /// Waits to be let pass.
    pub async fn pass(&self, gate: &str) {
        self.gate(gate).acquire().await.unwrap().forget();
    }

    /// Reports that it has reached `gate`, and waits until it is opened.
    pub async fn meet(&self, gate: &str) {
        self.open(&format!("{gate} reached"));
        self.pass(gate).await;
    }

    /// Waits until a step has reached `gate`.
    pub async fn reached(&self, gate: &str) {
        self.pass(&format!("{gate} reached")).await;
    }
}

/// A text with an `OpId` of session `s`, without the part that differs from run to run.
pub fn without_incarnation(text: &str) -> String {
    let (before, id) = text.split_once("s/").unwrap();
    let (incarnation, after) = id.split_once('/').unwrap();
    assert!(
        incarnation.len() == 16 && incarnation.chars().all(|c| c.is_ascii_hexdigit()),
        "{text}"
    );
    format!("{before}s/{after}")
}

/// Hits when it is dropped.
pub struct OnDrop(pub Probe, pub &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.hit(self.1);
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Only {
    Work,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Two {
    First,
    Second,
}

pub type Def<St> = Define<Ctx, Log, St>;
pub type Declared<St> = StepDef<Ctx, Log, St>;
pub type Loop<St> = LoopBuilder<Ctx, Log, St, NeedsSteps>;

/// What watches and what is met.
pub struct Bench {
    pub agent: Agent<Ctx, Log>,
    pub probe: Probe,
    pub seen: Recorder,
}

impl Bench {
    pub fn of(harness: Harness<Ctx, Log>) -> Self {
        let (probe, seen) = (Probe::default(), Recorder::default());
        let required = Ctx::required().probe(probe.clone()).build();
        let agent = harness.agent("bench", required).observe(seen.clone());
        Self { agent, probe, seen }
    }

    /// A run of a new session, to its outcome.
    pub async fn run(&self) -> Outcome<Log> {
        self.agent.run(Log::update(), ()).await.unwrap()
    }

    /// The event log since the last look.
    pub fn log(&self) -> Vec<String> {
        let lines = self.seen.lines();
        self.seen.clear();
        lines
    }
}

/// A loop of one step.
pub fn only(declare: impl Fn(Def<Only>) -> Declared<Only>) -> Bench {
    only_with(|it| it, declare)
}

pub fn only_with(
    tweak: impl FnOnce(Loop<Only>) -> Loop<Only>,
    declare: impl Fn(Def<Only>) -> Declared<Only>,
) -> Bench {
    let start = Harness::<Ctx, Log>::builder("only").start(Only::Work);
    let steps = tweak(start).steps(|define, step| match step {
        Only::Work => declare(define),
    });
    Bench::of(steps.build().unwrap())
}

/// A loop of two steps, which the first starts.
pub fn two(
    first: impl Fn(Def<Two>) -> Declared<Two>,
    second: impl Fn(Def<Two>) -> Declared<Two>,
) -> Bench {
    two_with(|it| it, first, second)
}

pub fn two_with(
    tweak: impl FnOnce(Loop<Two>) -> Loop<Two>,
    first: impl Fn(Def<Two>) -> Declared<Two>,
    second: impl Fn(Def<Two>) -> Declared<Two>,
) -> Bench {
    let start = Harness::<Ctx, Log>::builder("two").start(Two::First);
    let steps = tweak(start).steps(|define, step| match step {
        Two::First => first(define),
        Two::Second => second(define),
    });
    Bench::of(steps.build().unwrap())
}

/// Opens an outcome of one kind, and names any other.
macro_rules! open {
    ($($name:ident: $kind:ident),*) => {$(
        #[track_caller]
        pub fn $name<S: State + std::fmt::Debug>(outcome: Outcome<S>) -> $kind<S> {
            match outcome {
                Outcome::$kind(it) => it,
                other => panic!("settled otherwise: {other:?}"),
            }
        }
    )*};
}
open!(ended: Ended, interrupted: Interrupted, stopped: Stopped, exhausted: Exhausted, failed: Failed);

#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = bool)]
pub struct May {
    pub what: String,
}

pub fn may(what: impl Into<String>) -> May {
    May { what: what.into() }
}

#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = String)]
pub struct Name {}

/// An error, retryable by the rule of `?`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Oops(pub &'static str);
