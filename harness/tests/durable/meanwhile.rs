//! Messages sent to a session while a run holds it: the sender gets a correct reply, and each message
//! is applied.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::inspect::Phase;
use harness::prelude::*;
use harness::store::{DueRequest, MemoryStore, SessionStore as _};
use harness::{Interrupt, OnBusy, SessionId, Sessions};

use super::busy::{Stand, said};
use super::rig::{Act, On, Rig, log};

/// An answer to each question.
fn all_of(questions: &[Interrupt]) -> Answers {
    let answer = |asked: &Interrupt| Answers::json(asked.id.clone(), "x".into());
    questions.iter().fold(Answers::none(), |all, asked| all.and(answer(asked)))
}

/// Pauses the next run before it releases its session.
fn pause_at_release(rig: &Rig) {
    let released = rig.count(On::Release);
    rig.plan(move |on, n| match on == On::Release && n == released + 1 {
        true => Act::Pause,
        false => Act::Pass,
    });
}

/// Two questions are open; one is answered while a run applies the answer to the other.
#[tokio::test(start_paused = true)]
async fn the_holder_applies_answers_sent_meanwhile() {
    // What the holder does when the second answer is sent: its first append, its release, or its
    // claim.
    for (on, nth) in [(On::Append, 3), (On::Release, 2), (On::Claim, 2)] {
        let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
        let agent = stand.agent(&rig);
        let outcome = agent.run(said("hi").how("ask"), ()).session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let ids: Vec<String> = waiting.questions.iter().map(|asked| asked.id.to_string()).collect();
        let (begun, start) = (rig.count(on), 1);
        let nth = if on == On::Append { begun + start } else { nth };
        rig.plan(move |what, n| if what == on && n == nth { Act::Pause } else { Act::Pass });
        let one = agent.resume("s", Answers::json(&*ids[0], "a".into()), ()).start();
        rig.reached().await;
        let two = agent.resume("s", Answers::json(&*ids[1], "b".into()).by("sam"), ());
        if on == On::Claim {
            // No run holds the session yet: this run applies both.
            let ended = two.await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["hi", "worked", "a", "b"]);
            rig.go();
            assert_eq!(one.await.unwrap().ended().unwrap().state.lines.len(), 4);
            continue;
        }
        let err = two.await.unwrap_err();
        assert!(err.is_busy() && err.answers_recorded(), "{on:?}: {err}");
        rig.go();
        let ended = one.await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["hi", "worked", "a", "b"], "{on:?}");
        let resolved = log(&rig.memory, "s").await.into_iter();
        let by: Vec<_> = resolved.filter(|entry| entry["resolve"]["by"] == "sam").collect();
        assert_eq!(by.len(), 1);
    }
}

/// An applied answer is sent again, and another one arrives while that run releases the session: it
/// reads the inbox again. Whichever run is faster, both answers are recorded.
#[tokio::test]
async fn an_answer_that_is_sent_again_is_recorded_whichever_run_resumes() {
    for ended in [false, true] {
        let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
        let agent = stand.agent(&rig);
        let outcome = agent.run(said("hi").how("ask"), ()).session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let first = || Answers::json(waiting.questions[0].id.clone(), "a".into());
        let outcome = agent.resume("s", first(), ()).await.unwrap();
        assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
        rig.plan(
            |on, _| if [On::Release, On::Claim].contains(&on) { Act::Pause } else { Act::Pass },
        );
        let again = agent.resume("s", first(), ()).start();
        // It has the session, and is about to give it back.
        rig.reached().await;
        rig.go();
        rig.reached().await;
        let other = stand.agent(&Rig::new(rig.memory.clone()));
        let second = Answers::json(waiting.questions[1].id.clone(), "b".into());
        let err = other.resume("s", second, ()).await.unwrap_err();
        assert!(err.is_busy() && err.answers_recorded(), "{err}");
        rig.go();
        // It looks again.
        rig.reached().await;
        if ended {
            other.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
            rig.plan(|_, _| Act::Pass);
            rig.go();
            let ended = again.await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["hi", "worked", "a", "b"]);
        } else {
            let id = SessionId::new("s").unwrap();
            rig.memory.claim(&id, Duration::from_secs(30)).await.unwrap();
            rig.go();
            let err = again.await.unwrap_err();
            assert!(err.is_busy() && err.answers_recorded(), "{err}");
        }
    }
}

/// The same for an input that was applied: its run returns the session's outcome, and an answer sent
/// at that moment does not wait indefinitely.
#[tokio::test]
async fn an_input_that_is_sent_again_does_not_keep_answers_from_being_applied() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let give = || agent.run(said("hi").how("ask"), ()).session("s").input_id("1");
    let outcome = give().await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    pause_at_release(&rig);
    let again = give().start();
    rig.reached().await;
    let other = stand.agent(&Rig::new(rig.memory.clone()));
    let err = other.resume("s", all_of(&waiting.questions), ()).await.unwrap_err();
    assert!(err.is_busy() && err.answers_recorded(), "{err}");
    rig.go();
    let ended = again.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["hi", "worked", "x", "x"]);
}

