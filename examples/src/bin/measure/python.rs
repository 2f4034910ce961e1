//! Workers, and the plain interpreters they are compared with.
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::esg::{CPython, Limits, Trust, WorkerProcess};
use serde::{Deserialize, Serialize};

use super::{Figure, cpu_time, failed, is_once};

pub(super) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The figures, or one that says that the case failed.
pub(super) fn or_failed(case: &str, figures: Result<Vec<Figure>>) -> Vec<Figure> {
    figures.unwrap_or_else(|error| {
        eprintln!("measure: {case}: {error}");
        vec![failed(case)]
    })
}

/// Whether one round on less data is enough.
pub(super) fn brief() -> bool {
    is_once()
}

pub(super) fn interpreter() -> Result<PathBuf> {
    let all = CPython::all();
    let first = all.first().ok_or("no CPython from 3.11 to 3.13 in PATH")?;
    Ok(first.path().to_owned())
}

/// A worker with long time limits.
pub(super) fn worker() -> Result<WorkerProcess> {
    let wall = Duration::from_secs(300);
    let limits = Limits { wall, cpu: wall, service: wall, ..Limits::default() };
    Ok(CPython::at(interpreter()?).limits(limits).trust(Trust::Mine).start()?)
}

/// The input of the program below.
#[derive(Serialize)]
struct Input<'a> {
    setup: &'a str,
    steps: &'a [String],
    value: Option<&'a str>,
}

/// What a plain interpreter used.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Plain {
    /// Processor time of all steps, in nanoseconds.
    pub(super) cpu: f64,
    /// Wall time of all steps.
    pub(super) wall: f64,
    /// Bytes of the value, pickled.
    pub(super) bytes: f64,
    /// Processor time of pickling it.
    pub(super) dumps: f64,
    /// Processor time of reading it back.
    pub(super) loads: f64,
}

/// Runs steps with `exec`, and nothing else.
const PLAIN: &str = "
import json, pickle, sys, time
given = json.load(sys.stdin)
# Classes are pickled by name: pickle must find them in their module.
module = sys.modules['__main__'] = type(sys)('__main__')
names = vars(module)
exec(given['setup'], names)
steps, clock, timer = given['steps'], time.process_time_ns, time.perf_counter_ns
stdout, sys.stdout = sys.stdout, open('/dev/null', 'w')
begun, passed = clock(), timer()
for step in steps:
    exec(step, names)
cpu, wall = clock() - begun, timer() - passed
made = {'cpu': cpu, 'wall': wall, 'bytes': 0, 'dumps': 0, 'loads': 0}
if given['value']:
    value = names[given['value']]
    begun = clock()
    data = pickle.dumps(value, 5)
    made['dumps'], made['bytes'] = clock() - begun, len(data)
    begun = clock()
    value = pickle.loads(data)
    made['loads'] = clock() - begun
json.dump(made, stdout)
";

/// Runs `steps` after `setup` in an interpreter of their own, then pickles a value.
pub(super) fn plain(setup: &str, steps: &[String], value: Option<&str>) -> Result<Plain> {
    let mut child = Command::new(interpreter()?)
        .args(["-P", "-s", "-S", "-B", "-c", PLAIN])
        .env("PYTHONHASHSEED", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = serde_json::to_vec(&Input { setup, steps, value })?;
    child.stdin.take().ok_or("no pipe")?.write_all(&input)?;
    let output = child.wait_with_output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// How long `run` takes: processor time of this thread and of the workers, where the system reports
/// it, so that the time of other processes does not count.
pub(super) fn took<T>(run: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let (passed, begun, host) = (Instant::now(), workers(), cpu_time());
    std::hint::black_box(run()?);
    let host = cpu_time().saturating_sub(host);
    Ok(match (begun, workers()) {
        (Some(begun), Some(ended)) => host + ended.saturating_sub(begun),
        _ => passed.elapsed(),
    })
}

/// The processor time of this process's children that still run.
fn workers() -> Option<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let children = fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        for pid in children.split_ascii_whitespace() {
            // A child that has ended in the meantime does not count.
            let Ok(times) = fs::read_to_string(format!("/proc/{pid}/schedstat")) else { continue };
            nanos += times.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(nanos))
}
