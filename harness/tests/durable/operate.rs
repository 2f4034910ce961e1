//! What operators do with stored sessions: check them before a deploy, correct them, prune them.

use std::time::Duration;

use harness::compat::{Compatibility, Fit};
use harness::inspect::{Filter, Phase, PrunePolicy};
use harness::prelude::*;
use harness::session::Change;
use harness::state::{Op, Ops};
use harness::store::{InboxSeq, MemoryStore, SessionStore as _};
use harness::{Seq, SessionId, Sessions};
use serde_json::json;

use crate::rig::{Act, On, Rig};
use crate::sessions::{Doc, agent, harness, run};

/// The same steps with another type of a field.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Changed {
    #[state(reduce = append)]
    lines: Vec<String>,
    pad: u32,
    sent: Option<bool>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Renamed {
    Write,
    Confirm,
}

/// A loop without the gate of the stored sessions.
fn changed(store: &MemoryStore) -> Agent<(), Changed> {
    let harness = Harness::<(), Changed>::builder("doc")
        .start(Renamed::Write)
        .steps(|define, step| match step {
            Renamed::Write => {
                define.run(|_, _| async move { Ok(Changed::update()) }).then(Renamed::Confirm)
            }
            Renamed::Confirm => define.run(|_, _| async move { Ok(Changed::update()) }).end(),
        })
        .build()
        .unwrap();
    harness.agent("a", ()).store(store.clone())
}

/// A loop with one more step, which a session can be resumed with.
fn extended(store: &MemoryStore) -> Agent<(), Doc> {
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Renamed::Write)
        .steps(|define, step| match step {
            Renamed::Write => {
                define.run(|_, _| async move { Ok(Doc::update()) }).then(Renamed::Confirm)
            }
            Renamed::Confirm => define.run(|_, _| async move { Ok(Doc::update()) }).end(),
        })
        .build()
        .unwrap();
    harness.agent("a", ()).store(store.clone())
}

#[tokio::test]
async fn a_check_finds_what_a_resume_would_and_writes_nothing() {
    let store = MemoryStore::new();
    let (now, sessions) = (agent("a", &store), Sessions::new(store.clone()));
    for (session, first) in [("asks", "ask"), ("asks too", "ask"), ("fails", "fail")] {
        run(&now, session, first).await;
    }
    run(&agent("other", &store), "of another", "ask").await;
    let heads = async || {
        let rows = sessions.all(&Filter::sessions()).await.unwrap().into_iter();
        rows.map(|row| (row.session, row.head)).collect::<Vec<_>>()
    };
    let before = heads().await;
    assert!(matches!(now.check("asks").await.unwrap(), Fit::Same));
    let all = now.check_all().await.unwrap();
    assert_eq!((all.same, all.adopts, all.incompatible, all.unreadable), (3, 0, 0, 0), "{all}");

    // `Ask` is gone, and `fails` rests at `Write`.
    let next = extended(&store);
    let Fit::Incompatible(why) = next.check("asks").await.unwrap() else { panic!("it fits") };
    assert!(why.to_string().contains("`Ask`"), "{why}");
    assert!(matches!(next.check("fails").await.unwrap(), Fit::Adopts));
    let all = next.check_all().await.unwrap();
    assert_eq!((all.same, all.adopts, all.incompatible), (0, 1, 2), "{all}");
    assert!(!all.is_resumable());
    let [(difference, affected)] = &all.differences.iter().collect::<Vec<_>>()[..] else {
        panic!("{all}")
    };
    assert!(difference.contains("`Ask`"), "{difference}");
    assert_eq!((affected.sessions, affected.example.as_str()), (2, "asks"));
    assert!(all.to_string().contains("\n2 (as `asks`): "), "{all}");

    // The field changes for all of them, too; each difference is counted by itself.
    let all = changed(&store).check_all().await.unwrap();
    assert_eq!((all.incompatible, all.differences.len()), (3, 2), "{all}");
    let strict = extended(&store).compatibility(Compatibility::Strict);
    assert!(!strict.check("fails").await.unwrap().is_resumable());

    assert_eq!(heads().await, before);
    assert!(now.check("of another").await.unwrap_err().is_wrong_agent());
    assert!(now.check("none").await.unwrap_err().is_not_found());
    assert!(harness().agent("a", ()).check("asks").await.unwrap_err().is_no_store());
}

fn ops(make: impl FnOnce(&mut Ops)) -> Vec<Op> {
    let mut ops = Ops::on();
    make(&mut ops);
    ops.finish().unwrap()
}

