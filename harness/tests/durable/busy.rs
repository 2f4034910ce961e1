//! Sessions that another run holds, and inputs that have names.

use std::sync::Arc;
use std::time::Duration;

use harness::prelude::*;
use harness::run::{QueueStatus, Queued};
use harness::store::MemoryStore;
use harness::{OnBusy, RunError, RunRequest, Sessions, UtcMillis};
use tokio::sync::Semaphore;

use super::rig::{Act, On, Rig, all, count, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Doc {
    #[state(reduce = append)]
    pub(super) lines: Vec<String>,
    pub(super) how: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct What {
    n: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
    Both,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Ask,
    End,
}

/// Where the step says that it is at work, and waits.
#[derive(Clone)]
pub(super) struct Stand {
    at_work: Arc<Semaphore>,
    go: Arc<Semaphore>,
}

impl Stand {
    pub(super) fn new() -> Self {
        Self { at_work: Arc::new(Semaphore::new(0)), go: Arc::new(Semaphore::new(0)) }
    }

    pub(super) async fn at_work(&self) {
        self.at_work.acquire().await.unwrap().forget();
    }

    fn harness(&self) -> Harness<(), Doc> {
        Harness::<(), Doc>::builder("busy")
            .start(Step::Work)
            .steps(|define, step| match step {
                Step::Work => {
                    let stand = self.clone();
                    define
                        .run(move |doc: View<Doc>, cx: Cx<()>| {
                            let stand = stand.clone();
                            async move {
                                if doc.how == "wait" {
                                    stand.at_work.add_permits(1);
                                    tokio::select! {
                                        go = stand.go.acquire() => go?.forget(),
                                        () = cx.cancelled() => {}
                                    }
                                }
                                if doc.how == "fail" && cx.attempt() == 1 {
                                    return Err(StepError::fatal("no"));
                                }
                                Ok(Doc::update().lines(["worked".to_owned()]))
                            }
                        })
                        .route(
                            |doc: &Doc| if doc.how == "ask" { Next::Ask } else { Next::End },
                            |next| match next {
                                Next::Ask => to(Step::Both),
                                Next::End => end(),
                            },
                        )
                }
                Step::Both => define
                    .run(|_, cx: Cx<()>| async move {
                        let (one, two) = tokio::join!(
                            cx.ask("one", What { n: 1 }),
                            cx.ask("two", What { n: 2 })
                        );
                        Ok(Doc::update().lines([one?, two?]).how(""))
                    })
                    .end(),
            })
            .build()
            .unwrap()
    }

    /// Lets the step that waits continue.
    pub(super) fn go(&self) {
        self.go.add_permits(1);
    }

    pub(super) fn agent(&self, rig: &Rig) -> Agent<(), Doc> {
        self.harness().agent("a", ()).store(rig.clone())
    }
}

/// The input was queued.
pub(super) fn queued<S: State + std::fmt::Debug>(
    outcome: Result<Outcome<S>, RunError>,
) -> Queued<S> {
    match outcome.unwrap() {
        Outcome::Queued(queued) => queued,
        other => panic!("it was not queued: {other:?}"),
    }
}

pub(super) fn said(text: &str) -> <Doc as State>::Update {
    Doc::update().lines([text.to_owned()])
}

#[tokio::test(start_paused = true)]
async fn reject_wait_and_stop() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    // A stop is seen when the lease is renewed.
    let agent = stand.agent(&rig).lease(Duration::from_millis(150));
    let held = agent.run(said("one").how("wait"), ()).session("s").start();
    stand.at_work().await;
    let before = all(&rig.memory, "s").await;
    let err = agent.run(said("two"), ()).session("s").await.unwrap_err();
    assert!(err.is_busy() && !err.answers_recorded(), "{err}");
    // A date and a time, not a number.
    let why = err.to_string();
    let until = why.split_once("its lease expires at ").unwrap().1.split_once(',').unwrap().0;
    assert!(UtcMillis::from_rfc3339(until).unwrap() > UtcMillis(0), "{why}");
    let err = agent.resume("s", Answers::none(), ()).await.unwrap_err();
    assert!(err.is_busy() && !err.answers_recorded(), "{err}");
    assert_eq!(all(&rig.memory, "s").await, before);

    let waits = agent.run(said("two").how("wait"), ()).session("s").on_busy(OnBusy::Wait).start();
    stand.go.add_permits(1);
    held.await.unwrap().ended().unwrap();
    stand.at_work().await;
    // The step is notified, finishes, and its result is committed.
    let stops = agent.resume("s", Answers::none(), ()).on_busy(OnBusy::Stop).start();
    let outcome = waits.await.unwrap();
    assert_eq!(outcome.ended().unwrap().state.lines, ["one", "worked", "two", "worked"]);
    assert!(stops.await.unwrap_err().is_not_waiting());
}

#[tokio::test(start_paused = true)]
async fn queued_inputs_are_the_next_turns_in_order() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let held = agent.run(said("one").how("wait"), ()).session("s").start();
    stand.at_work().await;
    let queue = |text: &str, id: &str| {
        let request = agent.run(said(text).how(""), ()).session("s").on_busy(OnBusy::Queue);
        request.input_id(id)
    };
    for (text, id) in [("two", "2"), ("three", "3"), ("two", "2")] {
        let queued = queued(queue(text, id).await);
        assert_eq!((&*queued.input_id, queued.status), (id, QueueStatus::Held));
        assert_eq!(queued.session.as_str(), "s");
    }
    let err = queue("other", "2").await.unwrap_err();
    assert!(err.is_input_conflict(), "{err}");
    stand.go.add_permits(1);
    let ended = held.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked", "two", "worked", "three", "worked"]);
    // Taken: the same again is not taken twice.
    for (text, id) in [("two", "2"), ("three", "3")] {
        let same = queue(text, id).await.unwrap().ended().unwrap();
        assert_eq!(same.state.lines.len(), 6);
    }
}

