//! Many runs at once: 10,000 of 20 steps each, on two workers. Every step gives way once, as one
//! that calls out would.

use std::sync::Arc;
use std::time::Instant;

use harness::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::counting::watch;
use super::floor::BoxFuture;
use super::{Figure, median, rounds};

const RUNS: usize = 10_000;
const STEPS: u64 = 20;

/// Holds all runs at their first step, until every one of them is there.
#[derive(Clone)]
struct Gate {
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { arrived: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        // Closing the gate opens it for all.
        let _ = self.open.acquire().await;
    }
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u64,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    gate: Gate,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Work,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

async fn start(_count: View<Count>, cx: Cx<Ctx>) -> StepResult<Count> {
    cx.gate.pass().await;
    Ok(Count::update().n(1))
}

async fn work(_count: View<Count>, _cx: Cx<Ctx>) -> StepResult<Count> {
    tokio::task::yield_now().await;
    Ok(Count::update().n(1))
}

fn agent() -> Option<Agent<Ctx, Count>> {
    let next = |count: &Count| if count.n < STEPS { Next::More } else { Next::Enough };
    let harness = Harness::<Ctx, Count>::builder("many")
        .start(Step::Start)
        .steps(|define, step| match step {
            Step::Start => define.run(start).then(Step::Work),
            Step::Work => define.run(work).route(next, |signal| match signal {
                Next::More => to(Step::Work),
                Next::Enough => end(),
            }),
        })
        .build();
    Some(harness.ok()?.agent("many", ()))
}

struct Update {
    n: Option<u64>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;
type Body =
    Box<dyn for<'a> Fn(&'a u64, &'a Gate) -> BoxFuture<'a, Result<Update, Error>> + Send + Sync>;

fn table() -> Arc<Vec<Body>> {
    Arc::new(vec![
        Box::new(|_, gate| {
            Box::pin(async move {
                gate.pass().await;
                Ok(Update { n: Some(1) })
            })
        }),
        Box::new(|_, _| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                Ok(Update { n: Some(1) })
            })
        }),
    ])
}

async fn by_hand(table: Arc<Vec<Body>>, gate: Gate) -> Result<u64, Error> {
    let (mut n, mut at) = (0, 0);
    while n < STEPS {
        n += table[at](&n, &gate).await?.n.unwrap_or(0);
        at = 1;
    }
    Ok(n)
}

/// What one round found. Bytes are counted in rounds of their own: to count them from two threads
/// takes longer than to allocate them.
struct Round {
    seconds: f64,
    /// Bytes at the gate.
    live: i64,
    /// Bytes after the end.
    left: i64,
}

/// Starts all, waits until all have started, lets them go.
async fn at_once<F, Fut>(run: F, counted: bool) -> Round
where
    F: Fn(Gate) -> Fut,
    Fut: Future<Output = u64> + Send + 'static,
{
    let gate = Gate::new();
    let mut tasks = Vec::with_capacity(RUNS);
    let before = watch(counted);
    for _ in 0..RUNS {
        tasks.push(tokio::spawn(run(gate.clone())));
    }
    let _ = gate.arrived.acquire_many(RUNS as u32).await;
    let live = watch(counted) - before;
    let started = Instant::now();
    gate.open.close();
    for task in tasks {
        let reached = task.await.unwrap_or(0);
        assert_eq!(reached, STEPS, "a run went astray");
    }
    let seconds = started.elapsed().as_secs_f64();
    let left = watch(false) - before;
    Round { seconds, live, left }
}

/// Time for a step, and memory of a live run, beside the same by hand.
pub(super) fn runs() -> Vec<Figure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (Ok(runtime), Some(agent)) = (runtime, agent()) else { return Vec::new() };
    let ours = |runtime: &Runtime, counted| {
        let agent = agent.clone();
        let run = move |gate| {
            let request = agent.run(Count::update(), Ctx::runtime().gate(gate).build());
            async move {
                let outcome = request.await;
                outcome.ok().and_then(|it| it.state().map(|count| count.n)).unwrap_or(0)
            }
        };
        runtime.block_on(at_once(run, counted))
    };
    let table = table();
    let floor = |runtime: &Runtime, counted| {
        let table = Arc::clone(&table);
        let run = move |gate| {
            let run = by_hand(Arc::clone(&table), gate);
            async move { run.await.unwrap_or(0) }
        };
        runtime.block_on(at_once(run, counted))
    };
    let timed = rounds(|| (ours(&runtime, false), floor(&runtime, false)));
    let counted: Vec<_> = (0..3).map(|_| (ours(&runtime, true), floor(&runtime, true))).collect();
    let figure =
        |case: &str, unit, rounds: &[(Round, Round)], each: &dyn Fn(&Round) -> f64| Figure {
            case: case.to_owned(),
            ours: median(rounds.iter().map(|(ours, _)| each(ours))),
            floor: median(rounds.iter().map(|(_, floor)| each(floor))),
            unit,
            ratio: median(rounds.iter().map(|(ours, floor)| each(ours) / each(floor))),
        };
    let steps = RUNS as f64 * STEPS as f64;
    let per_run = |bytes: i64| bytes as f64 / RUNS as f64;
    vec![
        figure("runs", "ns/step", &timed, &|round| round.seconds * 1e9 / steps),
        figure("runs-memory", "bytes/live run", &counted, &|round| per_run(round.live)),
        figure("runs-left", "bytes/ended run", &counted, &|round| per_run(round.left)),
    ]
}
