//! What tracing a step costs, beside `exec` alone. The target: at most 150 us a small step.

use std::time::{Duration, Instant};

use harness::esg::{Blobs, CodeGraph, Executor as _, Program, RunStep};

use super::python::{Result, brief, or_failed, plain, took, worker};
use super::{Figure, rounds, scaled};

/// How many steps are timed together.
fn many() -> usize {
    scaled(200)
}

/// A class whose instances have a `__dict__`.
const CLASS: &str = "
class Row:
    def __init__(self, i):
        self.id, self.name, self.value = i, 'row %d' % i, i * 0.5
";

/// Microseconds per step, and milliseconds per megabyte of values that the step touches.
pub(super) fn steps() -> Vec<Figure> {
    or_failed("esg-step", figures())
}

fn figures() -> Result<Vec<Figure>> {
    let scale = if brief() { 10 } else { 1 };
    let mut figures = vec![bare("esg-step worker", "pass")?];
    figures.extend(traced("esg-step pass", "x = 0", "pass")?);
    figures.extend(traced("esg-step x = x + 1", "x = 0", "x = x + 1")?);
    figures.extend(traced("esg-step print", "x = 0", "print(x)")?);
    let rows = |count: usize| {
        format!(
            "v = [{{'id': i, 'name': 'row %d' % i, 'value': i * 0.5, 'tags': ['a', i]}} for i in range({count})]"
        )
    };
    let ints = |count: usize| format!("v = list(range(1000000, 1000000 + {count}))");
    let bytes = |count: usize| format!("v = bytes(range(256)) * {}", count / 256);
    let tuples = |count: usize| format!("v = [(i, 'row %d' % i, i * 0.5) for i in range({count})]");
    let strings =
        |count: usize| format!("v = ['row number %d of all' % i for i in range({count})]");
    let instances = |count: usize| format!("{CLASS}v = [Row(i) for i in range({count})]");
    for (name, setup, change) in [
        ("dicts", rows(50_000 / scale), Some("v[0]['id'] += 1")),
        ("tuples", tuples(50_000 / scale), Some("v[0] = (v[0][0] + 1, 'row 0', 0.0)")),
        ("strings", strings(50_000 / scale), Some("v[0] += 'x'")),
        ("instances", instances(50_000 / scale), Some("v[0].id += 1")),
        ("ints", ints(500_000 / scale), Some("v[0] += 1")),
        ("bytes", bytes(10_000_000 / scale), None),
    ] {
        figures.push(touched(&format!("esg-step {name} made"), &setup, &setup)?);
        figures.push(touched(&format!("esg-step {name} read"), &setup, "n = len(v)")?);
        if let Some(change) = change {
            figures.push(touched(&format!("esg-step {name} changed"), &setup, change)?);
        }
    }
    figures.push(aside("esg-step 50 MB aside", &rows(120_000 / scale))?);
    figures.push(swept("esg-step 50 MB swept", &rows(120_000 / scale))?);
    Ok(figures)
}

fn graph(setup: &str) -> Result<CodeGraph> {
    let mut program = Program::new();
    program.push("setup", setup)?;
    let mut graph = CodeGraph::new(program, worker()?, Blobs::memory()).sweep(false);
    graph.replay()?;
    Ok(graph)
}

/// Adds steps, and times the replay that runs them.
fn replayed(graph: &mut CodeGraph, round: usize, steps: &[String]) -> Result<f64> {
    Ok(timed(graph, round, steps)?.0)
}

/// The same, with wall time.
fn timed(graph: &mut CodeGraph, round: usize, steps: &[String]) -> Result<(f64, f64)> {
    graph.edit(|program| {
        for (at, step) in steps.iter().enumerate() {
            program.push(&format!("r{round}s{at}"), step)?;
        }
        Ok(())
    })?;
    let mut passed = Duration::ZERO;
    let took = took(|| {
        let begun = Instant::now();
        let report = graph.replay()?;
        passed = begun.elapsed();
        let all = report.ok() && report.ran.len() == steps.len() && report.untracked.is_empty();
        if all { Ok(()) } else { Err(format!("not every step ran as it should: {report}").into()) }
    })?;
    Ok((took.as_secs_f64() * 1e9, passed.as_secs_f64() * 1e9))
}