#[tokio::test]
async fn an_edit_is_recorded_and_the_session_continues_with_it() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store.clone()));
    let Outcome::Interrupted(waiting) = run(&agent, "s", "ask").await else { panic!("it asks") };
    let before = sessions.status("s").await.unwrap();
    let update = Doc::update().lines(["corrected".into()]).pad("p");
    let seq = agent.edit("s", update, "sam", "a slip").await.unwrap();
    assert_eq!(seq, before.head.next());
    let set = ops(|ops| ops.field("pad").set(&"q"));
    let second = agent.edit_json("s", set, "eve", "another").await.unwrap();

    let after = sessions.status("s").await.unwrap();
    assert_eq!((after.phase, &after.questions), (before.phase, &before.questions));
    assert_eq!((after.position, after.holder, after.head), (before.position, None, second));
    let page = sessions.history("s", seq, 9).await.unwrap();
    let Change::Edited(edited) = &page.entries[0].1.change else { panic!("{page:?}") };
    assert_eq!((&*edited.by, &*edited.why, edited.ops.len()), ("sam", "a slip", 2));
    assert_eq!(page.entries[0].1.change.name(), "edit");

    // The past is as it was.
    let state = async |at| agent.state_at("s", at).await.unwrap();
    assert_eq!(state(before.head).await.lines, ["ask", "written"]);
    assert_eq!(state(seq).await.lines, ["ask", "written", "corrected"]);
    assert_eq!((&*state(seq).await.pad, &*state(second).await.pad), ("p", "q"));
    let moments = agent.history("s", seq, 9).await.unwrap().moments;
    assert_eq!(moments.iter().map(|moment| moment.seq).collect::<Vec<_>>(), [seq, second]);
    agent.fork("s", seq, "fork").await.unwrap();
    assert_eq!(sessions.state("fork").await.unwrap()["pad"], "p");

    let answer = Answers::json(waiting.questions[0].id.clone(), json!(true));
    let ended = agent.resume("s", answer, ()).await.unwrap().ended().unwrap();
    let head = sessions.status("s").await.unwrap().head;
    assert_eq!(state(head).await, ended.state, "live equals replayed");
    assert_eq!((&*ended.state.pad, ended.state.sent), ("q", Some(true)));
    assert_eq!(ended.state.lines, ["ask", "written", "corrected"]);
}

/// A snapshot after an edit says what the edit led to.
#[tokio::test]
async fn a_log_with_an_edit_gets_snapshots() {
    let store = MemoryStore::new();
    let agent = agent("a", &store);
    run(&agent, "s", "x").await;
    agent.edit("s", Doc::update().pad("edited"), "sam", "").await.unwrap();
    let delete = ops(|ops| ops.field("lines").set(&["long"]));
    agent.edit_json("s", delete, "sam", "again from the start").await.unwrap();
    let ended = run(&agent, "s", "x").await.ended().unwrap();
    assert!(ended.state.lines.len() >= 40);
    let sessions = Sessions::new(store);
    let entries = sessions.history("s", Seq(0), 500).await.unwrap().entries;
    let snapshot = entries.iter().any(|(_, entry)| entry.change.name() == "snapshot");
    assert!(snapshot, "a snapshot compares the log with the live state");
    assert_eq!(sessions.state("s").await.unwrap()["lines"], json!(ended.state.lines));
}

#[tokio::test]
async fn edits_are_refused_where_they_do_not_fit() {
    let store = MemoryStore::new();
    let now = agent("a", &store);
    run(&now, "s", "ask").await;
    let sessions = Sessions::new(store.clone());
    let head = sessions.status("s").await.unwrap().head;
    let set =
        |field: &'static str, value: serde_json::Value| ops(|ops| ops.field(field).set(&value));
    for (what, bad) in [
        ("a field that is not there", set("title", json!("t"))),
        ("another type", set("pad", json!(7))),
        ("what decodes and is not what is encoded", set("lines", json!(null))),
        ("no list", ops(|ops| ops.field("pad").push(&"x"))),
    ] {
        let error = now.edit_json("s", bad, "sam", "why").await.unwrap_err();
        assert!(error.is_bad_edit(), "{what}: {error}");
    }
    let other = agent("other", &store).edit("s", Doc::update(), "sam", "").await.unwrap_err();
    assert!(other.is_wrong_agent(), "{other}");
    let other = changed(&store).edit("s", Changed::update(), "sam", "").await.unwrap_err();
    assert!(other.incompatible().is_some(), "{other}");
    assert!(now.edit("none", Doc::update(), "sam", "").await.unwrap_err().is_not_found());

    let id = SessionId::new("s").unwrap();
    let held = store.claim(&id, Duration::from_secs(60)).await.unwrap();
    assert!(now.edit("s", Doc::update(), "sam", "").await.unwrap_err().is_busy());
    store.release(&held.lease, InboxSeq(0)).await.unwrap();
    assert_eq!(sessions.status("s").await.unwrap().head, head, "nothing was written");
}

/// Runs until the store hangs in the middle; the lease is released, as it would expire.
async fn crash<T>(rig: &Rig, work: impl IntoFuture<Output = T>) -> Option<T> {
    let work = work.into_future();
    let done = tokio::select! {
        done = work => return Some(done),
        () = rig.reached() => None,
    };
    let lease = rig.lease().unwrap();
    let _ = rig.memory.release(&lease, InboxSeq(0)).await;
    done
}

