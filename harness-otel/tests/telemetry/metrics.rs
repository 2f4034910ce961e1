//! Metrics of runs.

use harness::llm::scripted::{fail, say};
use harness::llm::{LlmError, LlmErrorKind, Scripted, ToolSet, Usage};
use harness::prelude::*;
use harness::store::MemoryStore;

use crate::rig::{Doc, Traced, asking, line, only};

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
