//! `once` and `once_per_session`.

use std::collections::HashSet;
use std::time::Duration;

use crate::common::*;

#[derive(Signal, Clone, Copy)]
enum Next {
    Again,
    Done,
}

/// Five visits of one step.
fn visits(
    body: impl Fn(Cx<Ctx>) -> futures_util::future::BoxFuture<'static, StepResult<Log>>
    + Send
    + Sync
    + Clone
    + 'static,
) -> Bench {
    only(move |define| {
        let body = body.clone();
        define.run(move |_log, cx| body(cx)).retry(Retry::every(Duration::ZERO)).route(
            |log| if log.n < 5 { Next::Again } else { Next::Done },
            |next| match next {
                Next::Again => to(Only::Work),
                Next::Done => end(),
            },
        )
    })
}

#[tokio::test]
async fn every_visit_runs_its_effect_once_under_its_own_op_id() {
    let bench = visits(|cx| {
        Box::pin(async move {
            let effect = cx.clone();
            let key = cx.once("k", async move || {
                effect.probe.hit(effect.op_id().to_string());
                Ok(effect.op_id().to_string())
            });
            let key = key.await?;
            if cx.attempt() == 1 {
                Err(Oops("after the effect"))?
            }
            Ok(line(key).n(1))
        })
    });
    let out = ended(bench.agent.run(Log::update(), ()).session("s").await.unwrap());
    let ops = ["s/1", "s/2", "s/3", "s/4", "s/5"];
    let found: Vec<_> = out.state.lines.iter().map(|line| without_incarnation(line)).collect();
    assert_eq!(found, ops);
    assert_eq!(bench.probe.hits(), out.state.lines, "a retry gets what is recorded");
}

#[tokio::test]
async fn once_per_session_is_wider() {
    let bench = visits(|cx| {
        Box::pin(async move {
            let effect = cx.clone();
            let wide = async move || Ok(effect.probe.hit("wide"));
            let effect = cx.clone();
            let narrow = async move || Ok(effect.probe.hit("narrow"));
            // The same key in both scopes is two effects.
            let wide = cx.once_per_session("k", wide).await?;
            let narrow = cx.once("k", narrow).await?;
            Ok(line(format!("{wide} {narrow}")).n(1))
        })
    });
    let out = ended(bench.run().await);
    assert_eq!(out.state.lines, ["1 1", "1 2", "1 3", "1 4", "1 5"]);
}

#[tokio::test]
async fn a_key_used_twice_in_one_attempt_is_fatal() {
    for session in [false, true] {
        let bench = visits(move |cx| {
            Box::pin(async move {
                for _ in 0..2 {
                    let effect = cx.clone();
                    let effect = async move || Ok(effect.probe.hit("ran"));
                    if session {
                        cx.once_per_session("k", effect).await?;
                    } else {
                        cx.once("k", effect).await?;
                    }
                }
                Ok(line("never"))
            })
        });
        let out = failed(bench.run().await);
        assert!(!out.failure.retryable);
        assert!(out.failure.message.contains("`k` is used twice"), "{}", out.failure.message);
        assert_eq!(bench.probe.count("ran"), 1);
        // So it is when the result is recorded.
        let out = failed(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
        assert!(out.failure.message.contains("`k` is used twice"), "{}", out.failure.message);
        assert_eq!(bench.probe.count("ran"), 1);
    }
}

#[tokio::test]
async fn an_effect_that_fails_is_not_recorded() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                let done = async move || match effect.probe.hit("tried") {
                    1 => Err(Oops("no"))?,
                    n => Ok(n),
                };
                let n: usize = cx.once("k", done).await?;
                Ok(line(n.to_string()))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["2"]);
}