#[tokio::test]
async fn an_edit_that_is_killed_is_there_whole_or_not_at_all() {
    for act in [Act::HangBefore, Act::HangAfter, Act::LoseAnswer, Act::Fail] {
        let memory = MemoryStore::new();
        run(&agent("a", &memory), "s", "ask").await;
        let sessions = Sessions::new(memory.clone());
        let head = sessions.status("s").await.unwrap().head;
        let rig = Rig::nth(&memory, On::Append, 1, act.clone());
        let agent_there = harness().agent("a", ()).store(rig.clone());
        let update = || Doc::update().pad("edited");
        let done = crash(&rig, Box::pin(agent_there.edit("s", update(), "sam", "why"))).await;
        let there = sessions.status("s").await.unwrap().head != head;
        match act {
            Act::HangBefore => assert!(done.is_none() && !there),
            Act::HangAfter => assert!(done.is_none() && there),
            // The same bytes are sent again.
            _ => assert_eq!(done.unwrap().unwrap(), head.next()),
        }
        let again = agent("a", &memory);
        if !there {
            again.edit("s", update(), "sam", "why").await.unwrap();
        }
        let entries = sessions.history("s", Seq(0), 99).await.unwrap().entries;
        let edits = entries.iter().filter(|(_, entry)| entry.change.name() == "edit").count();
        assert_eq!(edits, 1);
        let question = sessions.status("s").await.unwrap().questions.remove(0);
        let answer = Answers::json(question.id, json!(false));
        let ended = again.resume("s", answer, ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.pad, "edited");
    }
}

#[tokio::test]
async fn a_session_whose_run_has_crashed_is_neither_edited_nor_pruned() {
    let memory = MemoryStore::new();
    let rig = Rig::nth(&memory, On::Append, 6, Act::HangAfter);
    let agent_there = harness().agent("a", ()).store(rig.clone());
    let first = Doc::update().lines(["long".into()]);
    assert!(crash(&rig, agent_there.run(first, ()).session("s")).await.is_none());
    let (agent, sessions) = (agent("a", &memory), Sessions::new(memory));
    let head = sessions.status("s").await.unwrap().head;
    let error = agent.edit("s", Doc::update(), "sam", "").await.unwrap_err();
    assert!(error.is_not_at_rest(), "{error}");
    let report = sessions.prune_all(&PrunePolicy::new(Filter::sessions())).await.unwrap();
    assert_eq!((report.pruned, report.busy.len()), (0, 1), "{report:?}");
    assert_eq!(sessions.status("s").await.unwrap().head, head);
    assert!(agent.resume("s", Answers::none(), ()).await.unwrap().ended().is_ok());
}

#[tokio::test]
async fn logs_are_pruned_by_a_policy_and_sessions_at_work_are_skipped() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store.clone()));
    for n in 0..300 {
        run(&agent, &format!("short {n:03}"), "x").await;
    }
    for session in ["long 1", "long 2", "long 3"] {
        run(&agent, session, "long").await;
    }
    run(&crate::sessions::agent("other", &store), "long of another", "long").await;
    let of_agent = || Filter::sessions().agent(agent.id().clone());
    let first = async |session: &str| sessions.status(session).await.unwrap().first;

    let none =
        sessions.prune_all(&PrunePolicy::new(of_agent().phase(Phase::Failed))).await.unwrap();
    assert_eq!((none.pruned, none.unchanged), (0, 0), "{none:?}");
    let idle = PrunePolicy::new(of_agent()).idle_for(Duration::from_secs(3600));
    let none = sessions.prune_all(&idle).await.unwrap();
    assert_eq!((none.pruned, none.unchanged), (0, 303), "{none:?}");
    let kept = PrunePolicy::new(of_agent()).keep_entries(u64::MAX);
    assert_eq!(sessions.prune_all(&kept).await.unwrap().pruned, 0);

    let held = SessionId::new("long 2").unwrap();
    let lease = store.claim(&held, Duration::from_secs(60)).await.unwrap().lease;
    let policy = PrunePolicy::new(of_agent().phase(Phase::Ended));
    let report = sessions.prune_all(&policy).await.unwrap();
    assert_eq!((report.pruned, report.unchanged), (2, 300), "{report:?}");
    assert_eq!(report.busy, std::slice::from_ref(&held));
    let begins = first("long 1").await;
    assert!(begins > Seq(1) && report.entries == 2 * (begins.0 - 1), "{report:?}");
    assert_eq!(first("long 2").await, Seq(1));
    assert_eq!(first("long of another").await, Seq(1));
    store.release(&lease, InboxSeq(0)).await.unwrap();

    let report = sessions.prune_all(&policy).await.unwrap();
    assert_eq!((report.pruned, report.unchanged, report.busy.len()), (1, 302, 0), "{report:?}");
    let error = agent.state_at("long 2", Seq(2)).await.unwrap_err();
    assert!(error.is_pruned(), "{error}");
    for session in ["long 1", "long 2"] {
        let again = run(&agent, session, "x").await.ended().unwrap();
        assert_eq!(again.state.lines.first().map(String::as_str), Some("long"));
    }
}
