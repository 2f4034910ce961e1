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

/// Starts all, waits until all have started, lets them go: seconds, live bytes at the gate, and
/// live bytes after the end.
async fn at_once<F, Fut>(run: F) -> (f64, i64, i64)
where
    F: Fn(Gate) -> Fut,
    Fut: Future<Output = u64> + Send + 'static,
{
    let gate = Gate::new();
    let mut tasks = Vec::with_capacity(RUNS);
    let before = watch(true);
    for _ in 0..RUNS {
        tasks.push(tokio::spawn(run(gate.clone())));
    }
    let _ = gate.arrived.acquire_many(RUNS as u32).await;
    let live = watch(true) - before;
    let started = Instant::now();
    gate.open.close();
    for task in tasks {
        let reached = task.await.unwrap_or(0);
        assert_eq!(reached, STEPS, "a run went astray");
    }
    let seconds = started.elapsed().as_secs_f64();
    let left = watch(false) - before;
    (seconds, live, left)
}

/// Time for a step, and memory of a live run, beside the same by hand.
pub(super) fn runs() -> Vec<Figure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (Ok(runtime), Some(agent)) = (runtime, agent()) else { return Vec::new() };
    let ours = |runtime: &Runtime| {
        let agent = agent.clone();
        runtime.block_on(at_once(move |gate| {
            let request = agent.run(Count::update(), Ctx::runtime().gate(gate).build());
            async move {
                let outcome = request.await;
                outcome.ok().and_then(|it| it.state().map(|count| count.n)).unwrap_or(0)
            }
        }))
    };
    let table = table();
    let floor = |runtime: &Runtime| {
        let table = Arc::clone(&table);
        runtime.block_on(at_once(move |gate| {
            let run = by_hand(Arc::clone(&table), gate);
            async move { run.await.unwrap_or(0) }
        }))
    };
    let measured: Vec<_> = rounds(|| (ours(&runtime), floor(&runtime)));
    let figure = |case: &str, unit, each: &dyn Fn(&(f64, i64, i64)) -> f64| Figure {
        case: case.to_owned(),
        ours: median(measured.iter().map(|(ours, _)| each(ours))),
        floor: median(measured.iter().map(|(_, floor)| each(floor))),
        unit,
        ratio: median(measured.iter().map(|(ours, floor)| each(ours) / each(floor))),
    };
    let steps = RUNS as f64 * STEPS as f64;
    vec![
        figure("runs", "ns/step", &|(seconds, ..)| seconds * 1e9 / steps),
        figure("runs-memory", "bytes/live run", &|(_, live, _)| *live as f64 / RUNS as f64),
        figure("runs-left", "bytes/ended run", &|(.., left)| *left as f64 / RUNS as f64),
    ]
}
