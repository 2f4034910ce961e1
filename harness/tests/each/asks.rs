//! Items that ask.

use std::time::Duration;

use harness::store::MemoryStore;
use harness::{OnBusy, Sessions};

use super::bench::*;
use super::rig::{count, folded, questions};

/// Items that begin with `q` ask; each has one effect.
fn asking_loop(probe: &Probe, concurrency: usize) -> Harness<(), Work> {
    let probe = probe.clone();
    Loop { concurrency: Some(concurrency), ..Loop::default() }.build(move |item, cx| {
        let probe = probe.clone();
        async move {
            probe.hit(item.clone());
            let (hits, name) = (probe.clone(), item.clone());
            cx.once("k", async move || Ok(hits.hit(format!("once {name}")))).await?;
            match item.starts_with('q') {
                true => ask(item, &cx).await,
                false => Ok(item),
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn all_questions_wait_together_and_partial_answers_enter_their_items_only() {
    for stored in [false, true] {
        let probe = Probe::default();
        let store = MemoryStore::new();
        let agent = asking_loop(&probe, 2).agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let input = items(["q0", "b", "q2", "q3"]);
        let first = waiting(agent.run(input, ()).session("s").await.unwrap());
        assert_eq!(asking(&first.questions), [0, 2, 3]);
        assert_eq!(first.state.out, [""; 0]);
        let some = answers(&first.questions[1..2]);
        let second = waiting(agent.resume(&first, some, ()).await.unwrap());
        assert_eq!(asking(&second.questions), [0, 3]);
        let ids = |of: &[Interrupt]| of.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&second.questions)[1], ids(&first.questions)[2], "ids stay");
        assert_eq!(probe.count("q2"), 2);
        let out = agent.resume(&second, answers(&second.questions), ()).await.unwrap();
        assert_eq!(ended(out).state.out, ["said q0", "b", "said q2", "said q3", "After"]);
        for (item, times) in [("q0", 2), ("b", 1), ("q2", 2), ("q3", 2)] {
            assert_eq!(probe.count(item), times, "{item}");
            assert_eq!(probe.count(&format!("once {item}")), 1);
        }
        if stored {
            assert_eq!(questions(&store, "s").await, 0);
            assert_eq!(count(&store, "s", "item").await, 4);
        }
    }
}

/// The item that works at it makes an effect after the answer was sent, so its append says that the
/// inbox has a message.
#[tokio::test(start_paused = true)]
async fn an_answer_enters_its_item_while_others_are_at_work() {
    let (probe, store) = (Probe::default(), MemoryStore::new());
    let seen = probe.clone();
    let harness = Loop { concurrency: Some(1), ..Loop::default() }.build(move |item, cx| {
        let probe = seen.clone();
        async move {
            if item == "asks" {
                let said = ask(item, &cx).await?;
                probe.hit("answered");
                return Ok(said);
            }
            probe.open("working");
            probe.pass("sent").await;
            cx.once("tick", async || Ok(())).await?;
            Ok(item)
        }
    });
    let agent = harness.agent("a", ()).store(store.clone());
    let run = agent.run(items(["asks", "works", "more"]), ()).session("s").start();
    probe.pass("working").await;
    let sessions = Sessions::new(store.clone());
    let status = sessions.status("s").await.unwrap();
    assert_eq!(asking(&status.questions), [0], "visible while others are at work");
    sessions.answer_json("s", answers(&status.questions)).await.unwrap();
    probe.open("sent");
    probe.pass("working").await;
    probe.open("sent");
    let out = ended(run.await.unwrap());
    assert_eq!(out.state.out, ["said asks", "works", "more", "After"]);
    assert_eq!(count(&store, "s", "settle").await, 1, "the run did not settle in between");
    // No run but the first.
    assert_eq!(count(&store, "s", "run").await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_wait_for_an_item_that_ends() {
    let (probe, store) = (Probe::default(), MemoryStore::new());
    let seen = probe.clone();
    let harness = Loop::default().build(move |item, cx| {
        let probe = seen.clone();
        async move {
            if item == "asks" {
                let said = ask(item, &cx).await?;
                probe.open("answered");
                return Ok(said);
            }
            probe.open("working");
            probe.pass("sent").await;
            cx.once("tick", async || Ok(())).await?;
            // Only the answered item lets this one end.
            probe.pass("answered").await;
            Ok(item)
        }
    });
    let agent = harness.agent("a", ()).store(store.clone());
    let run = agent.run(items(["asks", "works"]), ()).session("s").start();
    probe.pass("working").await;
    let sessions = Sessions::new(store.clone());
    let asked = loop {
        let asked = sessions.status("s").await.unwrap().questions;
        match asked.is_empty() {
            true => tokio::task::yield_now().await,
            false => break asked,
        }
    };
    sessions.answer_json("s", answers(&asked)).await.unwrap();
    probe.open("sent");
    let out = tokio::time::timeout(Duration::from_secs(3600), run).await.expect("it waits");
    assert_eq!(ended(out.unwrap()).state.out, ["said asks", "works", "After"]);
}

#[tokio::test(start_paused = true)]
async fn an_input_that_comes_while_items_are_at_work_is_the_next_turn() {
    let (probe, store) = (Probe::default(), MemoryStore::new());
    let seen = probe.clone();
    let harness = Loop { concurrency: Some(1), ..Loop::default() }.build(move |item, _| {
        let probe = seen.clone();
        async move {
            if item == "works" {
                probe.open("working");
                probe.pass("sent").await;
            }
            Ok(item)
        }
    });
    let agent = harness.agent("a", ()).store(store.clone());
    let run = agent.run(items(["works", "more"]), ()).session("s").start();
    probe.pass("working").await;
    let late = agent.run(items(["late"]), ()).session("s").on_busy(OnBusy::Queue).await;
    assert!(matches!(late.unwrap(), Outcome::Queued(_)));
    probe.open("sent");
    ended(run.await.unwrap());
    let out = folded(&store, "s").await;
    assert_eq!(out["out"], serde_json::json!(["works", "more", "After", "late", "After"]));
}

#[tokio::test(start_paused = true)]
async fn an_expired_question_of_an_item_resolves_as_expired() {
    for stored in [false, true] {
        let harness = Loop::default().build(|item, cx| async move {
            let asked = cx.ask("what", What { item: item.clone() });
            let after = if item == "short" { Duration::ZERO } else { Duration::from_secs(3600) };
            match asked.expires(after).await {
                Err(error) if error.is_expired() => Ok("expired".to_owned()),
                other => Ok(other?),
            }
        });
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
        let first = waiting(agent.run(items(["short", "long"]), ()).session("s").await.unwrap());
        let second = waiting(agent.resume(&first, Answers::none(), ()).await.unwrap());
        assert_eq!(asking(&second.questions), [1]);
        let out = agent.resume(&second, answers(&second.questions), ()).await.unwrap();
        assert_eq!(ended(out).state.out, ["expired", "said long", "After"]);
    }
}

/// Another question under the key of an item takes the place of its first, and of no other item's.
#[tokio::test(start_paused = true)]
async fn an_item_that_asks_again_does_not_touch_the_questions_of_others() {
    for stored in [false, true] {
        let store = MemoryStore::new();
        let harness = Loop::default().build(|item, cx| async move {
            let first = ask(item.clone(), &cx).await?;
            if item == "twice" {
                let more = What { item: "more".to_owned() };
                return Ok(format!("{first}, {}", cx.ask("more", more).await?));
            }
            Ok(first)
        });
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let first = waiting(agent.run(items(["twice", "b"]), ()).session("s").await.unwrap());
        let some = answers(&first.questions[..1]);
        let second = waiting(agent.resume(&first, some, ()).await.unwrap());
        assert_eq!(asking(&second.questions), [1, 0], "in the order of asking");
        let out = agent.resume(&second, answers(&second.questions), ()).await.unwrap();
        assert_eq!(ended(out).state.out, ["said twice, said more", "said b", "After"]);
    }
}