/// An input that was queued is not forgotten because the turn before it did not end at once.
#[tokio::test(start_paused = true)]
async fn a_queued_input_waits_for_the_end_of_the_turn() {
    for how in ["fail", "ask", "stop"] {
        let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
        let agent = stand.agent(&rig);
        // It is queued while the first append of the run is on its way.
        rig.plan(|on, n| if on == On::Append && n == 2 { Act::Pause } else { Act::Pass });
        let held = agent.run(said("one").how(how), ()).session("s").start();
        rig.reached().await;
        let request = agent.run(said("two").how(""), ()).session("s").on_busy(OnBusy::Queue);
        assert_eq!(queued(request.input_id("2").await).status, QueueStatus::Held, "{how}");
        if how == "stop" {
            held.stop();
        }
        rig.go();
        let outcome = held.await.unwrap();
        let answers = match &outcome {
            Outcome::Interrupted(it) => it.questions.iter().fold(Answers::none(), |all, asked| {
                all.and(Answers::json(&*asked.id.to_string(), "x".into()))
            }),
            Outcome::Ended(ended) if how == "stop" => {
                assert_eq!(ended.state.lines.len(), 4, "{how}");
                continue;
            }
            _ => Answers::none(),
        };
        let ended = agent.resume("s", answers, ()).await.unwrap().ended().unwrap();
        let tail = &ended.state.lines[ended.state.lines.len() - 2..];
        assert_eq!(tail, ["two", "worked"], "{how}");
        assert_eq!(count(&rig.memory, "s", "run").await, 3, "{how}");
        // Another turn does not take it again.
        let next = agent.run(said("three"), ()).session("s").await.unwrap().ended().unwrap();
        assert_eq!(next.state.lines.len(), ended.state.lines.len() + 2, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_is_queued_for_a_session_that_begins() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    rig.plan(|on, n| if on == On::Append && n == 1 { Act::Pause } else { Act::Pass });
    let held = agent.run(said("one").how("wait"), ()).session("s").start();
    rig.reached().await;
    let queue = agent.run(said("two").how(""), ()).session("s").on_busy(OnBusy::Queue).start();
    // The session is not there yet: nothing can be left for it.
    while rig.count(On::Claim) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    rig.go();
    stand.at_work().await;
    assert_eq!(queued(queue.await).status, QueueStatus::Held);
    stand.go.add_permits(1);
    let ended = held.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked", "two", "worked"]);
}

#[tokio::test]
async fn an_input_with_an_id_is_applied_once() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let give = |text: &str, id: &str| agent.run(said(text), ()).session("s").input_id(id);
    let first = give("one", "1").await.unwrap().ended().unwrap();
    let again = give("one", "1").await.unwrap().ended().unwrap();
    assert_eq!((&again.state, again.run), (&first.state, first.run));
    let before = all(&rig.memory, "s").await;
    let err = give("other", "1").await.unwrap_err();
    assert!(err.is_input_conflict(), "{err}");
    assert_eq!(all(&rig.memory, "s").await, before);
    give("two", "2").await.unwrap().ended().unwrap();
    agent.run(said("three"), ()).session("s").await.unwrap().ended().unwrap();
    // An old id, after later turns: the current status of the session.
    for (text, id) in [("one", "1"), ("two", "2")] {
        let old = give(text, id).await.unwrap().ended().unwrap();
        assert_eq!(old.state.lines.len(), 6, "{id}");
        assert!(give("other", id).await.unwrap_err().is_input_conflict());
    }
}

#[test]
fn an_input_with_an_id_is_recovered_after_a_crash() {
    // The process dies before the first entries, after them, before the message, after the step.
    let deaths = [
        (On::Append, 1, false),
        (On::Append, 1, true),
        (On::Send, 1, false),
        (On::Append, 2, true),
    ];
    for (on, n, after) in deaths {
        let (stand, memory) = (Stand::new(), MemoryStore::new());
        let act = if after { Act::HangAfter } else { Act::HangBefore };
        let rig = Rig::nth(&memory, on, n, act);
        let give = |rig: &Rig, text: &str, id: &str| -> RunRequest<Doc> {
            stand.agent(rig).run(said(text), ()).session("s").input_id(id)
        };
        assert!(run_or_crash(&rig, |rig| give(rig, "one", "1")).is_none());
        let rig = Rig::new(memory.clone());
        let what = format!("{on:?} {n} {after}");
        let ended = run_or_crash(&rig, |rig| give(rig, "one", "1")).unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["one", "worked"], "{what}");
        run_or_crash(&rig, |rig| give(rig, "two", "2")).unwrap().ended().unwrap();
        let old = run_or_crash(&rig, |rig| give(rig, "one", "1")).unwrap().ended().unwrap();
        assert_eq!(old.state.lines, ["one", "worked", "two", "worked"], "{what}");
        let _ = runtime();
    }
}

