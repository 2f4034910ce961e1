//! `.finally(..)`: before every end, before no pause.

use std::time::Duration;

use crate::common::*;

async fn clean_up(_: View<Log>, cx: Cx<Ctx>) -> StepResult<Log> {
    let failure = cx.failure().map_or("none".into(), |it| it.message.clone());
    cx.probe.hit(format!("cleaned up after {failure}"));
    Ok(line("cleaned"))
}

fn finally(first: impl Fn(Def<Two>) -> Declared<Two>) -> Bench {
    two_with(|it| it.finally(Two::Second), first, |define| define.run(clean_up).end())
}

#[tokio::test]
async fn it_runs_once_before_the_end_and_keeps_the_signal() {
    #[derive(Signal, Clone, Copy, Debug, PartialEq)]
    enum Next {
        Done,
    }
    let bench = finally(|define| {
        define.run(async |_, _| Ok(line("work"))).route(
            |_| Next::Done,
            |next| match next {
                Next::Done => end(),
            },
        )
    });
    let ended = ended(bench.run().await);
    assert_eq!(ended.state.lines, ["work", "cleaned"]);
    assert_eq!(ended.by::<Next>(), Some(Next::Done));
    assert!(ended.finally_failure.is_none());
    assert_eq!(
        bench.log(),
        [
            "run started",
            "First#1 started",
            "First#1 committed Done -> end",
            "First#1 ended by Done; finally -> Second",
            "Second#2 started",
            "Second#2 committed -> end",
            "run ended by Done",
        ]
    );
}

#[tokio::test]
async fn it_runs_before_a_failure_and_reads_it_and_the_session_resumes_where_it_failed() {
    let bench = finally(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                cx.once("paid", async move || Ok(effect.probe.hit("paid"))).await?;
                if cx.attempt() == 1 {
                    Err(Oops("broken"))?
                }
                Ok(line(format!("attempt {} at {}", cx.attempt(), cx.position())))
            })
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!((&*out.failure.message, &*out.failure.step), ("broken", "First"));
    assert_eq!(out.state.as_ref().unwrap().lines, ["cleaned"]);
    assert!(out.finally_failure.is_none());
    let resumed = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(resumed.state.lines, ["cleaned", "attempt 2 at 1", "cleaned"]);
    let started: Vec<_> = bench.log().into_iter().filter(|it| it.ends_with("started")).collect();
    let first = ["run started", "First#1 started", "Second#2 started"];
    assert_eq!(started[..3], first);
    let resumed = ["First#1 (attempt 2) started", "Second#3 started"];
    assert_eq!(started[3..], resumed, "no position is given twice");
    assert_eq!(bench.probe.hits(), ["paid", "cleaned up after broken", "cleaned up after none"]);
}

#[tokio::test]
async fn it_runs_before_a_turn_is_exhausted() {
    let bench = two_with(
        |it| it.finally(Two::Second).budget(Budget::steps(2)),
        |define| define.run(async |_, _| Ok(line("work"))).at_most(5, Two::Second).then(Two::First),
        |define| define.run(clean_up).end(),
    );
    let out = exhausted(bench.run().await);
    assert_eq!(out.limit, Limit::Steps);
    assert_eq!(out.state.lines, ["work", "work", "cleaned"]);
    let more = bench.agent.resume(&out, Answers::none(), ()).budget(Budget::steps(4));
    let out = exhausted(more.await.unwrap());
    assert_eq!(out.state.lines, ["work", "work", "cleaned", "work", "work", "cleaned"]);
}

