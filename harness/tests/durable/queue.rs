//! Inputs under one id: the first has it, and keeps it.

use harness::OnBusy;
use harness::prelude::*;
use harness::run::QueueStatus;
use harness::store::MemoryStore;
use harness::worker::Worker;

use super::busy::{Stand, queued, said};
use super::rig::{Act, On, Rig, run_or_crash};

/// The run has begun its turn, and the inbox does not have the id of its input yet: whether the
/// session is new or not.
#[tokio::test(start_paused = true)]
async fn another_input_under_the_id_of_one_at_work_is_refused_at_once() {
    for new in [true, false] {
        let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
        let agent = stand.agent(&rig);
        if !new {
            agent.run(said("zero"), ()).session("s").await.unwrap().ended().unwrap();
        }
        let slow = Rig::nth(&rig.memory, On::Send, 1, Act::Pause);
        let winner = stand.agent(&slow).run(said("one"), ()).session("s").input_id("1").start();
        slow.reached().await;
        let loser = agent.run(said("other"), ()).session("s").input_id("1");
        let loser = loser.on_busy(OnBusy::Queue).start();
        if new {
            let refused = loser.await.unwrap_err();
            assert!(refused.is_input_conflict(), "{refused}");
            slow.go();
            let ended = winner.await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["one", "worked"]);
        } else {
            // The winner has only looked: the first message decides.
            while rig.count(On::Send) < 1 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            slow.go();
            let refused = winner.await.unwrap_err();
            assert!(refused.is_input_conflict(), "{refused}");
            let ended = loser.await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["zero", "worked", "other", "worked"]);
        }
        // For as long as the session is there, and for any process.
        agent.run(said("two"), ()).session("s").await.unwrap().ended().unwrap();
        let again = stand.agent(&Rig::new(rig.memory.clone()));
        let (kept, refused) = if new { ("one", "other") } else { ("other", "one") };
        for on_busy in [OnBusy::Reject, OnBusy::Queue] {
            let give = |text| again.run(said(text), ()).session("s").input_id("1").on_busy(on_busy);
            let lines = give(kept).await.unwrap().ended().unwrap().state.lines;
            assert_eq!(lines.len(), if new { 4 } else { 6 });
            let refused = give(refused).await.unwrap_err();
            assert!(refused.is_input_conflict(), "{refused}");
        }
    }
}

/// While the turn of an input is at work, the same input again waits for nothing, and another one is
/// refused; the run does not take either of them.
#[tokio::test(start_paused = true)]
async fn an_input_that_is_at_work_is_not_queued_again() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let held = agent.run(said("one").how("wait"), ()).session("s").input_id("1").start();
    stand.at_work().await;
    let queue = |update| {
        agent.run(update, ()).session("s").input_id("1").on_busy(OnBusy::Queue).into_future()
    };
    let same = queued(queue(said("one").how("wait")).await);
    assert_eq!((&*same.input_id, same.status), ("1", QueueStatus::Applied));
    assert!(same.to_string().contains("was applied before"), "{same}");
    let refused = queue(said("other")).await.unwrap_err();
    assert!(refused.is_input_conflict(), "{refused}");
    stand.go();
    let ended = held.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked"]);
}

/// A run takes the id of its input, and dies before the turn begins: the same input can be queued
/// under it, and another cannot.
#[test]
fn an_id_that_a_dead_run_has_taken_stays_with_its_input() {
    let (stand, memory) = (Stand::new(), MemoryStore::new());
    let runs = |rig: &Rig, text: &str| stand.agent(rig).run(said(text), ()).session("s");
    let rig = Rig::new(memory.clone());
    run_or_crash(&rig, |rig| runs(rig, "zero")).unwrap().ended().unwrap();
    let rig = Rig::nth(&memory, On::Append, 1, Act::HangBefore);
    assert!(run_or_crash(&rig, |rig| runs(rig, "one").input_id("1")).is_none());

    super::rig::runtime().block_on(async {
        let rig = Rig::new(memory.clone());
        let agent = stand.agent(&rig);
        let held = agent.run(said("two").how("wait"), ()).session("s").start();
        stand.at_work().await;
        let queue = |text: &str| {
            let request = agent.run(said(text), ()).session("s").input_id("1");
            request.on_busy(OnBusy::Queue).into_future()
        };
        assert!(queue("other").await.unwrap_err().is_input_conflict());
        for _ in 0..2 {
            assert_eq!(queued(queue("one").await).status, QueueStatus::Held);
        }
        stand.go();
        // `how` of the turn before still says to wait.
        stand.at_work().await;
        stand.go();
        let ended = held.await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines[2..], ["two", "worked", "one", "worked"]);
        assert!(queue("other").await.unwrap_err().is_input_conflict());
        assert_eq!(queue("one").await.unwrap().ended().unwrap().state, ended.state);
    });
}

