//! Children whose turn ends elsewhere: their parents are notified, and continue once.

use std::time::Duration;

use harness::Sessions;
use harness::inspect::Filter;
use harness::prelude::*;
use harness::store::{MemoryStore, Message, SessionStore as _};
use harness::worker::Worker;

use super::children::*;
use super::rig::{Act, On, Rig, folded, log, run_or_crash, runtime};

/// A worker that serves both agents, until the parent's session has ended.
async fn work_off(memory: &MemoryStore, parent: &Agent<(), Doc>, child: &Agent<(), Doc>) {
    let worker = Worker::new()
        .serve(parent, |_| async { Ok(()) })
        .serve(child, |_| async { Ok(()) })
        .start()
        .unwrap();
    for _ in 0..3_000 {
        let last = log(memory, "s").await.pop().unwrap_or_default();
        if last["settle"]["end"]["as"] == "ended" {
            worker.drain().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the parent does not end: {:?}", log(memory, "s").await);
}

/// The id of the only open question.
async fn question(memory: &MemoryStore) -> harness::InterruptId {
    let sessions = Sessions::new(memory.clone());
    let inbox = sessions.list_interrupts(&Filter::default(), None, 9).await.unwrap();
    assert_eq!(inbox.rows.len(), 1);
    inbox.rows[0].interrupt.id.clone()
}

#[tokio::test(start_paused = true)]
async fn workers_run_a_child_that_is_answered_and_then_its_parent() {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    let answers = Answers::json(question(&memory).await, true.into());
    let sessions = Sessions::new(memory.clone());
    sessions.answer_json(&rests.children[0].session, answers).await.unwrap();
    work_off(&memory, &parent, &asking().store(memory.clone())).await;
    assert_eq!(spent_in(&memory, "s").await, 16);
    assert_eq!(started(&memory, "s").await.len(), 1);
}

/// A child that is answered by a process that dies as `act` says.
fn answered_by_a_process_that_dies(on: On, n: u64, act: Act) -> bool {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let (id, session) = runtime().block_on(async {
        let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
        (question(&memory).await, rests.children[0].session.clone())
    });
    let rig = Rig::nth(&memory, on, n, act);
    let answers = || Answers::json(id.clone(), true.into());
    let outcome =
        run_or_crash(&rig, |rig| asking().store(rig.clone()).resume(&session, answers(), ()));
    runtime().block_on(async {
        // The answer may have died with the process.
        let _ = Sessions::new(memory.clone()).answer_json(&session, answers()).await;
        work_off(&memory, &parent, &asking().store(memory.clone())).await;
        let what = format!("{on:?} {n}");
        let state = folded(&memory, "s").await;
        assert_eq!(state["lines"], serde_json::json!(["input,signed true", "last"]), "{what}");
        assert_eq!(started(&memory, "s").await.len(), 1, "{what}");
        assert_eq!(super::rig::count(&memory, "s", "child_done").await, 1, "{what}");
        let spent = spent_in(&memory, session.as_str()).await;
        assert_eq!(spent_in(&memory, "s").await, spent + 1, "{what}");
    });
    outcome.is_none()
}

#[test]
fn a_death_between_the_end_of_a_child_and_its_notice_continues_the_parent_once() {
    let mut crashes = 0;
    for on in [On::Append, On::Send] {
        for act in [Act::HangBefore, Act::HangAfter] {
            for n in 1..7 {
                crashes += u32::from(answered_by_a_process_that_dies(on, n, act.clone()));
            }
        }
    }
    assert!(crashes >= 8, "{crashes}");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_rests_is_not_due_once_its_parent_was_notified() {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    let answers = Answers::json(question(&memory).await, true.into());
    let child = asking().store(memory.clone());
    ended(child.resume(&rests.children[0].session, answers, ())).await;
    let due = |agent: &str| {
        let request = harness::store::DueRequest::new([harness::id::AgentId::new(agent)]);
        let memory = memory.clone();
        async move {
            let due = memory.claim_due(&request, Duration::from_millis(1)).await.unwrap();
            let found = due.claimed.len();
            for claimed in due.claimed {
                memory.release(&claimed.lease, harness::store::InboxSeq(0)).await.unwrap();
            }
            found
        }
    };
    assert_eq!((due("child").await, due("p").await), (0, 1));
    ended(parent.resume("s", Answers::none(), ())).await;
    assert_eq!((due("child").await, due("p").await), (0, 0));
}

/// A notice that comes when the parent does not wait for the child any more makes it due once.
#[tokio::test(start_paused = true)]
async fn a_notice_that_comes_late_is_read_and_nothing_is_reported() {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    let child = asking().store(memory.clone());
    let answers = Answers::json(question(&memory).await, true.into());
    ended(child.resume(&rests.children[0].session, answers, ())).await;
    ended(parent.resume("s", Answers::none(), ())).await;
    let worker = Worker::new().serve(&parent, |_| async { Ok(()) }).start().unwrap();
    let id = harness::SessionId::new("s").unwrap();
    for nth in 0..2 {
        let body = r#"{"child":{"session":"gone"}}"#.as_bytes().to_vec();
        let late = Message::new(format!("child/{nth}"), "child", body);
        memory.send(&id, &[late]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(worker.failed(), []);
        let request = harness::store::DueRequest::new([harness::id::AgentId::new("p")]);
        let due = memory.claim_due(&request, Duration::from_millis(1)).await.unwrap();
        assert!(due.claimed.is_empty(), "it is read");
    }
    worker.drain().await;
}
