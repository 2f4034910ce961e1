//! Workers, and plain interpreters beside them.
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use harness::esg::{CPython, Limits, Python, Trust};
use serde::{Deserialize, Serialize};

use super::{Figure, ONCE, cpu_time, given_up};

pub(super) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The figures, or that there are none, and why.
pub(super) fn or_given_up(case: &str, figures: Result<Vec<Figure>>) -> Vec<Figure> {
    figures.unwrap_or_else(|error| {
        eprintln!("measure: {case}: {error}");
        vec![given_up(case)]
    })
}

/// Whether one round has to do, on less data.
pub(super) fn brief() -> bool {
    ONCE.load(Ordering::Relaxed)
}

fn interpreter() -> Result<PathBuf> {
    let all = CPython::all();
    let first = all.first().ok_or("no CPython from 3.11 to 3.13 in PATH")?;
    Ok(first.path().to_owned())
}

/// A worker that may take its time.
pub(super) fn worker() -> Result<Python> {
    let wall = Duration::from_secs(300);
    let limits = Limits { wall, cpu: wall, service: wall, ..Limits::default() };
    Ok(CPython::at(interpreter()?).limits(limits).trust(Trust::Mine).start()?)
}

/// What the program below is told.
#[derive(Serialize)]
struct Told<'a> {
    setup: &'a str,
    steps: &'a [String],
    value: Option<&'a str>,
}

/// What a plain interpreter took.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Plain {
    /// Processor time of all steps, in nanoseconds.
    pub(super) cpu: f64,
    /// The time that passed meanwhile.
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
told = json.load(sys.stdin)
# Classes are pickled by name: they have to be found in their module.
module = sys.modules['__main__'] = type(sys)('__main__')
names = vars(module)
exec(told['setup'], names)
steps, clock, timer = told['steps'], time.process_time_ns, time.perf_counter_ns
stdout, sys.stdout = sys.stdout, open('/dev/null', 'w')
begun, passed = clock(), timer()
for step in steps:
    exec(step, names)
cpu, wall = clock() - begun, timer() - passed
made = {'cpu': cpu, 'wall': wall, 'bytes': 0, 'dumps': 0, 'loads': 0}
if told['value']:
    value = names[told['value']]
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
    let told = serde_json::to_vec(&Told { setup, steps, value })?;
    child.stdin.take().ok_or("no pipe")?.write_all(&told)?;
    let output = child.wait_with_output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// How long `run` takes: processor time of this thread and of the workers, where the system tells
/// it, so that what others do on the machine does not count.
pub(super) fn took<T>(run: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let (passed, begun, host) = (Instant::now(), workers(), cpu_time());
    std::hint::black_box(run()?);
    let host = cpu_time().saturating_sub(host);
    Ok(match (begun, workers()) {
        (Some(begun), Some(ended)) => host + ended.saturating_sub(begun),
        _ => passed.elapsed(),
    })
}

/// The processor time of the processes that this one has started and that still run.
fn workers() -> Option<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let children = fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        for pid in children.split_ascii_whitespace() {
            // One that has ended meanwhile counts no more.
            let Ok(times) = fs::read_to_string(format!("/proc/{pid}/schedstat")) else { continue };
            nanos += times.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(nanos))
}
