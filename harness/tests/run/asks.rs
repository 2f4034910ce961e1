//! Questions in the middle of a step.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;

use crate::common::*;

/// Answers the open questions with this key, one each.
fn answer(waiting: &harness::Interrupted<Log>, key: &str, value: serde_json::Value) -> Answers {
    let question = waiting.questions.iter().find(|it| it.key.as_deref() == Some(key));
    Answers::json(question.unwrap().id.clone(), value)
}

#[tokio::test]
async fn two_open_questions_are_answered_in_any_order_one_at_a_time() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let bench = only(|define| {
            define
                .run(async |_, cx| {
                    cx.probe.hit("entered");
                    let (a, b) = tokio::join!(cx.ask("a", may("a")), cx.ask("b", Name {}));
                    Ok(line(format!("{} {}", a?, b?)))
                })
                .end()
        });
        let waiting = interrupted(bench.run().await);
        let keys: Vec<_> = waiting.questions.iter().map(|it| it.key.clone().unwrap()).collect();
        assert_eq!(keys, ["a", "b"]);
        let several = waiting.pending::<May>().unwrap_err();
        assert!(several.to_string().contains("`may`, `name`"), "{several}");
        let value = |key| if key == "a" { json!(true) } else { json!("bo") };
        let part = answer(&waiting, first, value(first));
        let left = interrupted(bench.agent.resume(&waiting, part.clone(), ()).await.unwrap());
        assert_eq!(left.questions.len(), 1);
        assert_eq!(left.questions[0].key.as_deref(), Some(second));
        assert_eq!(bench.probe.count("entered"), 1, "the step waits for both");
        // The answer given stays: the same again is fine, another is not.
        let other = if first == "a" { json!(false) } else { json!("al") };
        let id = waiting.questions.iter().find(|it| it.key.as_deref() == Some(first)).unwrap();
        let conflict = Answers::json(id.id.clone(), other);
        let refused = bench.agent.resume(&left, conflict, ()).await.unwrap_err();
        assert!(refused.answer_error().is_some_and(|it| it.is_conflict()), "{refused}");
        let rest = part.and(answer(&left, second, value(second)));
        let out = bench.agent.resume(&left, rest, ()).await.unwrap();
        assert_eq!(ended(out).state.lines, ["true bo"]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_replaces_an_answer() {
    async fn denied(cx: &Cx<Ctx>) -> StepResult<Log> {
        cx.probe.hit("denied");
        Ok(line("denied"))
    }
    type Body = for<'a> fn(&'a Cx<Ctx>) -> futures_util::future::BoxFuture<'a, StepResult<Log>>;
    let ways: [(&str, Body); 5] = [
        ("timeout", |cx| {
            Box::pin(async {
                let wait = Duration::from_secs(1);
                match tokio::time::timeout(wait, cx.ask("k", may("go"))).await {
                    Ok(said) => Ok(line(said?.to_string())),
                    Err(_) => denied(cx).await,
                }
            })
        }),
        ("timeout of nothing", |cx| {
            Box::pin(async {
                match tokio::time::timeout(Duration::ZERO, cx.ask("k", may("go"))).await {
                    Ok(said) => Ok(line(said?.to_string())),
                    Err(_) => {
                        tokio::task::yield_now().await;
                        denied(cx).await
                    }
                }
            })
        }),
        ("now_or_never", |cx| {
            Box::pin(async {
                match cx.ask("k", may("go")).now_or_never() {
                    Some(said) => Ok(line(said?.to_string())),
                    None => Ok(line("denied")),
                }
            })
        }),
        ("unwrap_or", |cx| {
            Box::pin(async {
                let said = cx.ask("k", may("go")).now_or_never().and_then(Result::ok);
                Ok(line(said.unwrap_or(false).to_string()))
            })
        }),
        ("select", |cx| {
            Box::pin(async {
                tokio::select! {
                    biased;
                    said = cx.ask("k", may("go")) => Ok(line(said?.to_string())),
                    () = std::future::ready(()) => Ok(line("denied")),
                }
            })
        }),
    ];
    for (name, body) in ways {
        let bench =
            only(move |define| define.run(move |_log, cx| async move { body(&cx).await }).end());
        let waiting = interrupted(bench.run().await);
        assert!(waiting.state.lines.is_empty(), "{name}");
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
        assert_eq!(out.state.lines, ["true"], "{name}");
        assert_eq!(bench.probe.count("denied"), 0, "{name}");
    }
}

#[tokio::test]
async fn a_failure_or_a_panic_beside_a_question_does_not_replace_the_answer() {
    for panics in [false, true] {
        let bench = only(move |define| {
            define
                .run(move |_log, cx| async move {
                    match cx.ask("k", may("go")).now_or_never() {
                        Some(said) => Ok(line(said?.to_string())),
                        None if panics => panic!("no answer"),
                        None => Err(Oops("no answer")).fatal(),
                    }
                })
                .end()
        });
        let waiting = interrupted(bench.run().await);
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
        assert_eq!(out.state.lines, ["true"]);
    }
}

#[tokio::test]
async fn an_effect_beside_a_question_is_finished_and_runs_exactly_once() {
    for ask_first in [false, true] {
        let bench = only(move |define| {
            define
                .run(move |_log, cx| async move {
                    let effect = cx.clone();
                    let slow = cx.once("slow", async move || {
                        effect.probe.meet("slow").await;
                        Ok(effect.probe.hit("slow"))
                    });
                    let ask = cx.ask("k", may("go"));
                    let (slow, said) = if ask_first {
                        let (said, slow) = tokio::join!(ask, slow);
                        (slow, said)
                    } else {
                        tokio::join!(slow, ask)
                    };
                    Ok(line(format!("{} {}", slow?, said?)))
                })
                .end()
        });
        let run = bench.agent.run(Log::update(), ()).start();
        bench.probe.reached("slow").await;
        bench.probe.open("slow");
        let waiting = interrupted(run.await.unwrap());
        assert_eq!(bench.probe.hits(), ["slow"]);
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
        assert_eq!(out.state.lines, ["1 true"]);
        assert_eq!(bench.probe.hits(), ["slow"]);
    }
}

