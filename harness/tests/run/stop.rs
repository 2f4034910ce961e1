//! Stopping and cancelling.

use std::time::Duration;

use crate::common::*;

/// A step that meets the test, then is done; entered again and again.
fn meets() -> Bench {
    two(
        |define| {
            define
                .run(async |_, cx| {
                    let _dropped = OnDrop(cx.probe.clone(), "dropped");
                    cx.probe.meet("inside").await;
                    cx.probe.hit("through");
                    Ok(Log::update().n(1))
                })
                .at_most(3, Two::Second)
                .then(Two::First)
        },
        |define| define.run(async |_, _| Ok(line("end"))).end(),
    )
}

#[tokio::test]
async fn a_stop_lets_the_step_at_work_finish_and_commits_it() {
    let bench = meets();
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("inside").await;
    run.stop();
    run.stop();
    bench.probe.open("inside");
    let out = stopped(run.await.unwrap());
    assert!(!out.cancelled);
    assert_eq!(out.state.n, 1);
    assert_eq!(
        bench.log(),
        ["run started", "First#1 started", "First#1 committed -> First", "run stopped"]
    );
    bench.probe.open("inside");
    bench.probe.open("inside");
    let resumed = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(resumed.state.n, 3);
    assert_eq!(bench.log()[..2], ["run resumed", "First#2 started"]);
}

#[tokio::test]
async fn a_stop_notifies_the_step_so_that_it_can_finish_early() {
    let bench = two(
        |define| {
            define
                .run(async |_, cx| {
                    cx.probe.open("inside reached");
                    cx.cancelled().await;
                    Ok(line("wound up"))
                })
                .then(Two::Second)
        },
        |define| define.run(async |_, _| Ok(line("never"))).end(),
    );
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("inside").await;
    run.control().stop();
    assert_eq!(stopped(run.await.unwrap()).state.lines, ["wound up"]);
}

#[tokio::test]
async fn a_cancel_drops_the_step_at_work_and_discards_its_update() {
    let bench = meets();
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("inside").await;
    run.cancel();
    let out = stopped(run.await.unwrap());
    assert!(out.cancelled);
    assert_eq!(out.state.n, 0);
    assert_eq!(bench.probe.hits(), ["dropped"]);
    assert_eq!(bench.log(), ["run started", "First#1 started", "run cancelled"]);
    for _ in 0..3 {
        bench.probe.open("inside");
    }
    let resumed = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(resumed.state.n, 3);
    assert_eq!(bench.log()[1], "First#1 (attempt 2) started");
}

#[tokio::test]
async fn a_step_that_returns_after_a_cancel_is_discarded_all_the_same() {
    // It waits for the cancel itself, and returns.
    let waits = only(|define| {
        define
            .run(async |_, cx| {
                cx.probe.open("inside reached");
                cx.cancelled().await;
                Ok(line("too late"))
            })
            .end()
    });
    let run = waits.agent.run(Log::update(), ()).start();
    waits.probe.reached("inside").await;
    run.cancel();
    let out = stopped(run.await.unwrap());
    assert!(out.cancelled && out.state.lines.is_empty(), "{out:?}");

    // It is cancelled while it is polled, before and after its first pause.
    for pauses in [false, true] {
        let (hand, control) = std::sync::mpsc::sync_channel::<harness::run::RunControl>(1);
        let control = std::sync::Arc::new(std::sync::Mutex::new(control));
        let bench = only(move |define| {
            let control = std::sync::Arc::clone(&control);
            define
                .run(move |_log, _cx| {
                    let control = std::sync::Arc::clone(&control);
                    async move {
                        if pauses {
                            tokio::task::yield_now().await;
                        }
                        control.lock().unwrap().recv().unwrap().cancel();
                        Ok(line("too late"))
                    }
                })
                .end()
        });
        let run = bench.agent.run(Log::update(), ()).start();
        hand.send(run.control()).unwrap();
        let out = stopped(run.await.unwrap());
        assert!(out.cancelled && out.state.lines.is_empty(), "{pauses}: {out:?}");
        assert!(!bench.log().iter().any(|line| line.contains("committed")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_a_cancel_end_a_back_off() {
    for cancel in [false, true] {
        let bench = only(|define| {
            define
                .run(async |_, cx| {
                    cx.probe.open("tried reached");
                    Err(Oops("no"))?
                })
                .retry(Retry::every(Duration::from_secs(3_600)))
                .end()
        });
        let began = tokio::time::Instant::now();
        let mut run = bench.agent.run(Log::update(), ()).start();
        let mut events = run.events();
        while let Some(event) = events.next().await {
            let harness::observe::Streamed::Event(event) = event else {
                continue;
            };
            if matches!(event.kind, harness::observe::EventKind::Retrying { .. }) {
                break;
            }
        }
        if cancel {
            run.cancel()
        } else {
            run.stop()
        }
        let out = stopped(run.await.unwrap());
        assert_eq!(out.cancelled, cancel);
        assert!(began.elapsed() < Duration::from_secs(3_600));
        assert_eq!(bench.seen.started(), ["Work"]);
    }
}

#[tokio::test]
async fn a_stop_before_the_first_step_runs_nothing() {
    let bench = meets();
    let run = bench.agent.run(Log::update(), ()).start();
    run.stop();
    stopped(run.await.unwrap());
    assert!(bench.seen.started().is_empty());
}

#[tokio::test]
async fn a_cancelled_step_is_not_polled_again() {
    let bench = only(|define| {
        define
            .run(|_, cx| {
                let mut task_is_known = false;
                std::future::poll_fn(move |_| {
                    if !std::mem::replace(&mut task_is_known, true) {
                        cx.probe.open("inside reached");
                    }
                    cx.probe.hit("polled");
                    std::task::Poll::Pending
                })
            })
            .end()
    });
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("inside").await;
    assert_eq!(bench.probe.count("polled"), 1);
    run.cancel();
    assert!(stopped(run.await.unwrap()).cancelled);
    assert_eq!(bench.probe.count("polled"), 1);
}
