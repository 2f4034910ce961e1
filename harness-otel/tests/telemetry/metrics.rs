//! Metrics of runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use harness::llm::scripted::{fail, say};
use harness::llm::{LlmError, LlmErrorKind, Scripted, ToolSet, Usage};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing::{Call, Faulty};
use harness::worker::Worker;
use tokio::sync::Semaphore;
use tokio::time::advance;

use crate::rig::{Doc, Sending, Traced, asking, line, only};

#[tokio::test]
async fn metrics_follow_the_events_of_runs() {
    let traced = Traced::new();
    let model = Scripted::new([
        say("one").usage(Usage::tokens(3, 4)),
        fail(LlmError::new(LlmErrorKind::Overloaded)),
        say("two").usage(Usage::tokens(5, 6)),
    ]);
    let agent = only("bot", move |_, cx: Cx<()>| {
        let model = model.clone();
        async move {
            let talk = Transcript::from_iter([user("a secret")]);
            cx.llm(&model).complete(&talk, &ToolSet::default()).await?;
            if cx.attempt() == 1 {
                cx.llm(&model).complete(&talk, &ToolSet::default()).await?;
            }
            line("done")
        }
    });
    let agent = agent.observe(traced.telemetry.metrics());
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    let mut points = traced.points();
    points.remove("harness.commit.size");
    insta::assert_snapshot!(format!("{points:#?}"));
}

/// Only entries of commits count, and these once.
#[tokio::test]
async fn the_size_of_each_commit_is_recorded() {
    let traced = Traced::new();
    let agent = asking().store(MemoryStore::new()).observe(traced.telemetry.metrics());
    let asked = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = asked else { panic!("{asked:?}") };
    let answers = Answers::json(waiting.questions[0].id.clone(), true.into());
    agent.resume("s", answers, ()).await.unwrap().ended().unwrap();
    let points = traced.points();
    assert_eq!(points["harness.commit.size"], ["agent.name=bot: 1 times"]);
    let expected =
        ["agent.name=bot interrupt.state=asked: 1", "agent.name=bot interrupt.state=resolved: 1"];
    assert_eq!(points["harness.interrupts"], expected);
}

#[tokio::test]
async fn an_attribute_has_a_bounded_number_of_values() {
    let traced = Traced::new();
    let metrics = traced.telemetry.metrics();
    for n in 0..250 {
        let agent = only(&format!("agent-{n}"), |_, _| async move { line("done") });
        agent.observe(metrics.clone()).run(Doc::update(), ()).await.unwrap().ended().unwrap();
    }
    let points = traced.points();
    let agents = &points["harness.commits"];
    assert_eq!(agents.len(), 201, "{agents:?}");
    assert!(agents.contains(&"agent.name=_other: 50".to_owned()), "{agents:?}");
}

/// The points once a metric has some: events reach an observer in a thread of its own.
async fn points_with(traced: &Traced, metric: &str) -> BTreeMap<String, Vec<String>> {
    for _ in 0..10_000 {
        let points = traced.points();
        if points.contains_key(metric) {
            return points;
        }
        tokio::task::yield_now().await;
    }
    panic!("`{metric}` has no points");
}

/// An input that was sent 90 seconds before there was a worker.
#[tokio::test(start_paused = true)]
async fn a_worker_is_busy_while_it_runs_a_session_and_what_waited_for_it_has_an_age() {
    let traced = Traced::new();
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let agent = {
        let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
        only("bot", move |_, _| {
            let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
            async move {
                begun.add_permits(1);
                go.acquire().await?.forget();
                line("done")
            }
        })
    };
    let agent = agent.store(MemoryStore::new()).observe(traced.telemetry.metrics());
    let queued = agent.enqueue("s", Doc::update()).input_id("first").await.unwrap();
    advance(Duration::from_secs(90)).await;
    let worker = Worker::new().serve(&agent, async |_| Ok(())).start().unwrap();
    begun.acquire().await.unwrap().forget();
    let points = points_with(&traced, "harness.workers.busy").await;
    assert_eq!(points["harness.workers.busy"], ["agent.name=bot: 1"]);
    go.add_permits(1);
    queued.outcome().await.unwrap().ended().unwrap();
    worker.drain().await;
    // It begins at once, and without a worker.
    go.add_permits(1);
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    let points = traced.points();
    assert_eq!(points["harness.workers.busy"], ["agent.name=bot: 0"]);
    assert_eq!(points["harness.runs.active"], ["agent.name=bot: 0"]);
    assert_eq!(points["harness.queue.age"], ["agent.name=bot run.cause=start: 1 times, 90 s"]);
}

