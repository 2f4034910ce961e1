//! The cases of the `measure` program.

mod counting;
mod disk;
mod edges;
mod esg_replay;
mod esg_step;
mod esg_sync;
mod floor;
mod growing;
mod log;
mod ours;
mod python;
mod reopen;
mod runs;
mod scan;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

pub use counting::Counting;

/// A case: measures, and gives its figures.
pub type Case = fn() -> Vec<Figure>;

/// Every case by its name.
pub const CASES: &[(&str, Case)] = &[
    ("loop-bare", ours::bare),
    ("loop-bare-run", ours::fixed),
    ("loop-bare-allocations", ours::allocations),
    ("loop-growing", growing::growing),
    ("runs", runs::runs),
    ("log-memory", log::memory),
    ("log-memory-allocations", log::allocations),
    ("log-file", disk::time),
    ("log-file-bytes", disk::bytes),
    ("resume-file", reopen::resume),
    ("open-memory", reopen::memory),
    ("open-file", reopen::file),
    ("esg-edges", edges::edges),
    ("esg-scan", scan::scans),
    ("esg-step", esg_step::steps),
    ("esg-sync", esg_sync::syncs),
    ("esg-replay", esg_replay::replays),
];

/// The names of the cases.
pub fn names() -> Vec<&'static str> {
    CASES.iter().map(|(name, _)| *name).collect()
}

/// One figure: ours beside the floor.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The case, and which size of it.
    pub case: String,
    /// What ours takes.
    pub ours: f64,
    /// What the hand-written program takes.
    pub floor: f64,
    /// What both are counted in.
    pub unit: &'static str,
    /// Ours over the floor; where a disk is waited for, in the middle one of all rounds.
    pub ratio: f64,
}

impl Figure {
    /// The table's first line.
    pub fn header() -> String {
        format!("{:<28} {:>12} {:>12} {:>7}  unit", "case", "ours", "floor", "ratio")
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<28} {:>12.2} {:>12.2} {:>7.2}  {}",
            self.case, self.ours, self.floor, self.ratio, self.unit
        )
    }
}

/// A case that could not be measured.
fn given_up(case: &str) -> Figure {
    let (ours, floor, ratio) = (f64::NAN, f64::NAN, f64::NAN);
    Figure { case: case.to_owned(), ours, floor, unit: "not measured", ratio }
}

static ONCE: AtomicBool = AtomicBool::new(false);

/// From now on one round has to do.
pub fn once() {
    ONCE.store(true, Ordering::Relaxed);
}

/// Repeats a round for two seconds, and at least nine times; or once.
fn rounds<T>(mut round: impl FnMut() -> T) -> Vec<T> {
    let started = Instant::now();
    let mut rounds = vec![round()];
    while !ONCE.load(Ordering::Relaxed)
        && (rounds.len() < 9 || (started.elapsed() < Duration::from_secs(2) && rounds.len() < 199))
    {
        rounds.push(round());
    }
    rounds
}

/// Times both programs in alternating rounds and takes the fastest of each: whatever else the
/// machine does can only make a round slower. What is counted is this thread's time on a processor,
/// so that what others do on the machine does not count.
fn compare(case: String, per: u64, ours: impl Fn(), floor: impl Fn()) -> Figure {
    let rounds = alternate(cpu_time, per, ours, floor);
    let ours = rounds.iter().map(|(ours, _)| *ours).fold(f64::INFINITY, f64::min);
    let floor = rounds.iter().map(|(_, floor)| *floor).fold(f64::INFINITY, f64::min);
    Figure { case, ours, floor, unit: "ns/step", ratio: ours / floor }
}

/// The same for programs that wait for a disk: the time that passes, in the middle one of all
/// rounds. A disk makes some rounds faster than it can be relied on, and not in both programs at once;
/// so the ratio is the middle one of all rounds' ratios, too.
fn compare_waiting(case: String, per: u64, ours: impl Fn(), floor: impl Fn()) -> Figure {
    let start = Instant::now();
    let rounds = alternate(move || start.elapsed(), per, ours, floor);
    Figure {
        case,
        ours: median(rounds.iter().map(|(ours, _)| *ours)),
        floor: median(rounds.iter().map(|(_, floor)| *floor)),
        unit: "ns/step",
        ratio: median(rounds.iter().map(|(ours, floor)| ours / floor)),
    }
}

fn alternate(
    clock: impl Fn() -> Duration,
    per: u64,
    ours: impl Fn(),
    floor: impl Fn(),
) -> Vec<(f64, f64)> {
    let time = |run: &dyn Fn()| {
        let started = clock();
        run();
        clock().saturating_sub(started).as_secs_f64() * 1e9 / per as f64
    };
    rounds(|| (time(&ours), time(&floor)))
}

/// This thread's time on a processor.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().unwrap_or_default()
}

/// Where there is no such clock, the time that passes.
#[cfg(not(unix))]
fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs a future on a runtime like the one a program has.
fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = match
            tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("measure: no runtime: {error}");
                std::process::exit(1)
            }
        };
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
