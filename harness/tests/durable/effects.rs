//! Effects that survive their process, and happen no more often than they may.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::prelude::*;
use harness::question::{Doubt, EffectInDoubt};
use harness::store::MemoryStore;
use harness::{FailureKind, step::InDoubt};
use tokio::sync::Semaphore;

use super::rig::{Act, On, Rig, count, log, run_or_crash, settled};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    End,
}

/// What happened outside.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Vec<String>>>);

impl World {
    fn does(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn did(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A loop of one step.
fn one<F, Fut>(body: F) -> Harness<(), Doc>
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    Harness::<(), Doc>::builder("one")
        .start(Only::Step)
        .steps(|define, Only::Step| define.run(body.clone()).end())
        .build()
        .unwrap()
}

fn line(text: impl Into<String>) -> StepResult<Doc> {
    Ok(Doc::update().lines([text.into()]))
}

#[test]
fn results_survive_their_process() {
    // The process dies after the record of the effect, or before it.
    for (n, act, times) in [(3, Act::HangAfter, 1), (3, Act::HangBefore, 2), (2, Act::HangAfter, 1)]
    {
        let (memory, world) = (MemoryStore::new(), World::default());
        let harness = {
            let world = world.clone();
            one(move |_, cx| {
                let world = world.clone();
                async move {
                    let op = cx.op_id().to_string();
                    let acts = async move || {
                        world.does(op);
                        Ok(7)
                    };
                    let seven: u32 = cx.once("act", acts).await?;
                    line(format!("got {seven}"))
                }
            })
        };
        let rig = Rig::nth(&memory, On::Append, n, act);
        let agent = |rig: &Rig| harness.agent("a", ()).store(rig.clone());
        let crashed = run_or_crash(&rig, |rig| agent(rig).run(Doc::update(), ()).session("s"));
        assert!(crashed.is_none());
        let rig = Rig::new(memory);
        let outcome = run_or_crash(&rig, |rig| agent(rig).resume("s", Answers::none(), ()));
        assert_eq!(outcome.unwrap().ended().unwrap().state.lines, ["got 7"]);
        let did = world.did();
        assert_eq!(did.len(), times, "append {n}");
        assert!(did.iter().all(|op| *op == did[0]), "{did:?}");
    }
}

#[test]
fn an_effect_of_the_session_happens_once_in_all_turns() {
    let (memory, world) = (MemoryStore::new(), World::default());
    let harness = {
        let world = world.clone();
        one(move |_, cx| {
            let world = world.clone();
            async move {
                let acts = async move || {
                    world.does("welcome");
                    Ok(world.did().len())
                };
                let n: usize = cx.once_per_session("welcome", acts).await?;
                line(n.to_string())
            }
        })
    };
    for turn in 1..4 {
        let rig = Rig::new(memory.clone());
        let agent = harness.agent("a", ()).store(rig.clone());
        let outcome = run_or_crash(&rig, |_| agent.run(Doc::update(), ()).session("s"));
        assert_eq!(outcome.unwrap().ended().unwrap().state.lines.len(), turn);
    }
    assert_eq!(world.did(), ["welcome"]);
}

/// A step whose effect must happen at most once, under a policy.
fn at_most_once(world: &World, policy: &'static str) -> Harness<(), Doc> {
    let world = world.clone();
    one(move |_, cx| {
        let (world, probed) = (world.clone(), world.clone());
        async move {
            let acts = async move || {
                world.does("act");
                Ok("done".to_owned())
            };
            let once = cx.once("act", acts);
            let said = match policy {
                "default" => once.at_most_once().await?,
                "fail" => once.in_doubt(InDoubt::Fail).await?,
                "retry" => once.in_doubt(InDoubt::Retry).await?,
                "ask" => once.in_doubt(InDoubt::Ask).await?,
                "found" => once.probe(async move || Ok(probed.did().pop())).await?,
                _ => once.probe(async move || Ok(None)).await?,
            };
            line(said)
        }
    })
}

#[test]
fn in_doubt_each_policy_does_what_it_says() {
    for policy in ["default", "fail", "retry", "ask", "found", "lost"] {
        // The intent is on record, and the result is not: the process died in between.
        let (memory, world) = (MemoryStore::new(), World::default());
        let rig = Rig::nth(&memory, On::Append, 3, Act::HangBefore);
        let agent = |rig: &Rig| at_most_once(&world, policy).agent("a", ()).store(rig.clone());
        let crashed = run_or_crash(&rig, |rig| agent(rig).run(Doc::update(), ()).session("s"));
        assert!(crashed.is_none());
        assert_eq!(world.did(), ["act"], "{policy}");
        let rig = Rig::new(memory);
        let resume =
            |answers| run_or_crash(&rig, |rig| agent(rig).resume("s", answers, ())).unwrap();
        let mut outcome = resume(Answers::none());
        if policy == "ask" {
            let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
            let doubt = waiting.pending::<EffectInDoubt>().unwrap();
            assert_eq!(doubt.question.key, "act");
            assert_eq!(world.did().len(), 1);
            outcome = resume(doubt.answer(Doubt::Done { result: "by hand".into() }));
        }
        let (times, said) = match policy {
            "default" | "fail" => {
                let Outcome::Failed(failed) = &outcome else { panic!("{policy}: {outcome:?}") };
                assert_eq!(failed.failure.kind, FailureKind::InDoubt);
                assert_eq!(world.did().len(), 1);
                continue;
            }
            "retry" | "lost" => (2, "done"),
            "ask" => (1, "by hand"),
            _ => (1, "act"),
        };
        let ended = outcome.ended().unwrap();
        assert_eq!(
            (world.did().len(), &ended.state.lines[..]),
            (times, &[said.to_owned()][..]),
            "{policy}"
        );
    }
}

#[test]
fn an_effect_is_not_run_without_its_intent() {
    let (memory, world) = (MemoryStore::new(), World::default());
    let rig = Rig::nth(&memory, On::Append, 2, Act::Full);
    let agent = at_most_once(&world, "default").agent("a", ()).store(rig.clone());
    let outcome = run_or_crash(&rig, |_| agent.run(Doc::update(), ()).session("s")).unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::Store);
    assert!(world.did().is_empty());
}

#[tokio::test]
async fn each_visit_has_effects_of_its_own() {
    let (memory, world) = (MemoryStore::new(), World::default());
    let harness = Harness::<(), Doc>::builder("visits")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            let world = world.clone();
            define
                .run(move |_, cx: Cx<()>| {
                    let world = world.clone();
                    async move {
                        if cx.attempt() == 1 {
                            let (world, op) = (world.clone(), cx.op_id().to_string());
                            cx.once("k", async move || Ok(world.does(op))).await?;
                            return Err(StepError::retryable("again"));
                        }
                        let op = cx.op_id().to_string();
                        let same = op.clone();
                        cx.once("k", async move || Ok(world.does(same))).await?;
                        line(op)
                    }
                })
                .retry(Retry::every(Duration::ZERO))
                .route(
                    |doc: &Doc| if doc.lines.len() < 5 { Next::Again } else { Next::End },
                    |next| match next {
                        Next::Again => to(Only::Step),
                        Next::End => end(),
                    },
                )
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(memory);
    let ended = agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    let mut did = world.did();
    assert_eq!(ended.state.lines, did, "attempts of a visit have one op id");
    did.sort();
    did.dedup();
    assert_eq!(did.len(), 5);
}

#[tokio::test]
async fn a_key_is_used_once_in_a_visit() {
    let (memory, world) = (MemoryStore::new(), World::default());
    let harness = {
        let world = world.clone();
        one(move |_, cx| {
            let (one, two) = (world.clone(), world.clone());
            async move {
                cx.once("k", async move || Ok(one.does("one"))).await?;
                cx.once("k", async move || Ok(two.does("two"))).await?;
                line("never")
            }
        })
    };
    let agent = harness.agent("a", ()).store(memory);
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert!(!failed.failure.retryable && failed.failure.message.contains("`k` is used twice"));
    assert_eq!(world.did(), ["one"]);
}

/// Whatever ends the attempt while its effect is at work: it is finished and recorded, once.
#[tokio::test(start_paused = true)]
async fn an_effect_at_work_is_finished_and_recorded() {
    for how in ["ask", "timeout", "stop", "cancel", "drop"] {
        let (memory, world) = (MemoryStore::new(), World::default());
        let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let attempts = Arc::new(AtomicU32::new(0));
        let harness = {
            let (world, begun, go) = (world.clone(), Arc::clone(&begun), Arc::clone(&go));
            let attempts = Arc::clone(&attempts);
            Harness::<(), Doc>::builder("at-work")
                .start(Only::Step)
                .steps(|define, Only::Step| {
                    let (world, begun, go) = (world.clone(), Arc::clone(&begun), Arc::clone(&go));
                    let attempts = Arc::clone(&attempts);
                    let body = move |_: View<Doc>, cx: Cx<()>| {
                        let (world, begun, go) =
                            (world.clone(), Arc::clone(&begun), Arc::clone(&go));
                        attempts.fetch_add(1, Ordering::SeqCst);
                        async move {
                            let slow = cx.once("slow", async move || {
                                begun.add_permits(1);
                                go.acquire().await?.forget();
                                world.does("slow");
                                Ok(())
                            });
                            if how == "ask" {
                                let (slow, sure) = tokio::join!(slow, cx.ask("sure", Sure));
                                slow?;
                                return line(sure?.to_string());
                            }
                            slow.await?;
                            line("true")
                        }
                    };
                    let step = define.run(body).retry(Retry::every(Duration::ZERO));
                    match how {
                        "timeout" => step.timeout(Duration::from_millis(20)).end(),
                        _ => step.end(),
                    }
                })
                .build()
                .unwrap()
        };
        let agent = harness.agent("a", ()).store(memory.clone());
        let run = agent.run(Doc::update(), ()).session("s").start();
        begun.acquire().await.unwrap().forget();
        match how {
            "stop" => run.stop(),
            "cancel" => run.cancel(),
            "timeout" => tokio::time::sleep(Duration::from_millis(60)).await,
            _ => {}
        }
        let run = (how != "drop").then_some(run);
        tokio::task::yield_now().await;
        assert!(world.did().is_empty(), "{how}");
        go.add_permits(5);
        let lines = match run {
            Some(run) => match (how, run.await.unwrap()) {
                ("ask", Outcome::Interrupted(waiting)) => {
                    let yes = waiting.pending::<Sure>().unwrap().answer(true);
                    agent.resume("s", yes, ()).await.unwrap().ended().unwrap().state.lines
                }
                ("timeout" | "stop", Outcome::Ended(ended)) => ended.state.lines,
                ("stop" | "cancel", Outcome::Stopped(_)) => {
                    let on = agent.resume("s", Answers::none(), ()).await.unwrap();
                    on.ended().unwrap().state.lines
                }
                (_, other) => panic!("{how}: {other:?}"),
            },
            None => {
                settled(&memory, "s").await;
                assert_eq!(count(&memory, "s", "settle").await, 1);
                let on = agent.resume("s", Answers::none(), ()).await.unwrap();
                on.ended().unwrap().state.lines
            }
        };
        assert_eq!(lines, ["true"], "{how}");
        assert_eq!(world.did(), ["slow"], "{how}");
        let log = log(&memory, "s").await;
        let recorded = log.iter().filter(|entry| entry["effect"]["k"] == "slow").count();
        assert_eq!(recorded, 1, "{how}");
    }
}

#[tokio::test]
async fn a_session_that_is_made_again_under_its_id_has_other_op_ids() {
    let (memory, world) = (MemoryStore::new(), World::default());
    let seen = world.clone();
    let harness = one(move |_, cx| {
        seen.does(cx.op_id().to_string());
        let fails = cx.attempt() == 1;
        async move {
            if fails {
                Err(harness::StepError::retryable("again"))?
            }
            line("done")
        }
    });
    let agent = harness.agent("a", ()).store(memory.clone());
    for _ in 0..2 {
        let run = || agent.run(Doc::update(), ()).session("s");
        assert!(matches!(run().await.unwrap(), Outcome::Failed(_)));
        agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
        harness::Sessions::new(memory.clone()).delete("s").await.unwrap();
    }
    let ops = world.did();
    assert_eq!((&ops[0], &ops[2]), (&ops[1], &ops[3]), "the attempts at one position share theirs");
    assert_ne!(ops[0], ops[2]);
    assert!(ops.iter().all(|op| op.starts_with("s/") && op.ends_with("/1")), "{ops:?}");
}
