//! What is known of the process that left an effect in doubt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::prelude::*;
use harness::question::{Doubt, EffectInDoubt};
use harness::step::InDoubt;
use harness::store::{FormerHolder, MemoryStore, SessionStore as _};

use super::rig::{Rig, log, run_or_crash};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    paid: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Pay,
}

/// The first payment hangs, or fails; later ones are made.
fn agent(rig: &Rig, payments: &Arc<AtomicU32>, hangs: bool, asks: bool) -> Agent<(), Order> {
    let (hang, payments) = (rig.clone(), Arc::clone(payments));
    let harness = Harness::<(), Order>::builder("pay")
        .start(Step::Pay)
        .steps(|define, Step::Pay| {
            let (hang, payments) = (hang.clone(), Arc::clone(&payments));
            define
                .run(move |_, cx: Cx<()>| {
                    let (hang, payments) = (hang.clone(), Arc::clone(&payments));
                    async move {
                        let pay = async move || {
                            let n = payments.fetch_add(1, Ordering::SeqCst);
                            if n == 0 && hangs {
                                hang.hang().await;
                            }
                            if n == 0 { Err(StepError::fatal("no answer")) } else { Ok(n) }
                        };
                        let doubt = if asks { InDoubt::Ask } else { InDoubt::Fail };
                        Ok(Order::update().paid(cx.once("pay", pay).in_doubt(doubt).await?))
                    }
                })
                .end()
        })
        .build()
        .unwrap();
    harness.agent("a", ()).store(rig.clone())
}

/// Begins a payment whose run does not end; its lease expires.
fn suspended(payments: &Arc<AtomicU32>) -> Rig {
    let rig = Rig::new(MemoryStore::new());
    let agent = agent(&rig, payments, true, true);
    super::rig::runtime().block_on(async {
        let run = agent.run(Order::update(), ()).session("s").start();
        rig.reached().await;
        rig.memory.renew(&rig.lease().unwrap(), Duration::ZERO).await.unwrap();
        rig.kill();
        std::mem::forget(run);
    });
    Rig::new(rig.memory.clone())
}

#[test]
fn a_question_in_doubt_says_what_is_known_of_the_process_that_began_the_effect() {
    for hangs in [true, false] {
        let payments = Arc::default();
        let rig = match hangs {
            true => suspended(&payments),
            false => Rig::new(MemoryStore::new()),
        };
        super::rig::runtime().block_on(async {
            let agent = agent(&rig, &payments, hangs, true);
            if !hangs {
                let outcome = agent.run(Order::update(), ()).session("s").await.unwrap();
                assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
            }
            let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
            let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
            let doubt = waiting.pending::<EffectInDoubt>().unwrap();
            // The attempt that failed is over; the process that hangs may continue.
            let (former, json) = match hangs {
                true => (FormerHolder::Expired, "expired"),
                false => (FormerHolder::Released, "released"),
            };
            assert_eq!(doubt.question.former, former);
            assert_eq!(waiting.questions[0].question["former"], json);
            let repeat = doubt.answer(Doubt::Repeat);
            let ended = agent.resume("s", repeat, ()).await.unwrap().ended().unwrap();
            assert_eq!(ended.state.paid, 1);
        });
    }
}

/// Later runs do not change what is known: they have not begun the effect.
#[test]
fn what_is_known_stays_when_the_run_that_asks_ends_too() {
    let payments = Arc::default();
    let rig = suspended(&payments);
    let asks = agent(&rig, &payments, true, true);
    // The run that recovers the session dies before its question is recorded: its lease is released.
    let dies = Rig::nth(&rig.memory, super::rig::On::Append, 2, super::rig::Act::HangBefore);
    let dying = agent(&dies, &payments, true, true);
    assert!(run_or_crash(&dies, |_| dying.resume("s", Answers::none(), ())).is_none());
    super::rig::runtime().block_on(async {
        let outcome = asks.resume("s", Answers::none(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let doubt = waiting.pending::<EffectInDoubt>().unwrap();
        assert_eq!(doubt.question.former, FormerHolder::Expired);
        let log = log(&rig.memory, "s").await;
        let formers: Vec<_> = log.iter().filter_map(|entry| entry.get("recover")).collect();
        assert_eq!(
            (&formers[0]["former"], &formers[1]["former"]),
            (&"expired".into(), &"released".into())
        );
    });
}

#[test]
fn a_failure_in_doubt_says_so_too() {
    let payments = Arc::default();
    let rig = suspended(&payments);
    super::rig::runtime().block_on(async {
        let agent = agent(&rig, &payments, true, false);
        let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
        let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
        let why = failed.failure.to_string();
        assert!(why.contains("may only be suspended and finish it later"), "{why}");
    });
}
