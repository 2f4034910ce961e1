//! What agents lose when the power does: after any moment, with any part of what was not synced,
//! their sessions continue to the same end, and what a run had settled is there.

use std::sync::Arc;

use harness::inspect::Phase;
use harness::prelude::*;
use harness::{Durability, Sessions};
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::open;
use super::power_loss::{crash, materialise, unsynced};
use super::recording::Recording;
use crate::FileStore;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    sent: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    One,
    Two,
    Pay,
    Ask,
    Close,
}

fn line(text: &str) -> <Doc as State>::Update {
    Doc::update().lines([text.to_owned()])
}

fn agent(store: &FileStore, durability: Durability) -> Agent<(), Doc> {
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::One)
        .steps(|define, step| match step {
            Step::One => define.run(|_, _| async move { Ok(line("one")) }).then(Step::Two),
            Step::Two => define.run(|_, _| async move { Ok(line("two")) }).then(Step::Pay),
            Step::Pay => define
                .run(|_, cx: Cx<()>| async move {
                    let paid: u32 = cx.once("pay", async move || Ok(7)).await?;
                    Ok(line(&format!("paid {paid}")))
                })
                .then(Step::Ask),
            Step::Ask => define
                .ask(|_, _| async move { Ok(Send) })
                .answer(|_, _, said| async move { Ok(Doc::update().sent(Some(said.answer))) })
                .then(Step::Close),
            Step::Close => define.run(|_, _| async move { Ok(line("closed")) }).end(),
        })
        .build()
        .unwrap();
    harness.agent("a", ()).store(store.clone()).durability(durability)
}

fn whole() -> Doc {
    let lines = ["hi", "one", "two", "paid 7", "closed"].map(str::to_owned).to_vec();
    Doc { lines, sent: Some(true) }
}

async fn begin(agent: &Agent<(), Doc>) -> harness::RunError {
    match agent.run(line("hi"), ()).session("s").await {
        Ok(Outcome::Interrupted(_)) => agent.run(line("hi"), ()).session("s").await.unwrap_err(),
        Ok(other) => panic!("{other:?}"),
        Err(error) => error,
    }
}

async fn to_the_end(agent: &Agent<(), Doc>, store: &FileStore, what: &str) -> Doc {
    let mut answers = Answers::none();
    for _ in 0..10 {
        match agent.resume("s", std::mem::take(&mut answers), ()).await {
            Ok(Outcome::Ended(ended)) => return ended.state,
            Ok(Outcome::Interrupted(waiting)) => {
                answers = waiting.pending::<Send>().unwrap().answer(true);
            }
            Err(error) if error.is_not_waiting() => {
                let state = Sessions::new(store.clone()).state("s").await.unwrap();
                return serde_json::from_value(state).unwrap();
            }
            Err(error) if error.is_not_found() => {
                let error = begin(agent).await;
                assert!(error.is_pending_interrupt() || error.is_unsettled(), "{what}: {error}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    panic!("{what}: the session does not end");
}

#[tokio::test]
async fn sessions_survive_a_loss_of_power_at_any_moment() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("store");
        let disk = Arc::new(Recording::default());
        let so_far = || disk.tape.lock().unwrap().ops.len();
        let store = open(&disk, &dir);
        let running = agent(&store, durability);
        let outcome = running.run(line("hi"), ()).session("s").await.unwrap();
        let asked = so_far();
        let asked_head = Sessions::new(store.clone()).status("s").await.unwrap().head;
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let yes = waiting.pending::<Send>().unwrap().answer(true);
        let ended = running.resume("s", yes, ()).await.unwrap().ended().unwrap();
        let over = so_far();
        assert_eq!(ended.state, whole());
        drop((running, store));

        let ops = disk.tape.lock().unwrap().ops.clone();
        let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        for end in 0..=ops.len() {
            for (attempt, keep) in [0, 100, 30, 70].into_iter().enumerate() {
                let what = format!("{durability:?}: {keep}% of the unsynced of {end} operations");
                let after = parent.path().join(format!("{end}-{attempt}"));
                std::fs::create_dir(&after).unwrap();
                materialise(&crash(&ops[..end], &mut rng, keep), &dir, &after);
                let store = unsynced(&after);
                let status = Sessions::new(store.clone()).status("s").await;
                if end >= asked {
                    let status = status.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(status.head >= asked_head, "{what}: {status:?}");
                    assert!(end < over || status.phase == Phase::Ended, "{what}: {status:?}");
                } else if let Err(error) = status {
                    assert!(error.is_not_found(), "{what}: {error}");
                }
                let agent = agent(&store, durability);
                assert_eq!(to_the_end(&agent, &store, &what).await, whole(), "{what}");
                std::fs::remove_dir_all(&after).unwrap();
            }
        }
        println!("{} operations, asked at {asked}, over at {over}", ops.len());
    }
}
