//! When commits are made durable.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Durability, Sessions};

use super::rig::Rig;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = u32)]
struct HowMany;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Count,
    Act,
    Ask,
    Last,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    On,
}

/// Ten quick steps, an effect, a question, a step.
fn harness(rig: &Rig, seen: &Arc<Mutex<Vec<(u64, u64)>>>, wait: Duration) -> Harness<(), Doc> {
    let (rig, seen) = (rig.clone(), Arc::clone(seen));
    let look = move || {
        let heads = rig.heads().last().copied().unwrap_or_default();
        seen.lock().unwrap().push((rig.flushed_to().0, heads.0));
    };
    Harness::<(), Doc>::builder("modes")
        .start(Step::Count)
        .steps(|define, step| match step {
            Step::Count => define
                .run(move |_, _| async move {
                    if !wait.is_zero() {
                        tokio::time::sleep(wait).await;
                    }
                    Ok(Doc::update().n(1))
                })
                .route(
                    |doc: &Doc| if doc.n < 10 { Next::Again } else { Next::On },
                    |next| match next {
                        Next::Again => to(Step::Count),
                        Next::On => to(Step::Act),
                    },
                ),
            Step::Act => {
                let look = look.clone();
                define
                    .run(move |_, cx: Cx<()>| {
                        let look = look.clone();
                        async move {
                            cx.once("act", async move || Ok(look())).await?;
                            Ok(Doc::update().n(1))
                        }
                    })
                    .then(Step::Ask)
            }
            Step::Ask => {
                let look = look.clone();
                define
                    .ask(|_, _| async move { Ok(HowMany) })
                    .answer(move |_, _, said| {
                        look();
                        async move { Ok(Doc::update().n(said.answer)) }
                    })
                    .then(Step::Last)
            }
            Step::Last => define.run(|_, _| async move { Ok(Doc::update().n(1)) }).end(),
        })
        .build()
        .unwrap()
}

/// How many flushes the two runs took, and how far the log was durable when something acted.
async fn flushes(durability: Durability, wait: Duration) -> (u64, u64, Vec<(u64, u64)>) {
    let rig = Rig::new(MemoryStore::new());
    let seen = Arc::default();
    // Elsewhere an agent has its store first.
    let agent = harness(&rig, &seen, wait).agent("a", ()).durability(durability).store(rig.clone());
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let first = rig.flushes();
    let five = waiting.pending::<HowMany>().unwrap().answer(5);
    let ended = agent.resume("s", five, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.n, 17);
    let seen = seen.lock().unwrap().clone();
    (first, rig.flushes() - first, seen)
}

