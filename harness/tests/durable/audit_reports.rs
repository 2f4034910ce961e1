//! What is reported about sessions: no damage where there is none, and no answers.

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Seq, Sessions};
use serde_json::json;

use super::audit::{Doc, agent, asks};
use super::rig::{Rig, count};

#[tokio::test]
async fn entries_kept_without_their_beginning_are_reported_as_pruned() {
    let memory = MemoryStore::new();
    let (agent, sessions) = (agent(&Rig::new(memory.clone())), Sessions::new(memory.clone()));
    agent.run(Doc::update().how("fill"), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!(count(&memory, "s", "snapshot").await, 1);
    let kinds = super::rig::kinds(&memory, "s").await;
    let snapshot = 1 + kinds.iter().position(|kind| kind == "snapshot").unwrap() as u64;
    assert_eq!(sessions.prune("s", Seq(4)).await.unwrap(), Seq(4));
    for err in [
        agent.state_at("s", Seq(5)).await.unwrap_err(),
        agent.history("s", Seq(4), 9).await.unwrap_err(),
        agent.fork("s", Seq(5), "t").await.unwrap_err(),
    ] {
        assert!(err.is_pruned() && err.pruned() == Some(Seq(snapshot)), "{err}");
    }
    agent.history("s", Seq(snapshot), 9).await.unwrap();
    assert_eq!(sessions.history("s", Seq(4), 1).await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn no_error_contains_an_answer() {
    let memory = MemoryStore::new();
    let agent = agent(&Rig::new(memory.clone()));
    let ids = asks(&agent).await;
    let answer = |text: &str| Answers::json(ids[0].clone(), json!(text));
    agent.resume("s", answer("canary"), ()).await.unwrap();
    let run = agent.resume("s", answer("other"), ()).await.unwrap_err();
    let sessions = Sessions::new(memory).answer_json("s", answer("other")).await.unwrap_err();
    assert!(
        run.answer_error().is_some_and(|it| it.is_conflict())
            && run.answer_error().and_then(|it| it.recorded_answer()) == Some(&json!("canary"))
    );
    for said in [format!("{run:?} {run}"), format!("{sessions:?} {sessions}")] {
        assert!(!said.contains("canary") && said.contains("already has another answer"), "{said}");
    }
}
