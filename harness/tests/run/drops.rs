//! Effects in flight, and sessions whose run is dropped.

use std::future::pending;

use crate::common::*;

/// A step that asks, then has an effect that meets the test beside something that never ends.
fn effectful() -> Bench {
    only(|define| {
        define
            .run(async |_, cx| {
                cx.ask("k", may("go")).await?;
                let _dropped = OnDrop(cx.probe.clone(), "dropped");
                let (effect, hang) = (cx.clone(), cx.attempt() == 2);
                let paid = async move || {
                    effect.probe.meet("paying").await;
                    Ok(effect.probe.hit("paid"))
                };
                let paid = cx.once("pay", paid).await?;
                if hang {
                    pending::<()>().await;
                }
                Ok(line(format!("paid {paid}")))
            })
            .end()
    })
}

#[tokio::test]
async fn an_effect_in_flight_finishes_and_is_recorded_when_the_run_is_cancelled() {
    let bench = effectful();
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let run = bench.agent.resume(&waiting, answers, ()).start();
    bench.probe.reached("paying").await;
    run.cancel();
    bench.probe.open("paying");
    let out = stopped(run.await.unwrap());
    assert_eq!(bench.probe.hits(), ["paid", "dropped"]);
    let out = bench.agent.resume(&out, Answers::none(), ()).await.unwrap();
    assert_eq!(ended(out).state.lines, ["paid 1"]);
    assert_eq!(bench.probe.count("paid"), 1);
}

/// Resumes `waiting` once it is at rest again.
async fn resume_at_rest(bench: &Bench, waiting: &harness::Interrupted<Log>) -> Outcome<Log> {
    loop {
        match bench.agent.resume(waiting, Answers::none(), ()).await {
            Ok(outcome) => return outcome,
            Err(error) if error.is_not_at_rest() => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn an_effect_in_flight_finishes_and_is_recorded_when_the_run_is_dropped() {
    for handle in [false, true] {
        let bench = effectful();
        let waiting = interrupted(bench.run().await);
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let request = bench.agent.resume(&waiting, answers, ());
        if handle {
            let run = request.start();
            bench.probe.reached("paying").await;
            drop(run);
        } else {
            let run = tokio::spawn(request.into_future());
            bench.probe.reached("paying").await;
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
        }
        let refused = bench.agent.resume(&waiting, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_not_at_rest(), "an effect is in flight: {refused}");
        bench.probe.open("paying");
        assert_eq!(ended(resume_at_rest(&bench, &waiting).await).state.lines, ["paid 1"]);
        assert_eq!(bench.probe.count("paid"), 1);
    }
}

#[tokio::test]
async fn an_effect_of_a_new_run_that_is_dropped_finishes() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                let paid = async move || {
                    effect.probe.meet("paying").await;
                    effect.probe.hit("paid");
                    effect.probe.open("over reached");
                    Ok(())
                };
                cx.once("pay", paid).await?;
                cx.probe.hit("after");
                Ok(line("never"))
            })
            .end()
    });
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("paying").await;
    drop(run);
    bench.probe.open("paying");
    bench.probe.reached("over").await;
    tokio::task::yield_now().await;
    assert_eq!(bench.probe.hits(), ["paid"]);
}

#[tokio::test]
async fn a_dropped_resume_leaves_the_session_where_it_was_at_once() {
    let bench = effectful();
    let waiting = interrupted(bench.run().await);
    let answers = || waiting.pending::<May>().unwrap().answer(true);
    drop(bench.agent.resume(&waiting, answers(), ())); // never begun
    let mut run = Box::pin(bench.agent.resume(&waiting, answers(), ()).into_future());
    assert!(futures_util::FutureExt::now_or_never(&mut run).is_none());
    bench.probe.reached("paying").await;
    bench.probe.open("paying");
    // The effect is over, but its step has not heard of it.
    while bench.probe.count("paid") == 0 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    drop(run);
    // The same answers again are as good as none.
    let out = bench.agent.resume(&waiting, answers(), ()).await.unwrap();
    assert_eq!(ended(out).state.lines, ["paid 1"]);
}

