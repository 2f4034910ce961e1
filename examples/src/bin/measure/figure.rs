//! Figures, and the rounds that measure them.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

/// The most that the ratio of a case may be, by the beginning of its name.
const TARGETS: &[(&str, f64)] = &[
    ("loop-bare/1000", 6.0),
    ("loop-growing/", 1.5),
    ("log-memory/", 3.0),
    ("log-file/", 3.5),
    ("log-file-bytes/", 1.5),
    ("log-file-sync/", 1.3),
    ("log-sqlite/", 1.5),
    ("sessions-sqlite/", 0.2),
    ("log-postgres/", 1.3),
    ("sessions-postgres/", 0.2),
    ("engine-step/", 1.3),
    ("list-", 2.0),
    ("resume-file/", 2.5),
    ("runs/", 2.0),
    ("each/", 3.0),
    ("sessions/", 3.0),
    ("sessions-peak/", 1.0),
    ("esg-repair/", 1.2),
    ("esg-programs wrong/", 0.0),
    ("esg-programs run everything/", 0.05),
    ("esg-programs ran/minimal/", 1.3),
    ("esg-programs replays/plain/", 0.4),
    ("esg-programs slow first runs/", 0.0),
    ("otel-off/", 1.5),
    ("otel-on/", 1.0),
    ("llm-turn", 1.0),
    ("llm-streams", 1.0),
];

/// One figure of a case: ours beside the floor.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    /// The case and its size.
    pub(super) case: String,
    /// What ours takes.
    pub(super) ours: f64,
    /// What the hand-written program takes.
    pub(super) floor: f64,
    /// The unit of both.
    pub(super) unit: &'static str,
    /// Ours over the floor; where both wait for a disk, the median over all rounds.
    pub(super) ratio: f64,
}

impl Figure {
    /// The header of the table.
    pub(super) fn header() -> String {
        format!(
            "{:<28} {:>12} {:>12} {:>7} {:>7}  unit",
            "case", "ours", "floor", "ratio", "at most"
        )
    }

    /// The most that its ratio may be.
    fn at_most(&self) -> Option<f64> {
        let case = format!("{}/", self.case);
        let target = TARGETS.iter().find(|(start, _)| case.starts_with(start));
        target.map(|(_, most)| *most)
    }

    /// One JSON object.
    pub(super) fn to_json(&self) -> String {
        let Ok(mut figure) = serde_json::to_value(self) else { return String::new() };
        figure["at_most"] = self.at_most().into();
        figure.to_string()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<28} {:>12.2} {:>12.2} {:>7.2} {:>7}  {}",
            self.case,
            self.ours,
            self.floor,
            self.ratio,
            self.at_most().map_or_else(|| "-".to_owned(), |most| most.to_string()),
            self.unit
        )
    }
}

/// The figure of a case that failed.
pub(super) fn failed(case: &str) -> Figure {
    let (ours, floor, ratio) = (f64::NAN, f64::NAN, f64::NAN);
    Figure { case: case.to_owned(), ours, floor, unit: "not measured", ratio }
}

static ONCE: AtomicBool = AtomicBool::new(false);

/// From now on each case runs one round.
pub(super) fn once() {
    ONCE.store(true, Ordering::Relaxed);
}

/// Whether each case runs one round.
pub(super) fn is_once() -> bool {
    ONCE.load(Ordering::Relaxed)
}

/// How many of something a case makes: a tenth of it in a test.
pub(super) fn scaled(many: usize) -> usize {
    if is_once() { many.div_ceil(10) } else { many }
}

/// Repeats a round for two seconds, and at least nine times; or once.
pub(super) fn rounds<T>(mut round: impl FnMut() -> T) -> Vec<T> {
    let started = Instant::now();
    let mut rounds = vec![round()];
    while !is_once()
        && (rounds.len() < 9 || (started.elapsed() < Duration::from_secs(2) && rounds.len() < 199))
    {
        rounds.push(round());
    }
    rounds
}

/// Times both programs in alternating rounds and takes the fastest of each: other work on the machine
/// only makes a round slower. Counts this thread's processor time, so that the time of other
/// processes does not count.
pub(super) fn compare(case: String, per: u64, ours: impl Fn(), floor: impl Fn()) -> Figure {
    let rounds = alternate(cpu_time, per, ours, floor);
    let ours = rounds.iter().map(|(ours, _)| *ours).fold(f64::INFINITY, f64::min);
    let floor = rounds.iter().map(|(_, floor)| *floor).fold(f64::INFINITY, f64::min);
    Figure { case, ours, floor, unit: "ns/step", ratio: ours / floor }
}

/// The same for programs that wait for a disk: wall time, as the median over all rounds. A disk makes
/// some rounds of one program unusually fast, so the ratio is the median of all ratios.
pub(super) fn compare_waiting(case: String, per: u64, ours: impl Fn(), floor: impl Fn()) -> Figure {
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

/// This thread's processor time.
#[cfg(unix)]
pub(super) fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().unwrap_or_default()
}

/// Where there is no such clock, wall time.
#[cfg(not(unix))]
pub(super) fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

pub(super) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs a future on a current-thread runtime.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
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
