//! A run whose appends fail, before or after they have had their effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::Outcome;
use harness::prelude::*;
use harness::store::{ReadRequest, SessionStore as _};
use harness::testing::{Call, Faulty};

use super::open;
use crate::support::id;

const STEPS: u32 = 5;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tally {
    #[state(reduce = add)]
    n: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Count,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

fn harness(effects: Arc<AtomicU32>) -> Harness<(), Tally> {
    let count = move |_: View<Tally>, cx: Cx<()>| {
        let effects = effects.clone();
        async move {
            cx.once("count", async move || {
                effects.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
            .await?;
            Ok(Tally::update().n(1))
        }
    };
    Harness::<(), Tally>::builder("tally")
        .start(Step::Count)
        .steps(move |define, step| match step {
            Step::Count => define.run(count.clone()).route(
                |tally: &Tally| if tally.n < STEPS { Next::More } else { Next::Enough },
                |next| match next {
                    Next::More => to(Step::Count),
                    Next::Enough => end(),
                },
            ),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn whichever_append_fails_no_step_is_lost_or_taken_twice() {
    for done in [false, true] {
        for nth in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let store = Faulty::new(open(dir.path()).await);
            let faults = store.faults().clone();
            match done {
                true => faults.after(Call::Append, move |call| call == nth),
                false => faults.before(Call::Append, move |call| call == nth),
            }
            let effects = Arc::new(AtomicU32::new(0));
            let agent = harness(effects.clone()).agent("tally", ()).store(store);
            let mut outcome = agent.run(Tally::update(), ()).session("s").await;
            let reached = faults.calls(Call::Append) >= nth;
            for _ in 0..3 {
                if matches!(outcome, Ok(Outcome::Ended(_))) {
                    break;
                }
                let sound = open(dir.path()).await;
                let begun = sound.read(&id("s"), ReadRequest::summary()).await.unwrap().is_some();
                outcome = match begun {
                    true => agent.resume("s", Answers::none(), ()).await,
                    false => agent.run(Tally::update(), ()).session("s").await,
                };
            }
            let Ok(Outcome::Ended(ended)) = outcome else {
                panic!("append {nth} (done: {done}): {outcome:?}")
            };
            assert_eq!(ended.state.n, STEPS, "append {nth} (done: {done})");
            let effects = effects.load(Ordering::Relaxed);
            // An effect whose record certainly failed is repeated.
            let most = STEPS + u32::from(!done);
            assert!((STEPS..=most).contains(&effects), "append {nth} (done: {done}): {effects}");
            if !reached {
                break;
            }
        }
    }
}