/// A run that has settled, and finds that another run resumed the session, does not claim it from a
/// run that answers at that moment.
#[tokio::test]
async fn a_settled_run_holds_no_session_that_another_run_resumed() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let outcome = agent.run(said("hi").how("ask"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let answer = |n: usize| Answers::json(waiting.questions[n].id.clone(), "x".into());
    let (released, read) = (rig.count(On::Release), Arc::new(Mutex::new(None)));
    let after = Arc::clone(&read);
    rig.plan(move |on, n| match on {
        On::Release if n == released + 1 => Act::Pause,
        // The first read after the release.
        On::Read if after.lock().unwrap().take().is_some() => Act::Pause,
        _ => Act::Pass,
    });
    let one = agent.resume("s", answer(0), ()).start();
    rig.reached().await;
    let other = stand.agent(&Rig::new(rig.memory.clone()));
    assert!(other.resume("s", answer(1), ()).await.unwrap_err().answers_recorded());
    *read.lock().unwrap() = Some(());
    rig.go();
    rig.reached().await;
    other.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    let claimed = rig.count(On::Claim);
    rig.go();
    assert!(matches!(one.await.unwrap(), Outcome::Interrupted(_)));
    assert_eq!(rig.count(On::Claim), claimed);
}

/// An input that is refused while its session is held does not keep answers from being taken, either.
#[tokio::test]
async fn an_input_that_is_refused_does_not_keep_answers_from_being_applied() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let give = |text: &str| agent.run(said(text).how("ask"), ()).session("s").input_id("1");
    let Outcome::Interrupted(waiting) = give("hi").await.unwrap() else { panic!("it asks") };
    pause_at_release(&rig);
    let refused = give("other").start();
    rig.reached().await;
    let other = stand.agent(&Rig::new(rig.memory.clone()));
    let err = other.resume("s", all_of(&waiting.questions), ()).await.unwrap_err();
    assert!(err.is_busy() && err.answers_recorded(), "{err}");
    rig.go();
    let err = refused.await.unwrap_err();
    assert!(err.is_input_conflict(), "{err}");
    let status = harness::Sessions::new(rig.memory.clone()).status("s").await.unwrap();
    assert_eq!(status.phase, harness::inspect::Phase::Ended);
}

/// A run that holds an ended session only to read it applies no input: the run with the input waits
/// until the session is free, and begins the turn.
#[tokio::test(start_paused = true)]
async fn an_input_is_not_queued_for_a_run_that_only_reads() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let give = |text: &str, id: &str| agent.run(said(text), ()).session("s").input_id(id);
    give("one", "1").await.unwrap().ended().unwrap();
    pause_at_release(&rig);
    let again = give("one", "1").start();
    rig.reached().await;
    let looks = Rig::new(rig.memory.clone());
    let queued = stand.agent(&looks).run(said("two"), ()).session("s");
    let queued = queued.on_busy(OnBusy::Queue).input_id("2").start();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(looks.count(On::Claim) > 1, "it tries again");
    rig.go();
    assert_eq!(again.await.unwrap().ended().unwrap().state.lines.len(), 2);
    let ended = queued.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked", "two", "worked"]);
}

/// A request that is refused has read the inbox, and does nothing about an input there: a worker finds
/// the session due.
#[tokio::test]
async fn an_input_that_a_refused_request_has_read_is_not_lost() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let give = |text: &str| agent.run(said(text), ()).session("s").input_id("1");
    give("one").await.unwrap().ended().unwrap();
    agent.enqueue("s", said("two")).await.unwrap();
    let is_due = async || {
        let request = DueRequest::new([harness::id::AgentId::new("a")]);
        let due = rig.memory.claim_due(&request, Duration::from_secs(30)).await.unwrap();
        for claimed in &due.claimed {
            rig.memory.release(&claimed.lease, harness::store::InboxSeq(0)).await.unwrap();
        }
        due.claimed.len()
    };
    assert_eq!(is_due().await, 1);
    let refused = agent.resume("s", Answers::none(), ()).await.unwrap_err();
    assert!(refused.is_not_waiting(), "{refused}");
    assert_eq!(is_due().await, 1, "after a resume of a turn that has ended");
    give("one").await.unwrap().ended().unwrap();
    assert_eq!(is_due().await, 1, "after an input that was applied before");
    let refused = give("other").await.unwrap_err();
    assert!(refused.is_input_conflict(), "{refused}");
    assert_eq!(is_due().await, 1, "after an input that was refused");
}

/// The same for answers that no run has applied: the run that is refused applies them.
#[tokio::test]
async fn answers_that_a_refused_request_has_read_are_applied() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let first = agent.run(said("hi").how("ask"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = first else { panic!("it asks") };
    let sessions = Sessions::new(rig.memory.clone());
    sessions.answer_json("s", all_of(&waiting.questions)).await.unwrap();
    let refused = agent.run(said("other"), ()).session("s").input_id("2").await.unwrap_err();
    assert!(refused.is_pending_interrupt(), "{refused}");
    assert_eq!(sessions.status("s").await.unwrap().phase, Phase::Ended);
}