#[tokio::test]
async fn a_key_asked_twice_in_one_attempt_is_fatal() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let (a, b) = tokio::join!(cx.ask("k", may("a")), cx.ask("k", may("b")));
                Ok(line(format!("{} {}", a?, b?)))
            })
            .retry(Retry::exponential())
            .end()
    });
    // The first is asked and waits; with its answer the step reaches the second.
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = failed(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert!(!out.failure.retryable);
    assert!(out.failure.message.contains("`k` is used twice"), "{}", out.failure.message);
}

#[tokio::test]
async fn a_question_whose_words_change_after_its_answer_fails_typed() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let draft = if cx.attempt() == 1 { "one" } else { "two" };
                let said = cx.ask("k", may(draft)).await?;
                Ok(line(format!("{draft} {said}")))
            })
            .retry(Retry::every(Duration::ZERO).times(9))
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = failed(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.failure.kind, FailureKind::QuestionChanged);
    assert_eq!(
        out.failure.message,
        "the question `k` is not the one that was answered: {\"what\":\"one\"} was, and the step \
         now asks {\"what\":\"two\"} (make its words in `cx.once(..)`, so that they stay the same, or \
         ask under another key)"
    );
    assert_eq!(bench.log().iter().filter(|line| line.contains("again in")).count(), 0);
}

#[tokio::test]
async fn a_question_without_an_answer_may_change() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let what = if cx.attempt() == 1 { "one" } else { "two" };
                let asked = cx.ask("k", may(what));
                if cx.attempt() == 1 {
                    Err(Oops("before it is asked"))?
                }
                Ok(line(format!("{what} {}", asked.await?)))
            })
            .retry(Retry::every(Duration::ZERO).times(9))
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let pending = waiting.pending::<May>().unwrap();
    assert_eq!(pending.question.what, "two");
    let out = ended(bench.agent.resume(&waiting, pending.answer(true), ()).await.unwrap());
    assert_eq!(out.state.lines, ["two true"]);
}

#[tokio::test]
async fn a_task_of_the_step_may_ask_for_it() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let asker = cx.clone();
                let said = cx.spawn(async move { asker.ask("k", may("go")).await });
                Ok(line(said.await??.to_string()))
            })
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["true"]);
}

#[tokio::test]
async fn answers_apply_to_their_position_only_and_earlier_ones_are_returned() {
    #[derive(Signal, Clone, Copy)]
    enum Next {
        Again,
        Done,
    }
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let a = cx.ask("a", may("same")).await?;
                let b = cx.ask("b", may("same")).await?;
                Ok(line(format!("{a} {b}")).n(1))
            })
            .route(
                |log| if log.n < 2 { Next::Again } else { Next::Done },
                |next| match next {
                    Next::Again => to(Only::Work),
                    Next::Done => end(),
                },
            )
    });
    let mut outcome = bench.run().await;
    let mut ids = Vec::new();
    while let Outcome::Interrupted(waiting) = outcome {
        let question = &waiting.questions[0];
        ids.push(question.id.clone());
        let answers = Answers::json(question.id.clone(), json!(ids.len() % 2 == 1));
        outcome = bench.agent.resume(&waiting, answers, ()).await.unwrap();
    }
    assert_eq!(ended(outcome).state.lines, ["true false", "true false"]);
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (4, 4));
}

#[tokio::test]
async fn the_answer_half_of_a_gate_can_ask() {
    let bench = only(|define| {
        define
            .ask(async |_, cx| Ok(may(cx.ask("first", Name {}).await?)))
            .answer(async |_, cx, said| {
                let last = cx.ask("last", Name {}).await?;
                Ok(line(format!("{} {} {last}", said.question.what, said.answer)))
            })
            .end()
    });
    let first = interrupted(bench.run().await);
    let answers = first.pending::<Name>().unwrap().answer("ann".into());
    let gate = interrupted(bench.agent.resume(&first, answers, ()).await.unwrap());
    let answers = gate.pending::<May>().unwrap().answer(true);
    let last = interrupted(bench.agent.resume(&gate, answers, ()).await.unwrap());
    let answers = last.pending::<Name>().unwrap().answer("bo".into());
    let out = ended(bench.agent.resume(&last, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["ann true bo"]);
}

#[tokio::test]
async fn an_answer_says_who_gave_it_and_when() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let said = cx.ask("k", may("go")).answered().await?;
                let by = said.by.unwrap_or_default();
                Ok(line(format!("{} {} {by} {}", said.question.what, said.answer, said.at.0 > 0)))
            })
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true).by("sam");
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["go true sam true"]);
}

#[tokio::test]
async fn an_answer_needs_no_question_that_can_be_read_back() {
    #[derive(Serialize)]
    struct WriteOnly {
        what: String,
    }
    impl<'de> Deserialize<'de> for WriteOnly {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(serde::de::Error::custom("it is only written"))
        }
    }
    impl harness::Question for WriteOnly {
        type Answer = bool;
        const NAME: &'static str = "write_only";
    }
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let said = cx.ask("k", WriteOnly { what: "go".into() }).await?;
                Ok(line(said.to_string()))
            })
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = Answers::json(waiting.questions[0].id.clone(), true.into());
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["true"]);
}
