//! Several stores with the same keys, as if in processes of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::Outcome;
use harness::prelude::*;
use harness_store::RedisStore;

use crate::place::Place;

const RACES: usize = 200;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Approval {
    approved: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Approve;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
    Act,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    acts: Arc<AtomicUsize>,
}

/// What is guarded: it happens once, whichever store it is done with.
async fn act(_: View<Approval>, cx: Cx<Ctx>) -> StepResult<Approval> {
    let acts = cx.acts.clone();
    cx.once("act", async move || {
        acts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
    .await?;
    Ok(Approval::update())
}

fn agent(store: RedisStore, acts: Arc<AtomicUsize>) -> Agent<Ctx, Approval> {
    let harness = Harness::<Ctx, Approval>::builder("approval")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Approve) })
                .answer(|_, _, said: harness::Answered<Approve>| async move {
                    Ok(Approval::update().approved(Some(said.answer)))
                })
                .then(Step::Act),
            Step::Act => define.run(act).end(),
        })
        .build()
        .unwrap();
    harness.agent("approval", Ctx::required().acts(acts).build()).store(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_stores_that_answer_at_once_one_decides_and_it_happens_once() {
    let place = Place::new("process_races");
    let acts = Arc::new(AtomicUsize::new(0));
    let first = agent(place.open().await, acts.clone());
    let second = agent(place.open().await, acts.clone());
    for race in 0..RACES {
        let session = format!("r{race}");
        let outcome = first.run(Approval::update(), ()).session(&session).await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!() };
        let answer = |value: bool| Answers::json(waiting.questions[0].id.clone(), value.into());
        let differ = race % 2 == 0;
        let one = first.resume(&*session, answer(true), ());
        let other = second.resume(&*session, answer(!differ), ());
        let (one, other) = tokio::join!(one, other);
        assert_eq!(acts.load(Ordering::SeqCst), race + 1, "race {race}: it happens once");
        let ended = |outcome: &Result<Outcome<Approval>, _>| match outcome {
            Ok(Outcome::Ended(ended)) => ended.state.approved,
            _ => None,
        };
        let decided: Vec<bool> = [ended(&one), ended(&other)].into_iter().flatten().collect();
        match differ {
            // One is refused, because the other was first.
            true => assert_eq!(decided.len(), 1, "race {race}"),
            false => assert!(!decided.is_empty() && decided.iter().all(|it| *it), "race {race}"),
        }
    }
}
