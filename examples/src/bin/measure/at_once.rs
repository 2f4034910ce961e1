//! Many stored sessions at once beside one after the other, in one store.

use std::cell::Cell;
use std::time::Instant;

use harness::prelude::*;
use harness::store::SessionStore;

use super::growing::{self, Talk};
use super::{Figure, block_on, median, rounds};

/// How many sessions work at once, and how many steps each has.
const SESSIONS: usize = 1_000;
const STEPS: u64 = 10;
/// How many are timed one after the other.
const SEQUENTIAL: usize = 100;

async fn session(agent: Agent<(), Talk>, id: String) {
    let outcome = agent.run(Talk::update(), ()).session(id).await;
    let said = outcome.ok().and_then(|it| it.state().map(|it| it.messages.len() as u64));
    assert_eq!(said, Some(STEPS), "a session did not reach its end");
}

/// The time of a step of 1,000 sessions at once, beside that of sessions one after the other.
pub(super) fn at_once(case: &str, store: impl SessionStore) -> Option<Figure> {
    let agent = growing::agent(STEPS).ok()?.store(store);
    let round = Cell::new(0);
    let timed = rounds(|| {
        let nth = round.replace(round.get() + 1);
        let begun = Instant::now();
        block_on(async {
            let run = |at| tokio::spawn(session(agent.clone(), format!("p-{nth}-{at}")));
            for task in (0..SESSIONS).map(run).collect::<Vec<_>>() {
                assert!(task.await.is_ok(), "a session has panicked");
            }
        });
        let parallel = begun.elapsed().as_nanos() as f64 / (SESSIONS as u64 * STEPS) as f64;
        let begun = Instant::now();
        for at in 0..SEQUENTIAL {
            block_on(session(agent.clone(), format!("s-{nth}-{at}")));
        }
        let alone = begun.elapsed().as_nanos() as f64 / (SEQUENTIAL as u64 * STEPS) as f64;
        (parallel, alone)
    });
    Some(Figure {
        case: format!("{case}/{SESSIONS}"),
        ours: median(timed.iter().map(|(parallel, _)| *parallel)),
        floor: median(timed.iter().map(|(_, alone)| *alone)),
        unit: "ns/step, at once : one by one",
        ratio: median(timed.iter().map(|(parallel, alone)| parallel / alone)),
    })
}
