//! Items that fail, and what becomes of the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::store::MemoryStore;

use super::bench::*;
use super::rig::{count, questions};

fn agents(harness: &Harness<(), Work>) -> [Agent<(), Work>; 2] {
    [harness.agent("a", ()), harness.agent("a", ()).store(MemoryStore::new())]
}

/// The item `bad` fails, before the others are done.
fn failing(made: Loop, probe: &Probe) -> Harness<(), Work> {
    let probe = probe.clone();
    made.build(move |item, _| {
        let probe = probe.clone();
        async move {
            if item.starts_with("bad") {
                probe.hit("failed");
                return Err(StepError::fatal(format!("{item} is wrong")));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            probe.hit(item.clone());
            Ok(item)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_fold_fails_once_the_other_items_are_done() {
    for stored in [0, 1] {
        let probe = Probe::default();
        let agent = agents(&failing(Loop::default(), &probe))[stored].clone();
        let out = agent.run(items(["a", "bad", "b", "bad2"]), ()).await.unwrap();
        let out = failed(out);
        assert_eq!(probe.hits(), ["failed", "failed", "a", "b"]);
        let said = &out.failure.message;
        assert_eq!(said, "2 of 4 items failed; item 1: bad is wrong");
        assert_eq!((out.failure.kind, out.failure.retryable), (FailureKind::Error, false));
        assert!(out.state.unwrap().out.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fold_of_all_gets_the_failures() {
    for stored in [0, 1] {
        let probe = Probe::default();
        let made = Loop { collects: true, ..Loop::default() };
        let agent = agents(&failing(made, &probe))[stored].clone();
        let out = ended(agent.run(items(["a", "bad", "b"]), ()).await.unwrap());
        assert_eq!(out.state.out, ["a", "Error bad is wrong", "b", "After"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_route_follows_a_failed_step() {
    for stored in [0, 1] {
        let probe = Probe::default();
        let made = Loop { mends: true, ..Loop::default() };
        let agent = agents(&failing(made, &probe))[stored].clone();
        let out = ended(agent.run(items(["a", "bad"]), ()).await.unwrap());
        assert_eq!(out.state.out, ["Mend 1 of 2 items failed; item 1: bad is wrong"]);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_timeouts_are_those_of_each_item() {
    for stored in [0, 1] {
        let probe = Probe::default();
        let seen = probe.clone();
        let made = Loop {
            retry: Some(2),
            timeout: Some(Duration::from_millis(50)),
            collects: true,
            concurrency: Some(1),
            ..Loop::default()
        };
        let harness = made.build(move |item, cx| {
            let probe = seen.clone();
            async move {
                probe.hit(format!("{item}{}", cx.attempt()));
                let hits = probe.clone();
                let key = item.clone();
                cx.once("k", async move || Ok(hits.hit(format!("once {key}")))).await?;
                match (&*item, cx.attempt()) {
                    ("slow", _) => std::future::pending().await,
                    ("second", 1) | ("never", _) => Err(StepError::retryable("not yet")),
                    _ => Ok(item),
                }
            }
        });
        let agent = agents(&harness)[stored].clone();
        let input = items(["second", "never", "slow", "fine"]);
        let out = ended(agent.run(input, ()).await.unwrap()).state.out;
        assert_eq!(out[0], "second");
        assert_eq!(out[1], "Error not yet");
        assert!(out[2].starts_with("Timeout"), "{out:?}");
        assert_eq!(out[3], "fine");
        for (hit, times) in
            [("never3", 1), ("never4", 0), ("slow3", 1), ("second2", 1), ("second3", 0)]
        {
            assert_eq!(probe.count(hit), times, "{hit}");
        }
        for item in ["second", "never", "slow", "fine"] {
            assert_eq!(probe.count(&format!("once {item}")), 1);
        }
        // An item that waits for its next try holds no slot.
        let at = |hit: &str| probe.hits().iter().position(|it| it == hit).unwrap();
        assert!(at("never1") < at("second2"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_tries_the_failed_items_again_and_only_those() {
    for stored in [0, 1] {
        let (probe, well) = (Probe::default(), Arc::new(AtomicBool::new(false)));
        let (seen, healed) = (probe.clone(), Arc::clone(&well));
        let harness = Loop::default().build(move |item, cx| {
            let (probe, healed) = (seen.clone(), Arc::clone(&healed));
            async move {
                let (hits, name) = (probe.clone(), item.clone());
                cx.once("k", async move || Ok(hits.hit(format!("once {name}")))).await?;
                let said = match &*item {
                    "asks" => ask(item.clone(), &cx).await?,
                    _ => item.clone(),
                };
                probe.hit(item.clone());
                match item != "a" && !healed.load(Ordering::SeqCst) {
                    true => Err(StepError::fatal("broken")),
                    false => Ok(format!("{said} {}", cx.attempt())),
                }
            }
        });
        let agent = agents(&harness)[stored].clone();
        let asked = agent.run(items(["a", "asks", "b"]), ()).session("s").await.unwrap();
        let asked = waiting(asked);
        let out = agent.resume(&asked, answers(&asked.questions), ()).await.unwrap();
        let out = failed(out);
        assert!(out.failure.message.contains("2 of 3 items failed; item 1"), "{}", out.failure);
        well.store(true, Ordering::SeqCst);
        let out = ended(agent.resume(&out, Answers::none(), ()).await.unwrap());
        // The answer and the effects of the failed items are kept.
        assert_eq!(out.state.out, ["a 1", "said asks 3", "b 2", "After"]);
        assert_eq!((probe.count("a"), probe.count("b"), probe.count("asks")), (1, 2, 2));
        for item in ["a", "asks", "b"] {
            assert_eq!(probe.count(&format!("once {item}")), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn panics_are_contained() {
    for stored in [0, 1] {
        let made = Loop { collects: true, ..Loop::default() };
        let harness = made.build(|item, _| async move {
            assert!(item != "bad", "oh no");
            Ok(item)
        });
        let agent = agents(&harness)[stored].clone();
        let out = ended(agent.run(items(["bad", "a"]), ()).await.unwrap()).state.out;
        assert!(out[0].starts_with("Panic") && out[0].contains("oh no"), "{out:?}");
        assert_eq!(out[1], "a");

        let plan = |_: &Work| -> Result<Vec<String>, StepError> { panic!("no plan") };
        let harness = Loop::default().plan(plan, |item, _| async move { Ok(item) });
        let agent = agents(&harness)[stored].clone();
        let out = failed(agent.run(items(["a"]), ()).await.unwrap());
        assert_eq!(out.failure.kind, FailureKind::Panic);
        assert!(out.failure.message.contains("no plan"));

        #[derive(StepId, Clone, Debug, PartialEq, Eq)]
        enum One {
            Each,
        }
        let harness = Harness::<(), Work>::builder("fold")
            .start(One::Each)
            .steps(|define, step| match step {
                One::Each => define
                    .each(|work: View<Work>, _| async move { Ok(work.items.clone()) })
                    .run(|item: String, _, _| async move { Ok(item) })
                    .fold(|_, _| panic!("no fold"))
                    .end(),
            })
            .build()
            .unwrap();
        let agent = agents(&harness)[stored].clone();
        let out = failed(agent.run(items(["a"]), ()).await.unwrap());
        assert_eq!(out.failure.kind, FailureKind::Panic);
        assert!(out.failure.message.contains("no fold"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_json_cannot_hold_fails_typed() {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum One {
        Each,
    }
    /// So many lists in each other.
    fn deep(levels: usize) -> serde_json::Value {
        (0..levels).fold(serde_json::Value::Null, |inner, _| vec![inner].into())
    }
    let harness = |planned: f64, result: f64, levels: usize| {
        Harness::<(), Work>::builder("nan")
            .start(One::Each)
            .steps(move |define, step| match step {
                One::Each => define
                    .each(move |_, _| async move { Ok(vec![1.0, planned]) })
                    .run(move |_: f64, _, _| async move { Ok((result, deep(levels))) })
                    .fold(|_, all| Ok(Work::update().out([all.len().to_string()])))
                    .end(),
            })
            .build()
            .unwrap()
    };
    for (planned, result, levels) in [(f64::NAN, 1.0, 1), (1.0, f64::NAN, 1), (1.0, 1.0, 500)] {
        for agent in agents(&harness(planned, result, levels)) {
            let out = failed(agent.run(items([]), ()).session("s").await.unwrap());
            assert_eq!(out.failure.kind, FailureKind::Encode, "{}", out.failure);
            assert!(out.failure.message.contains("item"), "{}", out.failure);
        }
    }
}

/// In the last steps nothing may ask: neither the plan nor an item.
#[tokio::test(start_paused = true)]
async fn items_of_the_last_steps_may_not_ask() {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Two {
        Work,
        Clean,
    }
    let probe = Probe::default();
    let seen = probe.clone();
    let harness = Harness::<(), Work>::builder("finally")
        .start(Two::Work)
        .finally(Two::Clean)
        .steps(move |define, step| match step {
            Two::Work => define.run(|_, _| async move { Ok(Work::update()) }).end(),
            Two::Clean => {
                let probe = seen.clone();
                define
                    .each(|work: View<Work>, _| async move { Ok(work.items.clone()) })
                    .run(move |item: String, _, cx| {
                        let probe = probe.clone();
                        async move {
                            probe.hit(item.clone());
                            match &*item {
                                "asks" => ask(item, &cx).await,
                                _ => Ok(item),
                            }
                        }
                    })
                    .fold(|_, out| Ok(Work::update().out(out)))
                    .end()
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    for agent in [harness.agent("a", ()), harness.agent("a", ()).store(store.clone())] {
        let out = ended(agent.run(items(["asks", "b"]), ()).session("s").await.unwrap());
        assert_eq!(out.finally_failure.unwrap().kind, FailureKind::AskInFinally);
        let out = ended(agent.run(items(["b"]), ()).session("t").await.unwrap());
        assert_eq!((out.state.out, out.finally_failure), (vec!["b".to_owned()], None));
    }
    assert_eq!((questions(&store, "s").await, count(&store, "s", "ask").await), (0, 0));
    assert_eq!(probe.count("b"), 4);
}
