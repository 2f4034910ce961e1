//! Leases: which run holds a session, and what happens to a run that lost its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use harness::prelude::*;
use harness::store::{InboxSeq, MemoryStore, SessionStore};
use harness::{Durability, FailureKind, Sessions};
use serde_json::to_value;
use tokio::sync::Semaphore;

use super::rig::{Act, On, Rig, all, count, folded, is_held, settled, steal};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
}

/// A loop of two steps, the second of which is given.
fn harness<F, Fut>(second: F) -> Harness<(), Doc>
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    Harness::<(), Doc>::builder("leases")
        .start(Step::First)
        .steps(|define, step| match step {
            Step::First => define.run(|_, _| async move { line("first") }).then(Step::Second),
            Step::Second => define.run(second.clone()).end(),
        })
        .build()
        .unwrap()
}

fn line(text: &str) -> StepResult<Doc> {
    Ok(Doc::update().lines([text.to_owned()]))
}

const TTL: Duration = Duration::from_millis(200);

/// A step that blocks every thread of the runtime keeps the session all the same.
#[test]
fn a_step_that_blocks_keeps_its_lease() {
    let rig = Rig::new(MemoryStore::new());
    let memory = rig.memory.clone();
    let harness = harness(move |_, _| {
        let memory = memory.clone();
        async move {
            let until = Instant::now() + 3 * TTL;
            while Instant::now() < until {
                // No other run can claim the session.
                let held = futures_util::FutureExt::now_or_never(is_held(&memory, "s"));
                assert_eq!(held, Some(true));
                std::thread::yield_now();
            }
            line("second")
        }
    });
    super::rig::runtime().block_on(async {
        let agent = harness.agent("a", ()).store(rig.clone()).lease(TTL);
        let ended = agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["first", "second"]);
        assert!(rig.count(On::Renew) >= 5, "{}", rig.count(On::Renew));
    });
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_ends_the_run() {
    for durability in [Durability::Step, Durability::Settle] {
        let rig = Rig::with(&MemoryStore::new(), |on, _| match on {
            On::Renew => Act::Fail,
            _ => Act::Pass,
        });
        let harness = harness(|_, cx| async move {
            cx.cancelled().await;
            line("too late")
        });
        let agent = harness.agent("a", ()).store(rig.clone()).lease(TTL).durability(durability);
        let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
        let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failed.failure.kind, FailureKind::LeaseLost);
        // Nothing was appended since, and what the outcome says is what the log says.
        assert_eq!(count(&rig.memory, "s", "settle").await, 0);
        let state = to_value(&**failed.state.as_ref().unwrap()).unwrap();
        assert_eq!(state, folded(&rig.memory, "s").await);
        assert_eq!(failed.state.unwrap().lines.is_empty(), durability == Durability::Settle);
    }
}

