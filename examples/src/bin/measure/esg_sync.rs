//! What loading values into a worker costs, beside reading them from memory with `pickle`.

use harness::esg::{Entity, Executor as _, Load, RunStep, Sync};

use super::python::{Result, brief, or_failed, plain, took, worker};
use super::{Figure, rounds};

/// Milliseconds per value.
pub(super) fn syncs() -> Vec<Figure> {
    or_failed("esg-sync", figures())
}

fn figures() -> Result<Vec<Figure>> {
    let scale = if brief() { 10 } else { 1 };
    let bytes = format!("v = bytes(range(256)) * {}", 10_000_000 / 256 / scale);
    let rows = format!(
        "v = [{{'id': i, 'name': 'row %d' % i, 'value': i * 0.5}} for i in range({})]",
        200_000 / scale
    );
    Ok(vec![
        loaded("esg-sync 10 MB, fresh", &bytes, false)?,
        loaded("esg-sync 10 MB, stale", &bytes, true)?,
        loaded("esg-sync 200k dicts, fresh", &rows, false)?,
        loaded("esg-sync 200k dicts, stale", &rows, true)?,
    ])
}

/// Loads the value that `source` makes into a worker that has none, or another value by that name.
fn loaded(case: &str, source: &str, stale: bool) -> Result<Figure> {
    let mut python = worker()?;
    let mut seq = 0;
    let mut run = |python: &mut harness::esg::WorkerProcess, source: &str| {
        seq += 1;
        python.run(&RunStep { seq, step: "s", source, bind: None, readings: None })
    };
    let mut load = Vec::new();
    for (unit, blob) in run(&mut python, source)?.units {
        let members: Vec<_> = unit.members.iter().map(|member| member.entity.clone()).collect();
        let take = members.clone();
        let blob = blob.ok_or("the value was not stored")?;
        load.push(Load { key: unit.key, members, take, blob, refs: unit.refs });
    }
    let drop = if stale { vec![Entity::name("v")] } else { Vec::new() };
    let sync = Sync { drop, load, ..Sync::default() };
    let rounds = rounds(|| -> Result<(f64, f64)> {
        python.fresh()?;
        if stale {
            run(&mut python, "v = [1, 2, 3]")?;
        }
        let ours = took(|| {
            let synced = python.sync(&sync)?;
            synced.failed.is_empty().then_some(()).ok_or_else(|| "a value did not load".into())
        })?;
        Ok((ours.as_secs_f64() * 1e3, plain(source, &[], Some("v"))?.loads / 1e6))
    });
    let (mut ours, mut floor) = (f64::INFINITY, f64::INFINITY);
    for round in rounds {
        let round = round?;
        (ours, floor) = (ours.min(round.0), floor.min(round.1));
    }
    Ok(Figure { case: case.to_owned(), ours, floor, unit: "ms", ratio: ours / floor })
}