#[tokio::test]
async fn an_effect_that_panics_is_a_fatal_failure_of_its_step_and_not_recorded() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                let done = async move || {
                    let n = effect.probe.hit("tried");
                    assert!(n > 1, "broke");
                    Ok(n)
                };
                let n = cx.once("k", done).await?;
                Ok(line(n.to_string()))
            })
            .retry(Retry::exponential())
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!((out.failure.kind, out.failure.retryable), (FailureKind::Panic, false));
    assert!(out.failure.message.contains("`k` panicked"), "{}", out.failure.message);
    let out = bench.agent.resume(&out, Answers::none(), ()).await.unwrap();
    assert_eq!(ended(out).state.lines, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_waits_for_the_effect_and_the_retry_gets_its_result() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                let slow = async move || {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    Ok(effect.probe.hit("slow"))
                };
                let n = cx.once("slow", slow).await?;
                Ok(line(format!("{n} in attempt {}", cx.attempt())))
            })
            .timeout(Duration::from_secs(1))
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    let began = tokio::time::Instant::now();
    assert_eq!(ended(bench.run().await).state.lines, ["1 in attempt 2"]);
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test]
async fn an_effect_that_is_not_awaited_is_finished_before_the_step_is() {
    let bench = two(
        |define| {
            define
                .run(async |_, cx| {
                    let effect = cx.clone();
                    let slow = cx.once("slow", async move || {
                        tokio::task::yield_now().await;
                        Ok(effect.probe.hit("slow"))
                    });
                    // Begun, then forgotten.
                    assert!(futures_util::FutureExt::now_or_never(slow).is_none());
                    Ok(line("first"))
                })
                .then(Two::Second)
        },
        |define| define.run(async |_, cx| Ok(line(format!("{:?}", cx.probe.hits())))).end(),
    );
    assert_eq!(ended(bench.run().await).state.lines, ["first", r#"["slow"]"#]);
}

#[tokio::test]
async fn a_task_that_outlived_its_step_has_no_effects_and_no_questions() {
    let bench = two(
        |define| {
            define
                .run(async |_, cx| {
                    let left = cx.clone();
                    tokio::spawn(cx.scope(async move {
                        left.probe.meet("left").await;
                        let effect = left.clone();
                        let late = async move || Ok(effect.probe.hit("late effect"));
                        let refused = left.once("k", late).await.unwrap_err();
                        left.probe.hit(refused.to_string());
                        left.probe.open("over reached");
                        left.ask("q", may("late")).await.unwrap();
                        left.probe.hit("answered");
                    }));
                    cx.probe.reached("left").await;
                    Ok(line("first"))
                })
                .then(Two::Second)
        },
        |define| {
            define
                .run(async |_, cx| {
                    cx.probe.open("left");
                    cx.probe.reached("over").await;
                    tokio::task::yield_now().await;
                    let effect = cx.clone();
                    let n = cx.once("k", async move || Ok(effect.probe.hit("effect"))).await?;
                    Ok(line(n.to_string()))
                })
                .end()
        },
    );
    assert_eq!(ended(bench.run().await).state.lines, ["first", "1"]);
    let hits = bench.probe.hits();
    assert_eq!(hits.len(), 2, "{hits:?}");
    assert!(hits[0].contains("`k`") && hits[0].contains("finished step"), "{hits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_left_over_in_a_back_off_does_not_use_up_the_keys_of_the_next_attempt() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let left = cx.clone();
                if cx.attempt() == 1 {
                    tokio::spawn(cx.scope(async move {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        let effect = left.clone();
                        let late = async move || Ok(effect.probe.hit("late"));
                        left.once("k", late).await.unwrap_err();
                    }));
                    Err(Oops("no"))?;
                }
                let effect = cx.clone();
                let n = cx.once("k", async move || Ok(effect.probe.hit("effect"))).await?;
                Ok(line(n.to_string()))
            })
            .retry(Retry::every(Duration::from_secs(5)))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["1"]);
    assert_eq!(bench.probe.hits(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_hold_through_a_failure_for_good_and_a_stop() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let effect = cx.clone();
                let n = cx.once("k", async move || Ok(effect.probe.hit("ran"))).await?;
                match cx.attempt() {
                    1 => Err(Oops("for good")).fatal(),
                    2 => {
                        cx.probe.meet("hang").await;
                        Ok(line("never"))
                    }
                    _ => Ok(line(n.to_string())),
                }
            })
            .end()
    });
    let out = failed(bench.run().await);
    let run = bench.agent.resume(&out, Answers::none(), ()).start();
    bench.probe.reached("hang").await;
    run.cancel();
    let out = stopped(run.await.unwrap());
    let out = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(out.state.lines, ["1"]);
    assert_eq!(bench.probe.hits().into_iter().collect::<HashSet<_>>().len(), 1);
    assert_eq!(bench.probe.count("ran"), 1);
}

#[tokio::test]
async fn what_a_resumed_step_did_not_use_again_ends_with_it_all_the_same() {
    let bench = two(
        |define| {
            define
                .run(async |_, cx| {
                    if cx.probe.hit("First") == 1 {
                        cx.once("k", async || Ok("of the first".to_owned())).await?;
                        return Err(StepError::fatal("once is enough"));
                    }
                    Ok(line("continued without"))
                })
                .then(Two::Second)
        },
        |define| {
            define
                .run(async |_, cx| {
                    let own = cx.once("k", async || Ok("of the second".to_owned())).await?;
                    Ok(line(own))
                })
                .end()
        },
    );
    let failed = failed(bench.run().await);
    let out = ended(bench.agent.resume(&failed, Answers::none(), ()).await.unwrap());
    assert_eq!(out.state.lines, ["continued without", "of the second"]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_hangs_ends_at_its_bound_and_the_step_is_tried_again() {
    let bench = only(|define| {
        define
            .run(async |_, cx: Cx<Ctx>| {
                let (probe, hangs) = (cx.probe.clone(), cx.attempt() == 1);
                let effect = async move || {
                    let _dropped = OnDrop(probe, "dropped");
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    Ok("done".to_owned())
                };
                Ok(line(cx.once("k", effect).within(Duration::from_secs(5)).await?))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    let began = tokio::time::Instant::now();
    assert_eq!(ended(bench.run().await).state.lines, ["done"]);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(bench.probe.count("dropped"), 2);
    let failed = bench.log().into_iter().find(|line| line.contains("failed")).unwrap();
    assert!(failed.contains("the effect `k` took longer than its 5s"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_for_an_effect_no_longer_than_its_bound() {
    let bench = only(|define| {
        define
            .run(async |_, cx: Cx<Ctx>| {
                let probe = cx.probe.clone();
                let hangs = async move || {
                    probe.open("begun");
                    std::future::pending::<()>().await;
                    Ok(())
                };
                cx.once("k", hangs).at_most_once().within(Duration::from_secs(5)).await?;
                Ok(Log::update())
            })
            .end()
    });
    let run = bench.agent.run(Log::update(), ()).start();
    let control = run.control();
    bench.probe.pass("begun").await;
    let began = tokio::time::Instant::now();
    control.cancel();
    let Outcome::Stopped(stopped) = run.await.unwrap() else { panic!("it was cancelled") };
    assert!(stopped.cancelled);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    // It may have happened.
    let failed = failed(bench.agent.resume(&stopped, Answers::none(), ()).await.unwrap());
    assert_eq!(failed.failure.kind, FailureKind::InDoubt);
}