#[tokio::test]
async fn a_stolen_lease_stops_its_old_holder() {
    for what in ["append", "effect", "intent"] {
        let rig = Rig::new(MemoryStore::new());
        let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let acted = Arc::new(AtomicU32::new(0));
        let harness = {
            let (begun, go, acted) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&acted));
            harness(move |_, cx| {
                let (begun, go, acted) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&acted));
                async move {
                    begun.add_permits(1);
                    go.acquire().await?.forget();
                    let act = async move || Ok(acted.fetch_add(1, Ordering::SeqCst));
                    let _: u32 = match what {
                        "effect" => cx.once("act", act).await?,
                        "intent" => cx.once("act", act).at_most_once().await?,
                        _ => 0,
                    };
                    line("second")
                }
            })
        };
        // The lease is so long that no renewal reports the loss. Before an effect nothing is appended,
        // so there the first renewal reports it.
        let ttl = if what == "effect" { TTL } else { Duration::from_secs(60) };
        let agent = harness.agent("a", ()).store(rig.clone()).lease(ttl);
        let run = agent.run(Doc::update(), ()).session("s").start();
        begun.acquire().await.unwrap().forget();
        let thief = steal(&rig.memory, "s", &rig.lease().unwrap()).await;
        let before = all(&rig.memory, "s").await;
        if what == "effect" {
            let renewed = rig.count(On::Renew);
            while rig.count(On::Renew) == renewed {
                tokio::task::yield_now().await;
            }
        }
        go.add_permits(1);
        let outcome = run.await.unwrap();
        let Outcome::Failed(failed) = outcome else { panic!("{what}: {outcome:?}") };
        assert_eq!(failed.failure.kind, FailureKind::LeaseLost, "{what}");
        assert_eq!(failed.state.unwrap().lines, ["first"]);
        assert_eq!(acted.load(Ordering::SeqCst), 0, "{what}");
        assert_eq!(all(&rig.memory, "s").await, before, "{what}");
        // The old holder has not released the new lease.
        assert!(is_held(&rig.memory, "s").await);
        rig.memory.release(&thief, InboxSeq(0)).await.unwrap();
        go.add_permits(1);
        let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["first", "second"]);
    }
}

/// A request that is dropped at any point.
#[tokio::test]
async fn a_dropped_request_gives_the_session_back() {
    // During its claim, before and after it, while it reads, at its first append.
    let places = [(On::Claim, 2), (On::Read, 1), (On::Append, 4), (On::Append, 5)];
    for (on, n) in places {
        let rig = Rig::new(MemoryStore::new());
        let plain = harness(|_, _| async move { line("second") });
        let agent = plain.agent("a", ()).store(rig.clone());
        agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
        let nth = if on == On::Read { rig.count(On::Read) + n } else { n };
        rig.plan(
            move |what, count| if what == on && count == nth { Act::Pause } else { Act::Pass },
        );
        let run = agent.run(Doc::update(), ()).session("s").into_future();
        let mut run = Box::pin(run);
        tokio::select! {
            outcome = &mut run => panic!("{on:?} {n}: {outcome:?}"),
            () = rig.reached() => {}
        }
        drop(run);
        rig.go();
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert!(!is_held(&rig.memory, "s").await, "{on:?} {n}");
        let again = agent.run(Doc::update(), ()).session("s").await;
        let ended = match again {
            Err(error) if error.is_unsettled() => {
                agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap()
            }
            other => other.unwrap().ended().unwrap(),
        };
        assert_eq!(ended.state.lines.len(), 4, "{on:?} {n}");
    }
}

/// A run that is dropped in the middle of a step, or of an append.
#[tokio::test]
async fn a_dropped_run_is_cancelled_and_can_be_resumed() {
    for place in ["step", "append", "handle"] {
        let rig = Rig::new(MemoryStore::new());
        let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let harness = {
            let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
            harness(move |_, _| {
                let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                async move {
                    begun.add_permits(1);
                    go.acquire().await?.forget();
                    line("second")
                }
            })
        };
        if place == "append" {
            // The commit of the first step is on its way.
            rig.plan(|on, n| if on == On::Append && n == 2 { Act::Pause } else { Act::Pass });
        }
        let agent = harness.agent("a", ()).store(rig.clone());
        let request = agent.run(Doc::update(), ()).session("s");
        if place == "handle" {
            let run = request.start();
            begun.acquire().await.unwrap().forget();
            drop(run);
        } else {
            let mut run = Box::pin(request.into_future());
            tokio::select! {
                outcome = &mut run => panic!("{place}: {outcome:?}"),
                () = rig.reached(), if place == "append" => {}
                it = begun.acquire(), if place == "step" => it.unwrap().forget(),
            }
            drop(run);
            rig.go();
        }
        settled(&rig.memory, "s").await;
        assert_eq!(count(&rig.memory, "s", "settle").await, 1, "{place}");
        let log = super::rig::log(&rig.memory, "s").await;
        assert_eq!(log.last().unwrap()["settle"]["end"]["as"], "cancelled", "{place}");
        // The append that was on its way is there.
        assert_eq!(count(&rig.memory, "s", "commit").await, 1, "{place}");
        go.add_permits(1);
        let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["first", "second"], "{place}");
        assert_eq!(count(&rig.memory, "s", "recover").await, 0, "{place}");
    }
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Go;