#[tokio::test(start_paused = true)]
async fn each_mode_flushes_as_often_as_documented() {
    // Ten commits, the effect, the step's commit, the question; the answer's commit, the end.
    let (first, second, seen) = flushes(Durability::Step, Duration::ZERO).await;
    assert_eq!((first, second), (13, 2));
    let [effect, answer] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(effect.0, effect.1);
    // The answer is durable as a message; that it was applied need not be.
    let applied = 2;
    assert_eq!(answer.0 + applied, answer.1);
    // Before the effect and its result, the question; the end.
    for mode in [Durability::Relaxed, Durability::Settle] {
        let (first, second, seen) = flushes(mode, Duration::ZERO).await;
        assert_eq!((first, second), (3, 1), "{mode:?}");
        // The session's first entries, ten commits: all of that was durable when the effect ran.
        assert_eq!(seen[0], (12, 12), "{mode:?}");
        assert_eq!(seen[1].0 + applied, seen[1].1, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_sent_by_another_process_is_made_durable_before_a_step_acts_on_it() {
    let rig = Rig::new(MemoryStore::new());
    let seen = Arc::default();
    let mode = Durability::Settle;
    let agent =
        harness(&rig, &seen, Duration::ZERO).agent("a", ()).store(rig.clone()).durability(mode);
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let five = Answers::json(waiting.questions[0].id.clone(), 5.into());
    Sessions::new(rig.clone()).answer_json("s", five).await.unwrap();
    agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    let (flushed, head) = seen.lock().unwrap()[1];
    assert_eq!(flushed, head);
}

/// The step after a commit blocks its runtime's only thread until the commit is durable.
#[test]
fn a_relaxed_commit_becomes_durable_while_a_step_blocks_its_runtime() {
    let rig = Rig::new(MemoryStore::new());
    let looks = rig.clone();
    let harness = Harness::<(), Doc>::builder("blocks")
        .start(Step::Count)
        .steps(|define, step| match step {
            Step::Count => {
                define.run(|_, _| async move { Ok(Doc::update().n(1)) }).then(Step::Last)
            }
            Step::Last => {
                let looks = looks.clone();
                define
                    .run(move |_, _| {
                        let looks = looks.clone();
                        async move {
                            let until = Instant::now() + Duration::from_secs(20);
                            while looks.flushes() == 0 && Instant::now() < until {
                                std::thread::yield_now();
                            }
                            Ok(Doc::update().n(looks.flushes() as u32))
                        }
                    })
                    .end()
            }
            _ => define.off("not of this loop"),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(rig).durability(Durability::Relaxed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = async { agent.run(Doc::update(), ()).session("s").await };
    let ended = runtime.block_on(run).unwrap().ended().unwrap();
    assert_eq!(ended.state.n, 2, "one commit, and one flush before the step was done");
}

#[tokio::test(start_paused = true)]
async fn a_relaxed_commit_waits_for_a_tenth_of_a_second_at_most() {
    // A step takes 60 ms: each flush but the last takes two commits along.
    let (first, ..) = flushes(Durability::Relaxed, Duration::from_millis(60)).await;
    assert!((3 + 4..=3 + 5).contains(&first), "{first}");
    // A step takes 150 ms: each commit is flushed by itself.
    let (first, ..) = flushes(Durability::Relaxed, Duration::from_millis(150)).await;
    assert!((3 + 9..=3 + 10).contains(&first), "{first}");
    let (first, ..) = flushes(Durability::Settle, Duration::from_secs(1)).await;
    assert_eq!(first, 3);
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Large {
    text: String,
    #[state(reduce = add)]
    n: u32,
}

/// Far more than a store takes at once is written until the run settles: 900 times 80 KB.
#[tokio::test]
async fn many_steps_that_replace_a_large_field_are_written_and_read_in_every_mode() {
    const STEPS: u32 = 900;
    for mode in [Durability::Settle, Durability::Relaxed] {
        let harness = Harness::<(), Large>::builder("large")
            .start(Step::Count)
            .steps(|define, step| match step {
                Step::Count => define
                    .run(move |large: View<Large>, _| async move {
                        let text = format!("{:08}", large.n).repeat(10_000);
                        Ok(Large::update().text(text).n(1))
                    })
                    .route(
                        |large: &Large| if large.n < STEPS { Next::Again } else { Next::On },
                        |next| match next {
                            Next::Again => to(Step::Count),
                            Next::On => to(Step::Ask),
                        },
                    ),
                Step::Ask => define
                    .ask(|_, _| async move { Ok(HowMany) })
                    .answer(|_, _, said| async move { Ok(Large::update().n(said.answer)) })
                    .end(),
                _ => define.off("not of this loop"),
            })
            .build()
            .unwrap();
        let rig = Rig::new(MemoryStore::new());
        let agent = harness.agent("a", ()).store(rig.clone()).durability(mode);
        let steps = harness::Budget::steps(2_000);
        let outcome = agent.run(Large::update(), ()).session("s").budget(steps).await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{mode:?}: {outcome:?}") };
        assert!(rig.heads().len() > 1, "{mode:?}: it is split");
        // Another process reads it.
        let other = harness.agent("a", ()).store(rig.memory.clone()).durability(mode);
        let five = waiting.pending::<HowMany>().unwrap().answer(5);
        let ended = other.resume("s", five, ()).await.unwrap().ended().unwrap();
        assert_eq!((ended.state.n, ended.state.text.len()), (STEPS + 5, 80_000), "{mode:?}");
    }
}

/// Events of one flush have each the seq of its own entry.
#[tokio::test]
async fn the_seq_of_an_event_is_that_of_its_state_in_every_mode() {
    for mode in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let rig = Rig::new(MemoryStore::new());
        let events = harness::observe::Recorder::default();
        let agent = harness(&rig, &Arc::default(), Duration::ZERO).agent("a", ());
        let agent = agent.store(rig.clone()).durability(mode).observe(events.clone());
        let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
        assert!(matches!(outcome, Outcome::Interrupted(_)), "{mode:?}");
        let mut n = 0;
        for event in events.events() {
            if let harness::observe::EventKind::Committed { .. } = event.kind {
                n += 1;
                let at = agent.state_at("s", event.seq.unwrap()).await.unwrap();
                assert_eq!(at.n, n, "{mode:?}: {event}");
            }
        }
        assert_eq!(n, 11, "{mode:?}");
    }
}