/// What an input waits for, in words, and how its session is resumed.
#[tokio::test(start_paused = true)]
async fn a_queued_input_says_what_to_do() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let held = agent.run(said("one").how("wait"), ()).session("s").start();
    stand.at_work().await;
    let give = || agent.run(said("two").how(""), ()).session("s").input_id("2");
    let outcome = give().on_busy(OnBusy::Queue).await.unwrap();
    assert_eq!((outcome.session().as_str(), outcome.state()), ("s", None));
    assert_eq!(outcome.spent().usage.total(), None);
    let why = outcome.ended().unwrap_err();
    assert!(why.to_string().contains("input `2` is queued for session `s` (the run that holds"));
    let waits = give().on_busy(OnBusy::Wait).start();
    stand.go();
    held.await.unwrap();
    // The one that waits finds the input applied.
    let ended = waits.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked", "two", "worked"]);
    let over = agent.resume(why.into_outcome(), Answers::none(), ()).await.unwrap_err();
    assert!(over.is_not_waiting(), "{over}");
}

/// The state of another version of the program, whose inputs the one at work cannot read.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Numbers {
    #[state(reduce = append)]
    lines: Vec<u64>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

fn another_version(rig: &Rig) -> Agent<(), Numbers> {
    let harness = Harness::<(), Numbers>::builder("busy")
        .start(Only::Step)
        .steps(|define, step| match step {
            Only::Step => define.run(async |_, _| Ok(Numbers::update())).end(),
        })
        .build()
        .unwrap();
    harness.agent("a", ()).store(rig.clone())
}

/// An input that does not fit the state is skipped, and those that wait for its turn are notified,
/// whether a worker or a run that ends its turn has skipped it.
#[tokio::test(start_paused = true)]
async fn an_input_that_is_skipped_is_reported_to_those_that_wait_for_it() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = stand.agent(&rig);
    let held = agent.run(said("one").how("wait"), ()).session("s").start();
    stand.at_work().await;
    let strange = another_version(&rig);
    let strange = |id: &str| strange.enqueue("s", Numbers::update().lines([5])).input_id(id);
    let in_time = async |queued: harness::run::Queued<Numbers>| {
        let outcome = tokio::time::timeout(std::time::Duration::from_secs(60), queued.outcome());
        outcome.await.expect("its outcome").unwrap_err()
    };
    let queued = strange("1").await.unwrap();
    assert_eq!(queued.status, QueueStatus::Held);
    stand.go();
    held.await.unwrap().ended().unwrap();
    let skipped = in_time(queued).await;
    assert!(skipped.is_input_skipped() && skipped.to_string().contains("`1`"), "{skipped}");

    let worker = Worker::new().serve(&agent, |_| async { Ok(()) }).start().unwrap();
    let queued = strange("2").await.unwrap();
    let next = agent.enqueue("s", said("two").how("")).await.unwrap();
    let ended = next.outcome().await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "worked", "two", "worked"]);
    let skipped = in_time(queued).await;
    assert!(skipped.is_input_skipped(), "{skipped}");
    let skipped = in_time(strange("3").await.unwrap()).await;
    assert!(skipped.is_input_skipped(), "{skipped}");
    assert_eq!(worker.failed(), []);
    worker.drain().await;
}
