//! Runs that ask the holder of their session to stop.

use std::sync::Arc;
use std::time::Duration;

use harness::inspect::Phase;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{OnBusy, Sessions};
use tokio::sync::Semaphore;

use super::rig::{all, count};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    /// The step that waits until it is asked to stop.
    waits: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    One,
    Two,
    Three,
}

/// Says where a step waits.
#[derive(Clone)]
struct Stand(Arc<Semaphore>);

impl Stand {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    async fn at_work(&self) {
        self.0.acquire().await.unwrap().forget();
    }

    fn agent(&self, store: &MemoryStore) -> Agent<(), Doc> {
        let body = || {
            let stand = self.clone();
            move |doc: View<Doc>, cx: Cx<()>| {
                let stand = stand.clone();
                async move {
                    let mut update = Doc::update().lines([cx.step().to_owned()]);
                    if doc.waits == cx.step() {
                        stand.0.add_permits(1);
                        cx.cancelled().await;
                        // A later step does not wait again.
                        update = update.waits("");
                    }
                    Ok(update)
                }
            }
        };
        Harness::<(), Doc>::builder("stops")
            .start(Step::One)
            .steps(|define, step| match step {
                Step::One => define.run(body()).then(Step::Two),
                Step::Two => define.run(body()).then(Step::Three),
                Step::Three => define.run(body()).end(),
            })
            .build()
            .unwrap()
            .agent("a", ())
            .store(store.clone())
            // A stop is seen when the lease is renewed.
            .lease(Duration::from_millis(1_200))
    }
}

fn said(line: &str) -> <Doc as State>::Update {
    Doc::update().lines([line.to_owned()])
}

/// The holder settles as stopped: its turn is not over, so there is no place for another input.
#[tokio::test(start_paused = true)]
async fn an_input_is_refused_once_the_holder_has_stopped_in_its_turn() {
    for named in [false, true] {
        let (stand, store) = (Stand::new(), MemoryStore::new());
        let (agent, sessions) = (stand.agent(&store), Sessions::new(store.clone()));
        let give = || {
            let request = agent.run(said("next"), ()).session("s").on_busy(OnBusy::Stop);
            if named { request.input_id("next") } else { request }
        };
        let held = agent.run(said("in").waits("One"), ()).session("s").start();
        stand.at_work().await;
        let refused = give().await.unwrap_err();
        assert!(refused.is_unsettled() && !refused.is_busy(), "{refused}");
        let Outcome::Stopped(stopped) = held.await.unwrap() else { panic!("it was not stopped") };
        assert!(!stopped.cancelled);
        // The result of the running step is kept, and no step after it has run.
        assert_eq!(stopped.state.lines, ["in", "One"]);
        drop(stopped);

        let status = sessions.status("s").await.unwrap();
        assert_eq!((status.phase, &*status.step, status.turn), (Phase::Stopped, "Two", 1));
        assert_eq!((status.holder, count(&store, "s", "run").await), (None, 1));
        // The same again, while no run holds it.
        let before = all(&store, "s").await;
        assert!(give().await.unwrap_err().is_unsettled());
        assert_eq!(all(&store, "s").await, before);

        // The refused input has left no trace: the turn is resumed without it, and after its end the
        // input starts the next turn.
        let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["in", "One", "Two", "Three"]);
        let ended = give().await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines[4..], ["next", "One", "Two", "Three"]);
    }
}

/// A stop at the last boundary of a turn is the end of the turn.
#[tokio::test(start_paused = true)]
async fn an_input_is_the_next_turn_if_the_holder_was_at_its_last_step() {
    let (stand, store) = (Stand::new(), MemoryStore::new());
    let agent = stand.agent(&store);
    let held = agent.run(said("in").waits("Three"), ()).session("s").start();
    stand.at_work().await;
    let next = agent.run(said("next"), ()).session("s").on_busy(OnBusy::Stop);
    let next = next.await.unwrap().ended().unwrap();
    let held = held.await.unwrap().ended().unwrap();
    assert_eq!(held.state.lines, ["in", "One", "Two", "Three"]);
    assert_eq!(next.state.lines[4..], ["next", "One", "Two", "Three"]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_continues_where_the_holder_stopped() {
    for (waits, kept) in [("One", 2), ("Two", 3)] {
        let (stand, store) = (Stand::new(), MemoryStore::new());
        let agent = stand.agent(&store);
        let held = agent.run(said("in").waits(waits), ()).session("s").start();
        stand.at_work().await;
        let rest = agent.resume("s", Answers::none(), ()).on_busy(OnBusy::Stop);
        let ended = rest.await.unwrap().ended().unwrap();
        let Outcome::Stopped(stopped) = held.await.unwrap() else { panic!("it was not stopped") };
        let lines = ["in", "One", "Two", "Three"];
        assert_eq!(stopped.state.lines, lines[..kept]);
        // No step twice, none left out; and the stop was for the holder alone.
        assert_eq!(ended.state.lines, lines);
        assert_ne!(stopped.run, ended.run);
        for (kind, times) in [("run", 2), ("commit", 3), ("settle", 2), ("recover", 0)] {
            assert_eq!(count(&store, "s", kind).await, times, "{kind}, {waits}");
        }
    }
}
