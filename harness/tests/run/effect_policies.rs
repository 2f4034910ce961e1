//! Effects that happen at most once, and what becomes of those in doubt.

use std::time::Duration;

use harness::question::{Doubt, EffectInDoubt};
use harness::step::{InDoubt, Once};

use crate::common::*;

/// An effect that fails the first `n` times it runs, and counts from there.
fn failing(cx: &Cx<Ctx>, n: usize) -> impl AsyncFnOnceUsize {
    let probe = cx.probe.clone();
    move || {
        Box::pin(async move {
            match probe.hit("paid") {
                tried if tried <= n => Err(Oops("the line broke"))?,
                tried => Ok(tried),
            }
        })
    }
}

type Boxed<T> = futures_util::future::BoxFuture<'static, Result<T, StepError>>;

trait AsyncFnOnceUsize: FnOnce() -> Boxed<usize> + Send + 'static {}
impl<F: FnOnce() -> Boxed<usize> + Send + 'static> AsyncFnOnceUsize for F {}

/// One step with one effect, which is retried.
macro_rules! pays {
    ($fails:expr, |$cx:ident, $once:ident| $policy:expr) => {
        only(|define| {
            define
                .run(async |_, $cx| {
                    let $once: Once<usize, _> = $cx.once("pay", failing(&$cx, $fails));
                    let n = $policy.await?;
                    Ok(line(format!("{n} in attempt {}", $cx.attempt())))
                })
                .retry(Retry::every(Duration::ZERO).times(1))
                .end()
        })
    };
}

#[tokio::test]
async fn an_effect_that_happens_at_most_once_is_not_tried_again() {
    let bench = pays!(1, |cx, once| once.at_most_once());
    let out = failed(bench.run().await);
    assert_eq!((out.failure.kind, out.failure.attempts), (FailureKind::InDoubt, 2));
    assert!(!out.failure.retryable);
    let op = format!("effect `pay` of {}/", out.session);
    assert!(out.failure.message.contains(&op), "{}", out.failure);
    assert_eq!(bench.probe.count("paid"), 1);
    // Nor does it run when the session is resumed.
    let out = failed(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(out.failure.kind, FailureKind::InDoubt);
    assert_eq!(bench.probe.count("paid"), 1);
}

#[tokio::test]
async fn one_that_succeeds_is_recorded_as_any_other() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let n = cx.once("pay", failing(&cx, 0)).at_most_once().await?;
                if cx.attempt() == 1 {
                    Err(Oops("after the effect"))?
                }
                Ok(line(n.to_string()))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["1"]);
}

#[tokio::test]
async fn a_panic_leaves_its_intent() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let probe = cx.probe.clone();
                let effect = async move || match probe.hit("paid") {
                    1 => panic!("broke"),
                    n => Ok(n),
                };
                cx.once("pay", effect).at_most_once().await?;
                Ok(line("never"))
            })
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!(out.failure.kind, FailureKind::Panic);
    let out = failed(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(out.failure.kind, FailureKind::InDoubt);
    assert_eq!(bench.probe.count("paid"), 1);
}

#[tokio::test]
async fn an_effect_in_doubt_may_be_run_again() {
    let bench = pays!(1, |cx, once| once.in_doubt(InDoubt::Retry));
    assert_eq!(ended(bench.run().await).state.lines, ["2 in attempt 2"]);
}

#[tokio::test]
async fn a_probe_that_finds_it_gives_the_result_and_records_it() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let found = cx.probe.clone();
                let n = cx
                    .once("pay", failing(&cx, 9))
                    .probe(async move || {
                        found.hit("looked");
                        Ok(Some(17))
                    })
                    .await?;
                if cx.attempt() < 4 {
                    Err(Oops("after the effect"))?
                }
                Ok(line(n.to_string()))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["17"]);
    assert_eq!(bench.probe.hits(), ["paid", "looked"]);
}

#[tokio::test]
async fn a_probe_that_finds_nothing_runs_it_and_one_that_fails_does_not() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let look = cx.probe.clone();
                let n = cx
                    .once("pay", failing(&cx, 1))
                    .probe(async move || match look.hit("looked") {
                        1 => Err(Oops("cannot look"))?,
                        _ => Ok(None),
                    })
                    .await?;
                Ok(line(n.to_string()))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["2"]);
    assert_eq!(bench.probe.hits(), ["paid", "looked", "looked", "paid"]);
}