/// A session read before it was claimed is not mistaken for one that replaced it.
#[tokio::test]
async fn a_session_that_was_replaced_before_it_was_claimed_is_read_again() {
    let (stand, memory) = (Stand::new(), MemoryStore::new());
    let agent = stand.agent(&Rig::new(memory.clone()));
    let ask = |line: &str| agent.run(said(line).how("ask"), ()).session("s");
    let Outcome::Interrupted(old) = ask("old").await.unwrap() else { panic!("it asks") };
    let rig = Rig::nth(&memory, On::Claim, 1, Act::Pause);
    let other = stand.agent(&rig);
    let answer = Answers::json(old.questions[0].id.clone(), "x".into());
    let late = other.resume("s", answer, ()).start();
    rig.reached().await;
    Sessions::new(memory.clone()).delete("s").await.unwrap();
    let Outcome::Interrupted(new) = ask("new").await.unwrap() else { panic!("it asks") };
    rig.go();
    let outcome = late.await.unwrap();
    let Outcome::Interrupted(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!(found.state.lines, new.state.lines);
    assert_eq!(found.questions.len(), new.questions.len());
}

/// A session that was read before it was claimed is not read again.
#[tokio::test]
async fn a_session_that_is_still_the_same_is_read_once() {
    let (stand, memory) = (Stand::new(), MemoryStore::new());
    let agent = stand.agent(&Rig::new(memory.clone()));
    let asked = agent.run(said("one").how("ask"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(asked) = asked else { panic!("{asked:?}") };
    let rig = Rig::new(memory.clone());
    let all = asked
        .questions
        .iter()
        .fold(Answers::none(), |all, asked| all.and(Answers::json(asked.id.clone(), "x".into())));
    stand.agent(&rig).resume("s", all, ()).await.unwrap().ended().unwrap();
    // The session, the messages sent until it was claimed, and those sent until it ended.
    assert_eq!(rig.count(On::Read), 3);
}