/// The least of both, over all rounds.
fn least(rounds: Vec<Result<(f64, f64)>>) -> Result<(f64, f64)> {
    let mut least = (f64::INFINITY, f64::INFINITY);
    for round in rounds {
        let (ours, floor) = round?;
        least = (least.0.min(ours), least.1.min(floor));
    }
    Ok(least)
}

fn figure(case: &str, unit: &'static str, (ours, floor): (f64, f64), per: f64) -> Figure {
    Figure {
        case: case.to_owned(),
        ours: ours / per,
        floor: floor / per,
        unit,
        ratio: ours / floor,
    }
}

/// Small steps in a worker alone, without a graph.
fn bare(case: &str, source: &str) -> Result<Figure> {
    let steps = vec![source.to_owned(); many()];
    let mut python = worker()?;
    let mut seq = 0;
    let least = least(rounds(|| {
        let ours = took(|| {
            for source in &steps {
                seq += 1;
                python.run(&RunStep { seq, step: "s", source, bind: None, readings: None })?;
            }
            Ok(())
        })?;
        Ok((ours.as_secs_f64() * 1e9, plain("", &steps, None)?.cpu))
    }))?;
    Ok(figure(case, "us/step", least, 1e3 * many() as f64))
}

/// Small steps, many in a replay: processor time and wall time.
fn traced(case: &str, setup: &str, source: &str) -> Result<[Figure; 2]> {
    let steps = vec![source.to_owned(); many()];
    let mut graph = graph(setup)?;
    let mut round = 0;
    let (mut used, mut waited) = (Vec::new(), Vec::new());
    let all: Vec<Result<_>> = rounds(|| {
        round += 1;
        let ours = timed(&mut graph, round, &steps)?;
        graph.edit(|program| {
            (0..many()).try_for_each(|at| program.remove(&format!("r{round}s{at}")).map(drop))
        })?;
        Ok((ours, plain(setup, &steps, None)?))
    });
    for round in all {
        let (ours, floor) = round?;
        used.push(Ok((ours.0, floor.cpu)));
        waited.push(Ok((ours.1, floor.wall)));
    }
    let per = 1e3 * many() as f64;
    Ok([
        figure(case, "us/step", least(used)?, per),
        figure(case, "us/step, waiting", least(waited)?, per),
    ])
}

/// One step on a large value, per pickled megabyte.
fn touched(case: &str, setup: &str, source: &str) -> Result<Figure> {
    let steps = [source.to_owned()];
    let mut graph = graph(setup)?;
    let mega = plain(setup, &[], Some("v"))?.bytes / 1e6;
    let mut round = 0;
    let least = least(rounds(|| {
        round += 1;
        Ok((replayed(&mut graph, round, &steps)?, plain(setup, &steps, None)?.cpu))
    }))?;
    Ok(figure(case, "ms/MB", least, 1e6 * mega))
}

/// Small steps beside a large value that they do not touch, and without one.
fn aside(case: &str, setup: &str) -> Result<Figure> {
    let steps = vec!["pass".to_owned(); many()];
    let (mut large, mut small) = (graph(setup)?, graph("v = 0")?);
    let mut round = 0;
    let least = least(rounds(|| {
        round += 1;
        Ok((replayed(&mut large, round, &steps)?, replayed(&mut small, round, &steps)?))
    }))?;
    Ok(figure(case, "us/step", least, 1e3 * many() as f64))
}

/// The sweep over all live values at the end of a replay, beside pickling them.
fn swept(case: &str, setup: &str) -> Result<Figure> {
    let mut graph = graph(setup)?.sweep(true);
    let mut round = 0;
    let least = least(rounds(|| {
        round += 1;
        let ours = replayed(&mut graph, round, &["pass".to_owned()])?;
        Ok((ours, plain(setup, &[], Some("v"))?.dumps))
    }))?;
    Ok(figure(case, "ms", least, 1e6))
}