#[tokio::test]
async fn tasks_of_a_step_end_with_it_however_it_ends() {
    for drops in [false, true] {
        let bench = only(|define| {
            define
                .run(async |_, cx| {
                    let probe = cx.probe.clone();
                    cx.spawn(async move {
                        let _ended = OnDrop(probe.clone(), "task ended");
                        probe.open("task reached");
                        pending::<()>().await;
                    });
                    cx.probe.meet("inside").await;
                    Ok(line("done"))
                })
                .end()
        });
        let run = tokio::spawn(bench.agent.run(Log::update(), ()).into_future());
        bench.probe.reached("inside").await;
        bench.probe.reached("task").await;
        if drops {
            run.abort();
        } else {
            bench.probe.open("inside");
        }
        assert_eq!(run.await.is_err(), drops);
        while bench.probe.count("task ended") == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_while_it_settles_gives_its_session_back_as_it_settled() {
    // An observer that blocks at the end keeps the run from settling for a while.
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let bench = only(|define| {
        define
            .run(async |log, cx| {
                let first = cx.ask("first", may("one")).await?;
                let second = cx.ask("second", may("two")).await?;
                Ok(line(format!("{first} {second} {}", log.n)))
            })
            .end()
    });
    let input = Log::update().n(7);
    let waiting = interrupted(bench.agent.run(input, ()).await.unwrap());
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let probe = bench.probe.clone();
    let blocks = harness::observe::from_fn(move |event| {
        if matches!(event.kind, harness::observe::EventKind::Settled { .. }) {
            probe.open("settling reached");
            let _ = blocked.lock().unwrap().recv();
        }
    });
    let run = bench.agent.resume(&waiting, answers, ()).observe(blocks);
    let run = tokio::spawn(run.into_future());
    bench.probe.reached("settling").await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    drop(release);
    let again = interrupted(resume_at_rest(&bench, &waiting).await);
    assert_eq!(again.questions[0].key.as_deref(), Some("second"));
    let answers = again.pending::<May>().unwrap().answer(false);
    let out = bench.agent.resume(&again, answers, ()).await.unwrap();
    assert_eq!(ended(out).state.lines, ["true false 7"]);
}

/// An observer that keeps its run from settling until `release` is dropped.
fn settling(probe: &Probe) -> (std::sync::mpsc::Sender<()>, impl harness::observe::Observer) {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let (blocked, probe) = (std::sync::Mutex::new(blocked), probe.clone());
    let observer = harness::observe::from_fn(move |event| {
        if matches!(event.kind, harness::observe::EventKind::Settled { .. }) {
            probe.open("settling reached");
            let _ = blocked.lock().unwrap().recv();
        }
    });
    (release, observer)
}

#[tokio::test]
async fn a_session_that_ended_unheard_is_not_run_again() {
    for handle in [false, true] {
        let bench = only(|define| {
            define
                .run(async |_, cx| {
                    cx.ask("k", may("go")).await?;
                    cx.probe.hit("worked");
                    Ok(line("done"))
                })
                .end()
        });
        let waiting = interrupted(bench.run().await);
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let (release, settles) = settling(&bench.probe);
        let request = bench.agent.resume(&waiting, answers, ()).observe(settles);
        if handle {
            let mut run = request.start();
            let mut events = run.events();
            bench.probe.reached("settling").await;
            drop(run);
            drop(release);
            // The stream ends when the run has settled.
            while events.next().await.is_some() {}
        } else {
            let run = tokio::spawn(request.into_future());
            bench.probe.reached("settling").await;
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
            drop(release);
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let refused = bench.agent.resume(&waiting, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_not_at_rest(), "{refused}");
        assert_eq!(bench.probe.count("worked"), 1);
    }
}

#[tokio::test]
async fn a_run_that_settled_unheard_gives_its_session_back() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let first = cx.ask("first", may("one")).await?;
                let second = cx.ask("second", may("two")).await?;
                Ok(line(format!("{first} {second}")))
            })
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let mut run = bench.agent.resume(&waiting, answers, ()).start();
    let mut events = run.events();
    while events.next().await.is_some() {}
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    drop(run);
    let again = interrupted(bench.agent.resume(&waiting, Answers::none(), ()).await.unwrap());
    let answers = again.pending::<May>().unwrap().answer(false);
    let out = bench.agent.resume(&again, answers, ()).await.unwrap();
    assert_eq!(ended(out).state.lines, ["true false"]);
}

#[tokio::test]
async fn tasks_of_a_dropped_step_end_before_its_effect_does() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let probe = cx.probe.clone();
                cx.spawn(async move {
                    let _ended = OnDrop(probe.clone(), "task ended");
                    probe.open("task reached");
                    pending::<()>().await;
                });
                let effect = cx.clone();
                let paid = async move || {
                    effect.probe.meet("paying").await;
                    Ok(())
                };
                cx.once("pay", paid).await?;
                Ok(line("never"))
            })
            .end()
    });
    let run = tokio::spawn(bench.agent.run(Log::update(), ()).into_future());
    bench.probe.reached("paying").await;
    bench.probe.reached("task").await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    while bench.probe.count("task ended") == 0 {
        tokio::task::yield_now().await;
    }
    bench.probe.open("paying");
}