#[tokio::test]
async fn it_does_not_run_before_a_pause() {
    let asks = finally(|define| {
        define.run(async |_, cx| Ok(line(cx.ask("k", may("go")).await?.to_string()))).end()
    });
    let waiting = interrupted(asks.run().await);
    assert_eq!(asks.seen.started(), ["First"]);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let ended = ended(asks.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(ended.state.lines, ["true", "cleaned"]);

    let hangs = || {
        finally(|define| {
            define
                .run(async |_, cx| {
                    cx.probe.meet("inside").await;
                    Ok(line("done"))
                })
                .at_most(2, Two::Second)
                .then(Two::First)
        })
    };
    for cancel in [false, true] {
        let bench = hangs();
        let run = bench.agent.run(Log::update(), ()).start();
        bench.probe.reached("inside").await;
        if cancel {
            run.cancel()
        } else {
            run.stop()
        }
        bench.probe.open("inside");
        assert_eq!(stopped(run.await.unwrap()).cancelled, cancel);
        assert_eq!(bench.seen.started(), ["First"]);
    }
    let bench = hangs();
    let run = tokio::spawn(bench.agent.run(Log::update(), ()).into_future());
    bench.probe.reached("inside").await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    assert!(bench.probe.hits().is_empty());
}

#[tokio::test]
async fn its_failure_is_attached_and_does_not_replace_the_outcome() {
    let fails = |define: Def<Two>| define.run(async |_, _| Err(Oops("mop broke")).fatal()).end();
    let bench = two_with(
        |it| it.finally(Two::Second),
        |define| define.run(async |_, _| Ok(line("work"))).end(),
        fails,
    );
    let out = ended(bench.run().await);
    assert_eq!(out.state.lines, ["work"]);
    assert_eq!(out.finally_failure.unwrap().message, "mop broke");

    let bench = two_with(
        |it| it.finally(Two::Second).on_error(Two::First),
        |define| define.run(async |_, _| Err(Oops("broken")).fatal()).end(),
        fails,
    );
    let out = failed(bench.run().await);
    assert_eq!(out.failure.message, "broken");
    assert_eq!(out.finally_failure.unwrap().message, "mop broke");
    assert_eq!(bench.seen.started(), ["First", "Second"]);
}

#[tokio::test]
async fn a_question_in_it_is_a_failure_of_it() {
    let bench = two_with(
        |it| it.finally(Two::Second),
        |define| define.run(async |_, _| Ok(line("work"))).end(),
        |define| {
            define.run(async |_, cx| Ok(line(cx.ask("k", may("mop")).await?.to_string()))).end()
        },
    );
    let out = ended(bench.run().await);
    assert_eq!(out.state.lines, ["work"]);
    assert_eq!(out.finally_failure.unwrap().kind, FailureKind::AskInFinally);
}

#[tokio::test(start_paused = true)]
async fn it_has_a_budget_of_its_own() {
    let bench = two_with(
        |it| it.finally(Two::Second).budget(Budget::steps(1)),
        |define| define.run(async |_, _| Ok(line("work"))).end(),
        |define| {
            define
                .run(async |_, _| Ok(Log::update().n(1)))
                .at_most(100_000, Two::First)
                .then(Two::Second)
        },
    );
    let out = ended(bench.run().await);
    assert_eq!(out.state.n, 100);
    assert_eq!(out.finally_failure.unwrap().kind, FailureKind::FinallyBudget);

    let hangs = two_with(
        |it| it.finally(Two::Second),
        |define| define.run(async |_, _| Ok(line("work"))).end(),
        |define| define.run(async |_, _| std::future::pending().await).end(),
    );
    let began = tokio::time::Instant::now();
    let out = ended(hangs.run().await);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    assert_eq!(out.finally_failure.unwrap().kind, FailureKind::FinallyBudget);
}

#[tokio::test(start_paused = true)]
async fn its_time_is_its_own_however_long_the_turn_took() {
    let bench = two_with(
        |it| it.finally(Two::Second),
        |define| {
            define
                .run(async |_, _| {
                    tokio::time::sleep(Duration::from_secs(600)).await;
                    Ok(line("work"))
                })
                .end()
        },
        |define| {
            define
                .run(async |_, _| {
                    tokio::time::sleep(Duration::from_secs(50)).await;
                    Ok(line("cleaned"))
                })
                .end()
        },
    );
    let out = ended(bench.run().await);
    assert!(out.finally_failure.is_none(), "{:?}", out.finally_failure);
    assert_eq!(out.state.lines, ["work", "cleaned"]);
}

#[tokio::test]
async fn its_effects_are_not_those_of_the_step_the_session_goes_back_to() {
    let bench = two_with(
        |it| it.finally(Two::Second),
        |define| {
            define
                .run(async |_, cx| {
                    if cx.attempt() == 1 {
                        Err(Oops("broken")).fatal()?
                    }
                    let effect = cx.clone();
                    let n = cx.once("k", async move || Ok(effect.probe.hit("first"))).await?;
                    Ok(line(format!("first {n}")))
                })
                .end()
        },
        |define| {
            define
                .run(async |_, cx| {
                    cx.once("k", async || Ok(99)).await?;
                    Err(Oops("mop broke")).fatal()
                })
                .end()
        },
    );
    let out = failed(bench.run().await);
    let out = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(out.state.lines, ["first 1"]);
}

#[tokio::test]
async fn a_run_stopped_in_it_resumes_in_it() {
    let bench = two_with(
        |it| it.finally(Two::Second),
        |define| define.run(async |_, _| Err(Oops("broken")).fatal()).end(),
        |define| {
            define
                .run(async |_, cx| {
                    cx.probe.meet("mop").await;
                    Ok(Log::update().n(1))
                })
                .at_most(2, Two::First)
                .then(Two::Second)
        },
    );
    let run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("mop").await;
    run.cancel();
    let out = stopped(run.await.unwrap());
    assert_eq!(bench.seen.started(), ["First", "Second"]);
    bench.probe.open("mop");
    bench.probe.open("mop");
    let resumed = failed(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(resumed.failure.message, "broken");
    assert_eq!(resumed.state.unwrap().n, 2);
    assert_eq!(bench.seen.started()[..4], ["First", "Second", "Second", "Second"]);
}
