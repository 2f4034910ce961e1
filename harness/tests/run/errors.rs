//! Failures: retries, back-off, time-outs, error routes.

use std::time::Duration;

use harness::llm::scripted::fail;
use harness::llm::{Advice, LlmError, LlmErrorKind, Scripted};
use tokio::time::Instant;

use crate::common::*;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_is_tried_again_after_exactly_its_back_off() {
    let retry = Retry::exponential().first(secs(1)).longest(secs(4)).times(4).without_jitter();
    let bench = only(move |define| {
        define
            .run(async |_, cx| {
                cx.probe.hit("try");
                if cx.attempt() < 5 {
                    Err(Oops("not yet"))?
                }
                Ok(line(format!("attempt {} of {}", cx.attempt(), cx.position())))
            })
            .retry(retry)
            .end()
    });
    let began = Instant::now();
    let ended = ended(bench.run().await);
    assert_eq!(began.elapsed(), secs(1 + 2 + 4 + 4));
    assert_eq!(ended.state.lines, ["attempt 5 of 1"]);
    assert_eq!(ended.steps, 1, "a retry is no new step");
    assert_eq!(
        bench.log()[..5],
        [
            "run started",
            "Work#1 started",
            "Work#1 failed: not yet; again in 1000 ms",
            "Work#1 (attempt 2) started",
            "Work#1 (attempt 2) failed: not yet; again in 2000 ms",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn retries_are_counted_at_each_position() {
    #[derive(Signal, Clone, Copy)]
    enum Next {
        Again,
        Done,
    }
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                if cx.attempt() <= 2 {
                    Err(Oops("no"))?
                }
                Ok(Log::update().n(1))
            })
            .retry(Retry::every(secs(1)).times(2))
            .route(
                |log| if log.n < 3 { Next::Again } else { Next::Done },
                |next| match next {
                    Next::Again => to(Only::Work),
                    Next::Done => end(),
                },
            )
    });
    let ended = ended(bench.run().await);
    assert_eq!((ended.state.n, ended.steps), (3, 3));
    assert_eq!(bench.seen.started().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn when_no_retry_is_left_the_run_fails_and_can_be_resumed_with_all_retries_again() {
    let bench = only(|define| {
        define
            .run(async |_, cx| match cx.probe.hit("try") {
                1..=5 => Err(Oops("no"))?,
                _ => Ok(line(format!("attempt {}", cx.attempt()))),
            })
            .retry(Retry::every(secs(1)).times(2))
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!(bench.probe.count("try"), 3);
    assert_eq!((out.failure.attempts, out.failure.retryable), (3, true));
    assert_eq!(out.failure.kind, FailureKind::Error);
    assert_eq!(out.state.as_deref(), Some(&Log::default()));
    bench.seen.clear();
    let resumed = bench.agent.resume(&out, Answers::none(), ()).await.unwrap();
    assert_eq!(ended(resumed).state.lines, ["attempt 6"]);
    assert_eq!(bench.log()[..2], ["run resumed", "Work#1 (attempt 4) started"]);
}

#[tokio::test(start_paused = true)]
async fn a_fatal_failure_is_not_tried_again() {
    let bench = only(|define| {
        define
            .run(async |_, _| Err(Oops("never")).fatal())
            .retry(Retry::every(secs(1)).times(9))
            .end()
    });
    let began = Instant::now();
    let out = failed(bench.run().await);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!out.failure.retryable);
    assert_eq!(bench.seen.started(), ["Work"]);
}

#[tokio::test(start_paused = true)]
async fn the_longer_of_back_off_and_advice_counts() {
    #[derive(Debug, thiserror::Error)]
    #[error("busy")]
    struct Busy(#[source] Advice);
    let bench = only(|define| {
        define
            .run(async |_, cx| match cx.attempt() {
                1 => Err(Busy(Advice::retry().after(secs(30))))?,
                2 => Err(Busy(Advice::retry().after(secs(1))))?,
                3 => Err(StepError::retryable("wait").after(secs(20))),
                _ => Ok(line("done")),
            })
            .retry(Retry::every(secs(5)).times(3))
            .end()
    });
    let began = Instant::now();
    ended(bench.run().await);
    assert_eq!(began.elapsed(), secs(30 + 5 + 20));
}

#[tokio::test(start_paused = true)]
async fn a_models_error_says_itself_whether_to_try_again() {
    for (kind, tries) in [(LlmErrorKind::Overloaded, 3), (LlmErrorKind::InvalidRequest, 1)] {
        let model = Scripted::from_fn(move |_| fail(LlmError::new(kind)));
        let bench = only(move |define| {
            let model = model.clone();
            define
                .run(move |_log, cx| {
                    let model = model.clone();
                    async move {
                        let talk = Transcript::from_iter([user("hi")]);
                        cx.llm(&model).complete(&talk, &ToolSet::default()).await?;
                        Ok(line("said"))
                    }
                })
                .retry(Retry::every(secs(1)).times(2))
                .end()
        });
        let out = failed(bench.run().await);
        assert_eq!(bench.seen.started().len(), tries, "{kind:?}");
        assert_eq!(out.failure.retryable, tries > 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_hangs_is_dropped_at_its_time_out_and_tried_again() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let _dropped = OnDrop(cx.probe.clone(), "dropped");
                if cx.attempt() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok(line("done"))
            })
            .timeout(secs(3))
            .retry(Retry::every(secs(1)))
            .end()
    });
    let began = Instant::now();
    assert_eq!(ended(bench.run().await).state.lines, ["done"]);
    assert_eq!(began.elapsed(), secs(4));
    assert_eq!(bench.probe.hits(), ["dropped", "dropped"]);

    let hangs =
        only(|define| define.run(async |_, _| std::future::pending().await).timeout(secs(3)).end());
    let out = failed(hangs.run().await);
    assert_eq!((out.failure.kind, out.failure.retryable), (FailureKind::Timeout, true));
    assert!(out.failure.message.contains("3s"), "{}", out.failure.message);
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Routes {
    Work,
    Own,
    Loops,
}

fn routes(own: bool) -> Bench {
    let harness = Harness::<Ctx, Log>::builder("routes")
        .start(Routes::Work)
        .on_error(Routes::Loops)
        .steps(|define, step| match step {
            Routes::Work => {
                let work = define
                    .run(async |log, cx| match log.note {
                        Some(_) => Ok(line("mended")),
                        None => {
                            cx.probe.hit("try");
                            Err(Oops("broken"))?
                        }
                    })
                    .retry(Retry::every(secs(1)).times(1));
                // Declared either way, so that every step can be reached.
                if own {
                    work.on_error(Routes::Own).end()
                } else {
                    work.at_most(9, Routes::Own).end()
                }
            }
            Routes::Own => define
                .run(async |_, cx| {
                    let failure = cx.failure().ok_or_else(|| StepError::fatal("no failure"))?;
                    let note = format!("{}: {failure} x{}", failure.step, failure.attempts);
                    Ok(line("own").note(Some(note)))
                })
                .then(Routes::Work),
            Routes::Loops => define.run(async |_, _| Ok(line("loop's"))).end(),
        })
        .build()
        .unwrap();
    Bench::of(harness)
}

#[tokio::test(start_paused = true)]
async fn a_steps_error_step_wins_over_the_loops_after_its_retries_and_reads_the_failure() {
    let bench = routes(true);
    let ended = ended(bench.run().await);
    assert_eq!(ended.state.lines, ["own", "mended"]);
    assert_eq!(ended.state.note.as_deref(), Some("Work: broken x2"));
    assert_eq!(ended.steps, 3, "the step that failed for good was entered too");
    assert_eq!(
        bench.log(),
        [
            "run started",
            "Work#1 started",
            "Work#1 failed: broken; again in 1000 ms",
            "Work#1 (attempt 2) started",
            "Work#1 (attempt 2) failed: broken -> Own",
            "Own#2 started",
            "Own#2 committed -> Work",
            "Work#3 started",
            "Work#3 committed -> end",
            "run ended",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_loops_error_step_takes_what_has_no_route_of_its_own() {
    let bench = routes(false);
    assert_eq!(ended(bench.run().await).state.lines, ["loop's"]);
    assert_eq!(bench.seen.started(), ["Work", "Work", "Loops"]);
}

#[tokio::test]
async fn the_failure_is_gone_once_the_error_step_is_left_and_a_failed_update_is_discarded() {
    let bench = two(
        |define| {
            define
                .run(async |log, cx| {
                    assert!(cx.failure().is_none());
                    let _update = line("never");
                    if log.n == 0 {
                        Err(Oops("no"))?
                    }
                    Ok(line("done"))
                })
                .on_error(Two::Second)
                .end()
        },
        |define| {
            define
                .run(async |log, cx| {
                    assert_eq!(log.lines.len(), 0);
                    assert_eq!(cx.failure().unwrap().position.0, 1);
                    Ok(Log::update().n(1))
                })
                .then(Two::First)
        },
    );
    assert_eq!(ended(bench.run().await).state.lines, ["done"]);
}

#[tokio::test]
async fn a_failing_error_step_fails_the_run_and_never_enters_itself() {
    let bench = two_with(
        |it| it.on_error(Two::Second),
        |define| define.run(async |_, _| Err(Oops("first"))?).end(),
        |define| {
            define
                .run(async |_, cx| {
                    cx.probe.hit(cx.failure().map_or("none".into(), |it| it.to_string()));
                    Err(Oops("second"))?
                })
                .end()
        },
    );
    let out = failed(bench.run().await);
    assert_eq!((&*out.failure.step, &*out.failure.message), ("Second", "second"));
    assert_eq!(bench.seen.started(), ["First", "Second"]);
    // It is resumed where it failed, and still knows what it came for.
    failed(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(bench.seen.started(), ["First", "Second", "Second"]);
    assert_eq!(bench.probe.hits(), ["first", "first"]);
}

#[tokio::test]
async fn a_deep_chain_of_sources_comes_through() {
    #[derive(Debug, thiserror::Error)]
    #[error("level {level}")]
    struct Deep {
        level: u32,
        source: Option<Box<Deep>>,
    }
    let bench = only(|define| {
        define
            .run(async |_, _| {
                let leaf = Deep { level: 0, source: None };
                Err((1..=500)
                    .fold(leaf, |inner, level| Deep { level, source: Some(Box::new(inner)) }))?
            })
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!(out.failure.message, "level 500");
    assert_eq!(out.failure.causes[..2], ["level 499", "level 498"]);
    let printed = Outcome::Failed(out).ended().unwrap_err().to_string();
    assert!(printed.contains("level 500 (step `Work`, position 1)"), "{printed}");
    assert!(printed.contains("caused by: level 499"), "{printed}");
}

#[tokio::test]
async fn an_error_step_reads_the_code_of_a_failure() {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Fetch,
        Repair,
    }
    let harness = Harness::<(), Log>::builder("codes")
        .start(Step::Fetch)
        .steps(|define, step| match step {
            Step::Fetch => define
                .run(async |_, _| {
                    Err("the order was deleted").fatal().map_err(|it| it.code("gone"))
                })
                .on_error(Step::Repair)
                .end(),
            Step::Repair => define
                .run(async |_, cx: Cx<()>| {
                    let failure = cx.failure().unwrap();
                    Ok(line(format!("{} {}", failure.code.as_deref().unwrap(), failure.message)))
                })
                .end(),
        })
        .build()
        .unwrap();
    let out = ended(harness.agent("a", ()).run(Log::update(), ()).await.unwrap());
    assert_eq!(out.state.lines, ["gone the order was deleted"]);
}

#[tokio::test]
async fn errors_of_anyhow_are_converted_with_their_causes_and_their_advice() {
    use anyhow::Context as _;

    fn call(kind: LlmErrorKind) -> anyhow::Result<String> {
        Err(LlmError::new(kind)).context("the model failed")
    }
    for (kind, retryable) in [(LlmErrorKind::Overloaded, true), (LlmErrorKind::Auth, false)] {
        let bench =
            only(move |define| define.run(move |_, _| async move { Ok(line(call(kind)?)) }).end());
        let failed = failed(bench.run().await);
        assert_eq!(failed.failure.message, "the model failed");
        assert!(!failed.failure.causes.is_empty());
        assert_eq!(failed.failure.retryable, retryable);
    }
}
