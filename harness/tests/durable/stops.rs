//! Runs that ask the holder of their session to stop.

use std::sync::Arc;
use std::time::Duration;

use harness::inspect::Phase;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{OnBusy, Sessions};
use tokio::sync::Semaphore;

use super::rig::count;

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

/// The input takes the place of the turn that was stopped: by any request, and whether that was
/// before or after the input was given.
#[tokio::test(start_paused = true)]
async fn an_input_takes_the_place_of_the_turn_that_was_stopped_for_it() {
    for (named, first) in [(false, false), (true, false), (false, true), (true, true)] {
        let (stand, store) = (Stand::new(), MemoryStore::new());
        let (agent, sessions) = (stand.agent(&store), Sessions::new(store.clone()));
        let give = || {
            let request = agent.run(said("next"), ()).session("s").on_busy(OnBusy::Stop);
            if named { request.input_id("next") } else { request }
        };
        let held = agent.run(said("in").waits("One"), ()).session("s").start();
        stand.at_work().await;
        let mut held = Some(held);
        let mut stopped = None;
        if first && let Some(held) = held.take() {
            // It has stopped before: the input finds it at rest.
            held.stop();
            stopped = Some(held.await.unwrap());
            let plain = agent.run(said("next"), ()).session("s").await.unwrap_err();
            assert!(plain.is_unsettled() && !plain.is_busy(), "{plain}");
            assert_eq!(sessions.status("s").await.unwrap().phase, Phase::Stopped);
        }
        let ended = give().await.unwrap().ended().unwrap();
        if let Some(held) = held {
            stopped = Some(held.await.unwrap());
        }
        let Some(Outcome::Stopped(stopped)) = stopped else { panic!("it was not stopped") };
        assert!(!stopped.cancelled);
        // The result of the running step is kept, and no step after it has run.
        assert_eq!(stopped.state.lines, ["in", "One"]);
        assert_eq!(ended.state.lines, ["in", "One", "next", "One", "Two", "Three"]);

        let status = sessions.status("s").await.unwrap();
        assert_eq!((status.phase, status.turn), (Phase::Ended, 2));
        assert_eq!((status.holder, count(&store, "s", "run").await), (None, 2));
        if named {
            // Given again, it is not applied again.
            assert_eq!(give().await.unwrap().ended().unwrap().state, ended.state);
        }
    }
}

/// What a turn is not given up for: an open question, a failure, an effect in doubt.
#[tokio::test(start_paused = true)]
async fn only_a_turn_that_was_stopped_gives_way_to_an_input() {
    #[derive(Question, Serialize, Deserialize)]
    #[question(answer = bool)]
    struct Sure;

    for how in ["ask", "fail", "doubt"] {
        let (stand, store) = (Stand::new(), MemoryStore::new());
        let body = {
            let stand = stand.clone();
            move |doc: View<Doc>, cx: Cx<()>| {
                let stand = stand.clone();
                async move {
                    if doc.waits.is_empty() {
                        return Ok(Doc::update().lines(["worked".to_owned()]));
                    }
                    if how == "doubt" {
                        let paid = cx.once("pay", async || Err::<(), _>(StepError::retryable("?")));
                        let _ = paid.at_most_once().await;
                    }
                    stand.0.add_permits(1);
                    cx.cancelled().await;
                    match how {
                        "ask" => {
                            let _: bool = cx.ask("sure", Sure).await?;
                            Ok(Doc::update())
                        }
                        "fail" => Err(StepError::fatal("no")),
                        _ => Err(StepError::retryable("again")),
                    }
                }
            }
        };
        let harness = Harness::<(), Doc>::builder("gives-way")
            .start(Step::One)
            .steps(|define, step| match step {
                Step::One => define.run(body.clone()).retry(Retry::exponential()).end(),
                _ => define.off("not of this loop"),
            })
            .build()
            .unwrap();
        let agent = harness.agent("a", ()).store(store.clone());
        let agent = agent.lease(Duration::from_millis(1_200));
        let held = agent.run(said("in").waits("x"), ()).session("s").start();
        stand.at_work().await;
        let give = || agent.run(said("next").waits(""), ()).session("s").on_busy(OnBusy::Stop);
        let refused = give().await.unwrap_err();
        held.await.unwrap().ended().unwrap_err();
        match how {
            "ask" => assert!(refused.is_pending_interrupt(), "{refused}"),
            _ => assert!(refused.is_unsettled(), "{refused}"),
        }
        assert_eq!(refused.to_string().contains("`pay` is in doubt"), how == "doubt", "{refused}");
        if how == "ask" {
            let ended = give().withdraw_questions().await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["in", "next", "worked"]);
        }
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
