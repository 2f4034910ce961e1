//! Many runs at once: 10,000 of 20 steps each, on two worker threads. Every step yields once, like a
//! step that waits for a call.
//!
//! `runs` are conversations: a step appends a message of 200 bytes, and the memory of a live run is
//! counted half-way, after ten messages. `runs-bare` count to twenty: the cost of a run alone.

mod bare;
mod talking;

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::counting::left;
use super::{Figure, block_on, median, rounds, scaled};

const STEPS: usize = 20;
/// The least number of timed rounds.
const ROUNDS: usize = 41;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Stops all runs at one step until every run has reached it.
#[derive(Clone)]
struct Gate {
    /// The number of steps before it.
    at: usize,
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new(at: usize) -> Self {
        Self { at, arrived: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        // Closing the semaphore opens the gate for all.
        let _ = self.open.acquire().await;
    }
}

/// The result of one round: of a timed one the seconds, of a counted one the bytes.
#[derive(Default)]
struct Round {
    seconds: f64,
    /// Bytes at the gate.
    live: i64,
    /// Bytes after the end.
    left: i64,
}

/// What a round counts.
#[derive(Clone, Copy)]
enum Count {
    /// Time, from the first step on.
    Time,
    /// Bytes, after this many steps. On this thread alone: the allocations of others do not count.
    Bytes(usize),
}

/// Makes all runs, and takes the time or counts the bytes.
fn at_once<F, Fut>(runtime: &Runtime, run: F, count: Count) -> Round
where
    F: Fn(Gate) -> Fut,
    Fut: Future<Output = usize> + Send + 'static,
{
    match count {
        Count::Time => {
            let gate = Gate::new(0);
            let tasks = runtime.block_on(start(run, &gate));
            let started = Instant::now();
            runtime.block_on(finish(tasks, &gate));
            Round { seconds: started.elapsed().as_secs_f64(), ..Round::default() }
        }
        Count::Bytes(at) => {
            let gate = Gate::new(at);
            let mut tasks = Vec::new();
            let live = left(|| tasks = block_on(start(run, &gate)));
            let after = left(|| block_on(finish(tasks, &gate)));
            Round { live, left: live + after, ..Round::default() }
        }
    }
}

/// Starts all runs and waits until all have reached the gate.
async fn start<F, Fut>(run: F, gate: &Gate) -> Vec<JoinHandle<usize>>
where
    F: Fn(Gate) -> Fut,
    Fut: Future<Output = usize> + Send + 'static,
{
    let tasks = (0..many()).map(|_| tokio::spawn(run(gate.clone()))).collect();
    let _ = gate.arrived.acquire_many(many() as u32).await;
    tasks
}

/// Opens the gate and waits for all runs.
async fn finish(tasks: Vec<JoinHandle<usize>>, gate: &Gate) {
    gate.open.close();
    for task in tasks {
        let reached = task.await.unwrap_or(0);
        assert_eq!(reached, STEPS, "a run did not reach its end");
    }
}

/// How many runs are live at once.
fn many() -> usize {
    scaled(10_000)
}

/// Time for a step, and memory of a live run, beside the same by hand.
fn figures(
    case: &str,
    half: usize,
    round: impl Fn(&Runtime, Count) -> (Round, Round),
) -> Vec<Figure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let mut timed = rounds(|| round(&runtime, Count::Time));
    // Rounds that use so much memory vary much in time.
    while timed.len() > 1 && timed.len() < ROUNDS {
        timed.push(round(&runtime, Count::Time));
    }
    // Other work on the machine only makes a round slower.
    let least = |each: &dyn Fn(&(Round, Round)) -> f64| {
        timed.iter().map(each).fold(f64::INFINITY, f64::min) * 1e9 / (many() * STEPS) as f64
    };
    let (ours, floor) = (least(&|(ours, _)| ours.seconds), least(&|(_, floor)| floor.seconds));
    let unit = "ns/step";
    let time = Figure { case: case.to_owned(), ours, floor, unit, ratio: ours / floor };
    let counted: Vec<_> = (0..3).map(|_| round(&runtime, Count::Bytes(half))).collect();
    let per_run = |bytes: i64| bytes as f64 / many() as f64;
    let live = |(ours, floor): &(Round, Round)| (per_run(ours.live), per_run(floor.live));
    let memory = Figure {
        case: format!("{case}-memory"),
        ours: median(counted.iter().map(|round| live(round).0)),
        floor: median(counted.iter().map(|round| live(round).1)),
        unit: "bytes/live run",
        ratio: median(counted.iter().map(|round| live(round).0 / live(round).1)),
    };
    // The memory that is still allocated after the runs, beside the memory of live runs.
    let left = counted.iter().map(|(ours, _)| per_run(ours.left)).fold(f64::MIN, f64::max);
    let left = Figure {
        case: format!("{case}-left"),
        ours: left,
        floor: memory.ours,
        unit: "bytes/run, ended : live",
        ratio: left / memory.ours,
    };
    vec![time, memory, left]
}

/// Both kinds.
pub(super) fn runs() -> Vec<Figure> {
    let mut all = talking::runs();
    all.extend(bare::runs());
    all
}
