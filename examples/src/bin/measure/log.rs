//! The two-step counter with its log in memory.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use harness::state::{Op, Path, Segment};
use harness::store::MemoryStore;
use serde::Serialize;

use super::floor::{self, Update};
use super::{Figure, block_on, compare, counting, ours};

/// An entry, written by hand.
#[derive(Serialize)]
struct Entry {
    t: u64,
    commit: Commit,
}

#[derive(Serialize)]
struct Commit {
    n: Option<Arc<str>>,
    o: Vec<Op>,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An update as operations of the log.
fn ops(count: &floor::Count, update: &Update) -> Vec<Op> {
    let set = |name: &'static str, value: u64| Op::Set {
        path: Path::from_iter([Segment::Key(name.into())]),
        value: value.into(),
    };
    let mut ops = Vec::new();
    if update.thoughts.is_some() {
        ops.push(set("thoughts", count.thoughts));
    }
    if update.acts.is_some() {
        ops.push(set("acts", count.acts));
    }
    ops
}

/// The loop by hand; each step appends an entry to a log in memory.
async fn by_hand(steps: u64) -> Result<Vec<Vec<u8>>, floor::Error> {
    let names: [Arc<str>; 2] = ["think".into(), "act".into()];
    let table = floor::table(steps);
    let mut log = Vec::new();
    let mut count = floor::Count::default();
    let mut at = Some(0);
    while let Some((body, route)) = at.and_then(|at| table.get(at)) {
        let update = body(&count).await?;
        count.apply(&update);
        at = route(&count);
        let next = at.and_then(|at| names.get(at)).cloned();
        let entry = Entry { t: now(), commit: Commit { n: next, o: ops(&count, &update) } };
        log.push(serde_json::to_vec(&entry)?);
    }
    Ok(log)
}

fn floor(steps: u64) {
    let log = block_on(by_hand(steps));
    assert!(log.is_ok_and(|log| log.len() as u64 >= steps));
}

/// Ten thousand and a hundred thousand steps.
pub(super) fn memory() -> Vec<Figure> {
    let measured = [10_000, 100_000].into_iter().filter_map(|steps| {
        let agent = ours::agent(steps).ok()?;
        Some(compare(
            format!("log-memory/{steps}"),
            steps,
            || ours::run(&agent.clone().store(MemoryStore::new()), steps),
            || floor(steps),
        ))
    });
    measured.collect()
}

/// Allocations of one step with a log.
pub(super) fn allocations() -> Vec<Figure> {
    let ours = |steps| {
        if let Ok(agent) = ours::agent(steps) {
            ours::run(&agent.store(MemoryStore::new()), steps);
        }
    };
    vec![counting::compare("log-memory-allocations", ours, floor)]
}
