//! A step with 1,000 items that do nothing, in a store in memory, beside as many tasks that are
//! spawned by hand, each with a row of JSON for its result.

use std::sync::{Arc, Mutex, PoisonError};

use harness::BuildError;
use harness::prelude::*;
use harness::store::MemoryStore;

use super::{Figure, block_on, compare, failed};

const ITEMS: u64 = 1_000;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Sum {
    #[state(reduce = add)]
    sum: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Each,
}

fn agent() -> Result<Agent<(), Sum>, BuildError> {
    let harness = Harness::<(), Sum>::builder("each")
        .start(Step::Each)
        .steps(|define, step| match step {
            Step::Each => define
                .each(|_, _| async move { Ok((0..ITEMS).collect::<Vec<_>>()) })
                .run(|item: u64, _, _| async move { Ok(item) })
                .fold(|_, items| Ok(Sum::update().sum(items.into_iter().sum::<u64>())))
                .end(),
        })
        .build()?;
    Ok(harness.agent("each", ()))
}

/// The result of an item.
#[derive(Serialize)]
struct Row {
    item: u64,
    result: u64,
}

async fn by_hand() -> Option<u64> {
    let rows: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let tasks = (0..ITEMS).map(|item| {
        let rows = Arc::clone(&rows);
        tokio::spawn(async move {
            let row = serde_json::to_vec(&Row { item, result: item }).ok()?;
            rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
            Some(item)
        })
    });
    let mut sum = 0;
    for task in tasks.collect::<Vec<_>>() {
        sum += task.await.ok()??;
    }
    Some(sum)
}

pub(super) fn each() -> Vec<Figure> {
    const SUM: u64 = ITEMS * (ITEMS - 1) / 2;
    let Ok(agent) = agent() else { return vec![failed("each")] };
    let ours = || {
        let agent = agent.clone().store(MemoryStore::new());
        let outcome = block_on(async { agent.run(Sum::update(), ()).await });
        assert_eq!(outcome.ok().and_then(|it| it.state().map(|it| it.sum)), Some(SUM));
    };
    let floor = || assert_eq!(block_on(by_hand()), Some(SUM));
    let mut figure = compare(format!("each/{ITEMS}"), ITEMS, ours, floor);
    figure.unit = "ns/item";
    vec![figure]
}
