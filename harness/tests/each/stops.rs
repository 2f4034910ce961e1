//! Runs that are stopped, cancelled, dropped, or out of budget while items are at work.

use std::time::Duration;

use harness::graph::Limit;
use harness::llm::{Spend, Usage};
use harness::store::MemoryStore;

use super::bench::*;
use super::rig::{count, settled};

/// Items wait until a test lets them end.
fn gated(probe: &Probe) -> Harness<(), Work> {
    let probe = probe.clone();
    Loop { concurrency: Some(2), retry: Some(9), ..Loop::default() }.build(move |item, cx| {
        let probe = probe.clone();
        async move {
            probe.hit(item.clone());
            let (hits, name) = (probe.clone(), item.clone());
            cx.once("k", async move || Ok(hits.hit(format!("once {name}")))).await?;
            if item.starts_with('q') {
                return ask(item, &cx).await;
            }
            probe.open("working");
            probe.pass(&item).await;
            Ok(item)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_the_items_in_flight_and_enters_no_others() {
    for stored in [false, true] {
        let (probe, store) = (Probe::default(), MemoryStore::new());
        let agent = gated(&probe).agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let run = agent.run(items(["a", "b", "c", "d"]), ()).session("s").start();
        probe.pass("working").await;
        probe.pass("working").await;
        run.stop();
        // The run does not spin: this task gets its turn.
        tokio::time::sleep(Duration::from_secs(1)).await;
        ["a", "b"].iter().for_each(|item| probe.open(item));
        let out = stopped(run.await.unwrap());
        assert_eq!((probe.count("a"), probe.count("b"), probe.count("c")), (1, 1, 0));
        ["c", "d"].iter().for_each(|item| probe.open(item));
        let out = ended(agent.resume(&out, Answers::none(), ()).await.unwrap());
        assert_eq!(out.state.out, ["a", "b", "c", "d", "After"]);
        assert_eq!((probe.count("a"), probe.count("d")), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_items_in_flight_and_keeps_their_effects() {
    for stored in [false, true] {
        let probe = Probe::default();
        let agent = gated(&probe).agent("a", ());
        let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
        let run = agent.run(items(["a", "b", "c"]), ()).session("s").start();
        probe.pass("working").await;
        probe.pass("working").await;
        run.cancel();
        let out = stopped(run.await.unwrap());
        ["a", "b", "c"].iter().for_each(|item| probe.open(item));
        let out = ended(agent.resume(&out, Answers::none(), ()).await.unwrap());
        assert_eq!(out.state.out, ["a", "b", "c", "After"]);
        assert_eq!((probe.count("a"), probe.count("once a"), probe.count("once b")), (2, 1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_keeps_what_was_done() {
    let (probe, store) = (Probe::default(), MemoryStore::new());
    let agent = gated(&probe).agent("a", ()).store(store.clone());
    let run = agent.run(items(["a", "b", "c"]), ()).session("s").start();
    probe.open("a");
    for _ in 0..3 {
        probe.pass("working").await;
    }
    drop(run);
    settled(&store, "s").await;
    ["b", "c"].iter().for_each(|item| probe.open(item));
    let out = ended(agent.resume("s", Answers::none(), ()).await.unwrap());
    assert_eq!(out.state.out, ["a", "b", "c", "After"]);
    assert_eq!((probe.count("a"), probe.count("b"), probe.count("once b")), (1, 2, 1));
}

/// A run that is stopped with nothing but questions left can do no more.
#[tokio::test(start_paused = true)]
async fn a_stopped_run_whose_items_all_wait_is_interrupted() {
    for stored in [false, true] {
        let (probe, store) = (Probe::default(), MemoryStore::new());
        let agent = gated(&probe).agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let run = agent.run(items(["q1", "a"]), ()).session("s").start();
        probe.pass("working").await;
        run.stop();
        tokio::time::sleep(Duration::from_secs(1)).await;
        probe.open("a");
        let out = waiting(run.await.unwrap());
        assert_eq!(asking(&out.questions), [0]);
        let out = ended(agent.resume(&out, answers(&out.questions), ()).await.unwrap());
        assert_eq!(out.state.out, ["said q1", "a", "After"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_for_the_next_try() {
    for stored in [false, true] {
        let probe = Probe::default();
        let seen = probe.clone();
        let harness = Loop { retry: Some(9), ..Loop::default() }.build(move |item, cx| {
            let probe = seen.clone();
            async move {
                probe.open("tried");
                match cx.attempt() {
                    1 => Err(StepError::retryable("later").after(Duration::from_secs(99_999))),
                    _ => Ok(item),
                }
            }
        });
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
        let run = agent.run(items(["a"]), ()).session("s").start();
        probe.pass("tried").await;
        let began = tokio::time::Instant::now();
        run.stop();
        let out = stopped(run.await.unwrap());
        assert!(began.elapsed() < Duration::from_secs(60));
        ended(agent.resume(&out, Answers::none(), ()).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_tokens_keeps_items_from_being_entered() {
    for stored in [false, true] {
        let (probe, store) = (Probe::default(), MemoryStore::new());
        let seen = probe.clone();
        let made = Loop {
            concurrency: Some(1),
            budget: Some(Budget::default().tokens(20)),
            ..Loop::default()
        };
        let harness = made.build(move |item, _| {
            let probe = seen.clone();
            async move {
                probe.hit(item.clone());
                let usage = Usage { input: Some(10), ..Usage::default() };
                let spend = Spend { usage, ..Spend::default() };
                harness::observe::current().unwrap().charge(&spend);
                Ok(item)
            }
        });
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let out = exhausted(agent.run(items(["a", "b", "c"]), ()).session("s").await.unwrap());
        assert_eq!((out.limit, probe.hits().len()), (Limit::Tokens, 2));
        let more = Budget::default().tokens(99);
        let out = agent.resume(&out, Answers::none(), ()).budget(more).await.unwrap();
        let out = ended(out);
        assert_eq!(out.spent.usage.input, Some(30));
        assert_eq!(probe.hits(), ["a", "b", "c"]);
        if stored {
            assert_eq!(count(&store, "s", "item").await, 3);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_time_ends_items_and_waits_for_tries() {
    for retry in [false, true] {
        for stored in [false, true] {
            let made = Loop {
                retry: Some(3),
                budget: Some(Budget::default().wall(Duration::from_secs(5))),
                cleans: true,
                ..Loop::default()
            };
            let harness = made.build(move |item, _| async move {
                match (&*item, retry) {
                    ("fast", _) => Ok(item),
                    (_, true) => Err(StepError::retryable("x").after(Duration::from_secs(9_999))),
                    (_, false) => std::future::pending().await,
                }
            });
            let agent = harness.agent("a", ());
            let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
            let began = tokio::time::Instant::now();
            let out = exhausted(agent.run(items(["fast", "slow"]), ()).await.unwrap());
            assert_eq!(out.limit, Limit::Wall);
            assert!(began.elapsed() < Duration::from_secs(60));
            assert_eq!(out.state.out, ["Clean"]);
        }
    }
}