#[tokio::test]
async fn a_person_who_says_repeat_is_asked_again_about_the_next_doubt() {
    let bench = pays!(2, |cx, once| once.in_doubt(InDoubt::Ask));
    let out = interrupted(bench.run().await);
    let asked = out.pending::<EffectInDoubt>().unwrap();
    assert_eq!((&*asked.question.key, &*asked.question.step), ("pay", "Work"));
    let op = &asked.question.op_id;
    assert!(op.starts_with(out.session.as_str()) && op.ends_with("/1"), "{op}");
    let first = asked.id.clone();
    // The answer lets it run once more, and it fails again: a third run needs another answer.
    let answer = asked.answer(Doubt::Repeat);
    let out = interrupted(bench.agent.resume(&out, answer, ()).await.unwrap());
    assert_eq!(bench.probe.count("paid"), 2);
    let asked = out.pending::<EffectInDoubt>().unwrap();
    assert_ne!(asked.id, first);
    let answer = asked.answer(Doubt::Repeat);
    let out = ended(bench.agent.resume(&out, answer, ()).await.unwrap());
    assert_eq!(bench.probe.count("paid"), 3);
    assert!(out.state.lines[0].starts_with("3 in attempt"), "{:?}", out.state.lines);
}

#[tokio::test]
async fn a_person_may_give_the_result_or_let_it_fail() {
    let bench = pays!(9, |cx, once| once.in_doubt(InDoubt::Ask));
    let out = interrupted(bench.run().await);
    let answer = out.pending::<EffectInDoubt>().unwrap().answer(Doubt::Fail);
    let out = failed(bench.agent.resume(&out, answer, ()).await.unwrap());
    assert_eq!(out.failure.kind, FailureKind::InDoubt);
    // A session that is resumed after that asks again.
    let out = interrupted(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    let ill = Doubt::Done { result: "seven".into() };
    let answer = out.pending::<EffectInDoubt>().unwrap().answer(ill);
    let out = failed(bench.agent.resume(&out, answer, ()).await.unwrap());
    assert!(out.failure.message.contains("failed to decode"), "{}", out.failure);
    let out = interrupted(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    let asked = out.pending::<EffectInDoubt>().unwrap();
    let out = bench.agent.resume(&out, asked.answer(Doubt::Done { result: 7.into() }), ());
    let out = ended(out.await.unwrap());
    assert!(out.state.lines[0].starts_with("7 in attempt"), "{:?}", out.state.lines);
    assert_eq!(bench.probe.count("paid"), 1);
}

#[tokio::test]
async fn an_intent_of_the_session_outlives_its_position() {
    let pay = |define: Def<Two>| {
        define.run(async |_, cx| {
            let n = cx.once_per_session("pay", failing(&cx, 1)).at_most_once().await?;
            Ok(line(n.to_string()))
        })
    };
    let bench = two(|define| pay(define).on_error(Two::Second).end(), |define| pay(define).end());
    assert_eq!(failed(bench.run().await).failure.kind, FailureKind::InDoubt);
    assert_eq!(bench.probe.count("paid"), 1);
}

#[tokio::test]
async fn an_intent_ends_with_its_position() {
    let pay = |define: Def<Two>| {
        define.run(async |_, cx| {
            let n = cx.once("pay", failing(&cx, 1)).at_most_once().await?;
            Ok(line(n.to_string()))
        })
    };
    let bench = two(|define| pay(define).on_error(Two::Second).end(), |define| pay(define).end());
    assert_eq!(ended(bench.run().await).state.lines, ["2"]);
}

#[tokio::test]
async fn a_result_that_json_cannot_hold_is_refused() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                let ratio = cx.once("ratio", async || Ok(f64::NAN)).await?;
                Ok(line(ratio.to_string()))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    let out = failed(bench.run().await);
    assert_eq!((out.failure.kind, out.failure.attempts), (FailureKind::Encode, 1));
    assert!(out.failure.message.contains("`ratio`"), "{}", out.failure);
}

#[tokio::test]
async fn an_effect_that_says_it_did_not_happen_is_not_in_doubt() {
    let bench = only(|define| {
        define
            .run(async |_, cx: Cx<Ctx>| {
                let probe = cx.probe.clone();
                let pay = async move || match probe.hit("pay") {
                    1 => Err("503").retryable().map_err(StepError::not_done),
                    _ => Ok("paid".to_owned()),
                };
                Ok(line(cx.once("pay", pay).at_most_once().await?))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["paid"]);
    assert_eq!(bench.probe.count("pay"), 2);
    let failed = bench.log().into_iter().find(|line| line.contains("failed")).unwrap();
    assert!(failed.contains("503"), "{failed}");
}
