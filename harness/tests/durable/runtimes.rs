//! Runs whose runtime ends while the process lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use harness::prelude::*;
use harness::store::MemoryStore;
use tokio::sync::Semaphore;

use super::rig::{Act, On, Rig, count, is_held, log};

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

/// The second step waits, in an effect if it acts.
fn harness(at_work: &Arc<Semaphore>, acts: bool) -> Harness<(), Doc> {
    let line = |text: &str| Ok(Doc::update().lines([text.to_owned()]));
    Harness::<(), Doc>::builder("runtimes")
        .start(Step::First)
        .steps(|define, step| match step {
            Step::First => define.run(move |_, _| async move { line("first") }).then(Step::Second),
            Step::Second => {
                let at_work = Arc::clone(at_work);
                define
                    .run(move |_, cx: Cx<()>| {
                        let at_work = Arc::clone(&at_work);
                        async move {
                            let waits = async move || {
                                at_work.add_permits(1);
                                std::future::pending::<()>().await;
                                Ok(())
                            };
                            match acts {
                                true => cx.once("act", waits).at_most_once().await?,
                                false => waits().await?,
                            }
                            line("second")
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
}

/// Waits for the lease thread, whose time is not that of any runtime.
fn until(over: impl Fn() -> bool, what: &str) {
    let begun = Instant::now();
    while !over() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

fn is_free(rig: &Rig) -> bool {
    !is_held(&rig.memory, "s").now_or_never().unwrap()
}

/// The runtime ends in the middle of a step: the session is free at once, as after any run that is
/// dropped. The lease lasts a minute.
#[test]
fn a_run_whose_runtime_ends_in_a_step_releases_its_session() {
    for (threads, acts) in [(0, false), (2, false), (0, true), (2, true)] {
        let what = format!("{threads} threads, acts: {acts}");
        let (rig, at_work) = (Rig::new(MemoryStore::new()), Arc::new(Semaphore::new(0)));
        let agent = harness(&at_work, acts).agent("a", ()).store(rig.clone());
        let agent = agent.lease(Duration::from_secs(60));
        let runtime = match threads {
            0 => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            n => tokio::runtime::Builder::new_multi_thread()
                .worker_threads(n)
                .enable_all()
                .build()
                .unwrap(),
        };
        let entered = runtime.enter();
        let run = agent.run(Doc::update(), ()).session("s").start();
        drop(entered);
        runtime.block_on(at_work.acquire()).unwrap().forget();
        assert!(!is_free(&rig), "{what}");
        drop(runtime);
        until(|| is_free(&rig), &what);
        assert!(run.now_or_never().unwrap().is_err(), "{what}");

        super::rig::runtime().block_on(async {
            let log = log(&rig.memory, "s").await;
            assert_eq!(log.last().unwrap()["settle"]["end"]["as"], "cancelled", "{what}");
            // An effect whose result is not known stays in doubt.
            assert_eq!(count(&rig.memory, "s", "intent").await, usize::from(acts), "{what}");
            assert_eq!(count(&rig.memory, "s", "effect").await, 0, "{what}");
            // Another run continues there.
            let run = agent.resume("s", Answers::none(), ()).start();
            if acts {
                let Outcome::Failed(failed) = run.await.unwrap() else { panic!("{what}") };
                assert_eq!(failed.failure.kind, harness::FailureKind::InDoubt, "{what}");
            } else {
                at_work.acquire().await.unwrap().forget();
                run.cancel();
                let Outcome::Stopped(stopped) = run.await.unwrap() else { panic!("{what}") };
                assert_eq!(stopped.state.lines, ["first"], "{what}");
            }
        });
    }
}

/// The future of a run is dropped where there is no runtime at all.
#[test]
fn a_run_that_is_dropped_outside_of_a_runtime_releases_its_session() {
    let (rig, at_work) = (Rig::new(MemoryStore::new()), Arc::new(Semaphore::new(0)));
    let agent = harness(&at_work, false).agent("a", ()).store(rig.clone());
    let mut run = agent.run(Doc::update(), ()).session("s").into_future();
    super::rig::runtime().block_on(async {
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            at_work = at_work.acquire() => at_work.unwrap().forget(),
        }
    });
    assert!(!is_free(&rig));
    drop(run);
    until(|| is_free(&rig), "dropped outside of a runtime");
}

/// The runtime ends while an append, a claim or a release is on its way: it is finished, and what was
/// claimed is released.
#[test]
fn what_a_runtime_leaves_on_its_way_to_the_store_is_finished() {
    for (on, n) in [(On::Claim, 1), (On::Append, 1), (On::Append, 2)] {
        let what = format!("{on:?} {n}");
        let at_work = Arc::new(Semaphore::new(0));
        let rig = Rig::nth(&MemoryStore::new(), on, n, Act::Pause);
        let agent = harness(&at_work, false).agent("a", ()).store(rig.clone());
        let runtime = super::rig::runtime();
        let entered = runtime.enter();
        let run = agent.run(Doc::update(), ()).session("s").start();
        drop(entered);
        runtime.block_on(rig.reached());
        drop(runtime);
        drop(run);
        rig.go();
        until(|| rig.count(On::Release) > 0 && is_free(&rig), &what);
        if on == On::Append {
            let commits = count(&rig.memory, "s", "commit").now_or_never().unwrap();
            assert_eq!(commits as u64, n - 1, "{what}");
        }
    }
}

/// What a call waits for at the store does not come any more: it is made again, on another runtime. The store
/// has done it already, or not.
#[test]
fn what_waits_for_a_runtime_that_ends_is_begun_again() {
    for (on, n) in [(On::Append, 1), (On::Append, 2), (On::Release, 1)] {
        for act in [Act::HangBefore, Act::HangAfter] {
            let what = format!("{on:?} {n}, done: {}", matches!(act, Act::HangAfter));
            let at_work = Arc::new(Semaphore::new(0));
            let rig = Rig::nth(&MemoryStore::new(), on, n, act);
            let agent = harness(&at_work, false).agent("a", ()).store(rig.clone());
            let runtime = super::rig::runtime();
            let entered = runtime.enter();
            let run = agent.run(Doc::update(), ()).session("s").start();
            drop(entered);
            if on == On::Release {
                runtime.block_on(at_work.acquire()).unwrap().forget();
                run.cancel();
            }
            runtime.block_on(rig.reached());
            drop(runtime);
            until(|| rig.count(On::Release) > u64::from(on == On::Release) && is_free(&rig), &what);
            // The run itself begins once its first entries are in the store.
            if (on, n) != (On::Append, 1) {
                let log = log(&rig.memory, "s").now_or_never().unwrap();
                assert_eq!(log.last().unwrap()["settle"]["end"]["as"], "cancelled", "{what}");
            }
            let commits = count(&rig.memory, "s", "commit").now_or_never().unwrap();
            assert_eq!(commits as u64, if on == On::Release { 1 } else { n - 1 }, "{what}");
            drop(run);
        }
    }
}