/// Answered and expired questions, and timers, wait for the run that resumes.
#[tokio::test(start_paused = true)]
async fn what_is_due_has_an_age() {
    let traced = Traced::new();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let agent = only("bot", move |doc: View<Doc>, cx: Cx<()>| async move {
        let to = doc.lines.concat();
        match &*to {
            "sleep" => cx.sleep("nap", minutes(10)).await?,
            "expire" => {
                let asked = cx.ask("send", Sending { to }).expires(minutes(10)).await;
                assert!(asked.is_err_and(|error| error.is_expired()));
            }
            _ => drop(cx.ask("send", Sending { to }).await?),
        }
        line("done")
    });
    let store = MemoryStore::new();
    let agent = agent.store(store.clone()).observe(traced.telemetry.metrics());
    let mut questions = Vec::new();
    for session in ["sleep", "expire", "answer"] {
        let input = Doc::update().lines([session.to_owned()]);
        match agent.run(input, ()).session(session).await.unwrap() {
            Outcome::Interrupted(waiting) => questions.push(waiting.questions[0].id.clone()),
            other => assert!(other.ended().is_err(), "{session}"),
        }
    }
    advance(minutes(9)).await;
    let answers = Answers::json(questions[1].clone(), true.into());
    harness::Sessions::new(store).answer_json("answer", answers).await.unwrap();
    advance(minutes(3)).await;
    for session in ["sleep", "expire", "answer"] {
        agent.resume(session, Answers::none(), ()).await.unwrap().ended().unwrap();
    }
    let points = traced.points();
    let expected = [
        "agent.name=bot run.cause=answer: 2 times, 300 s",
        "agent.name=bot run.cause=timer: 1 times, 120 s",
    ];
    assert_eq!(points["harness.queue.age"], expected);
    let expected = [
        "agent.name=bot interrupt.state=asked: 2",
        "agent.name=bot interrupt.state=expired: 1",
        "agent.name=bot interrupt.state=resolved: 1",
    ];
    assert_eq!(points["harness.interrupts"], expected);
    assert!(!points.contains_key("harness.workers.busy"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_its_lease_counts_as_a_loss() {
    let traced = Traced::new();
    let store = Faulty::new(MemoryStore::new());
    store.faults().before(Call::Renew, |_| true);
    let agent = only("bot", |_, cx: Cx<()>| async move {
        cx.cancelled().await;
        line("too late")
    });
    let agent = agent.store(store).lease(Duration::from_secs(1));
    let agent = agent.observe(traced.telemetry.metrics());
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let points = traced.points();
    assert_eq!(points["harness.lease.losses"], ["agent.name=bot: 1"]);
    let ended = ["agent.name=bot error.type=lease_lost run.end=failed: 1 times"];
    assert_eq!(points["gen_ai.invoke_agent.duration"], ended);
}

/// Otherwise it would be at work indefinitely.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_is_not_at_work() {
    for stored in [false, true] {
        let traced = Traced::new();
        let agent = only("bot", |_, _| async move { std::future::pending().await });
        let agent = agent.observe(traced.telemetry.metrics());
        let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
        let request = agent.run(Doc::update(), ()).session("s").into_future();
        tokio::time::timeout(Duration::from_secs(3), request).await.unwrap_err();
        let points = points_with(&traced, "gen_ai.invoke_agent.duration").await;
        let dropped = ["agent.name=bot run.end=dropped: 1 times"];
        assert_eq!(points["gen_ai.invoke_agent.duration"], dropped);
        assert_eq!(points["harness.runs.active"], ["agent.name=bot: 0"]);
    }
}