/// A run releases its session, and claims it again for an answer that comes in that moment, while a
/// renewal of the released lease is on its way.
#[tokio::test]
async fn a_late_renewal_of_a_released_lease_does_not_end_the_run_that_claims_again() {
    let (late, held) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let rig = {
        let late = Arc::clone(&late);
        Rig::with(&MemoryStore::new(), move |on, n| match (on, n) {
            (On::Renew, 1) => Act::Wait(Arc::clone(&late)),
            (On::Release, 1) => Act::Pause,
            _ => Act::Pass,
        })
    };
    let go = Arc::new(Semaphore::new(0));
    let harness = {
        let (rig, held, go) = (rig.clone(), Arc::clone(&held), Arc::clone(&go));
        harness(move |_, cx| {
            let (rig, held, go) = (rig.clone(), Arc::clone(&held), Arc::clone(&go));
            async move {
                while rig.count(On::Renew) == 0 {
                    tokio::task::yield_now().await;
                }
                cx.ask("go", Go).await?;
                held.add_permits(1);
                go.acquire().await?.forget();
                line("second")
            }
        })
    };
    let agent = harness.agent("a", ()).store(rig.clone()).lease(TTL);
    let run = agent.run(Doc::update(), ()).session("s").start();
    // The renewal and the release wait.
    rig.reached().await;
    rig.reached().await;
    let sessions = Sessions::new(rig.memory.clone());
    let asked = sessions.pending_interrupts().await.unwrap().rows.remove(0);
    let yes = Answers::json(asked.interrupt.id, true.into());
    sessions.answer_json("s", yes).await.unwrap();
    rig.go();
    held.acquire().await.unwrap().forget();
    late.add_permits(1);
    // The lease thread has seen what became of it once the new lease was renewed twice.
    let renewed = rig.count(On::Renew);
    while rig.count(On::Renew) < renewed + 2 {
        tokio::task::yield_now().await;
    }
    go.add_permits(1);
    let ended = run.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["first", "second"]);
}

/// The store fails when a lease is renewed that has expired, and answers when it is asked again: no
/// other run has claimed the session, so the run continues.
#[tokio::test]
async fn an_expired_lease_that_no_run_has_claimed_is_renewed_though_the_store_fails_at_first() {
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    // The first renewal is on its way when the lease expires, and the next two fail.
    let late = Arc::new(Semaphore::new(0));
    let rig = {
        let late = Arc::clone(&late);
        Rig::with(&MemoryStore::new(), move |on, n| match (on, n) {
            (On::Renew, 1) => Act::Wait(Arc::clone(&late)),
            (On::Renew, 2 | 3) => Act::Fail,
            _ => Act::Pass,
        })
    };
    let harness = {
        let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
        harness(move |_, cx| {
            let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
            async move {
                begun.add_permits(1);
                go.acquire().await?.forget();
                cx.once("act", async || Ok(())).at_most_once().await?;
                line("second")
            }
        })
    };
    let agent = harness.agent("a", ()).store(rig.clone()).lease(TTL);
    let run = agent.run(Doc::update(), ()).session("s").start();
    begun.acquire().await.unwrap().forget();
    rig.reached().await;
    while is_held(&rig.memory, "s").await {
        tokio::task::yield_now().await;
    }
    go.add_permits(1);
    let renewed = rig.count(On::Renew);
    while rig.count(On::Renew) == renewed {
        tokio::task::yield_now().await;
    }
    late.add_permits(1);
    let ended = run.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["first", "second"]);
}
