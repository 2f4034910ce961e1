//! The budget of a turn.

use std::time::Duration;

use harness::llm::{Spend, Usage};
use harness::observe;
use tokio::time::Instant;

use crate::common::*;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A step that is entered again and again.
fn rounds(
    budget: Option<Budget>,
    body: impl Fn(Cx<Ctx>) -> futures_util::future::BoxFuture<'static, StepResult<Log>>
    + Send
    + Sync
    + Clone
    + 'static,
) -> Bench {
    two_with(
        |it| match budget {
            Some(budget) => it.budget(budget),
            None => it,
        },
        move |define| {
            let body = body.clone();
            define.run(move |_log, cx| body(cx)).at_most(1_000_000, Two::Second).then(Two::First)
        },
        |define| define.run(async |_, _| Ok(line("never"))).end(),
    )
}

fn count(budget: Option<Budget>) -> Bench {
    rounds(budget, |_| Box::pin(async { Ok(Log::update().n(1)) }))
}

#[tokio::test]
async fn the_default_budget_is_a_thousand_steps() {
    let out = exhausted(count(None).run().await);
    assert_eq!((out.limit, out.state.n), (Limit::Steps, 1_000));
}

#[tokio::test]
async fn steps_are_counted_exactly_and_over_all_runs_of_the_turn() {
    let bench = count(Some(Budget::steps(7)));
    let out = exhausted(bench.run().await);
    assert_eq!(out.state.n, 7);
    let resume = |out: &harness::Exhausted<Log>, budget: Option<u64>| {
        let request = bench.agent.resume(out, Answers::none(), ());
        match budget {
            Some(steps) => request.budget(Budget::steps(steps)),
            None => request,
        }
    };
    let out = exhausted(resume(&out, None).await.unwrap());
    assert_eq!(out.state.n, 7, "the same budget is used up");
    let out = exhausted(resume(&out, Some(10)).await.unwrap());
    assert_eq!(out.state.n, 10, "what was spent before still counts");
    let out = exhausted(resume(&out, Some(3)).await.unwrap());
    assert_eq!(out.state.n, 10);
}

#[tokio::test]
async fn a_step_that_fails_into_its_error_step_was_entered() {
    let bench = two_with(
        |it| it.budget(Budget::steps(5)).on_error(Two::Second),
        |define| define.run(async |_, _| Err(Oops("no")).fatal()).end(),
        |define| define.run(async |_, _| Ok(Log::update().n(1))).then(Two::First),
    );
    assert_eq!(exhausted(bench.run().await).limit, Limit::Steps);
    assert_eq!(bench.seen.started(), ["First", "Second", "First", "Second", "First"]);
}

#[tokio::test]
async fn the_budget_of_a_request_replaces_the_loops() {
    let bench = count(Some(Budget::steps(7)));
    let out = bench.agent.run(Log::update(), ()).budget(Budget::steps(2)).await.unwrap();
    assert_eq!(exhausted(out).state.n, 2);
    let out = bench.agent.run(Log::update(), ()).budget(Budget::steps(0)).await.unwrap();
    assert_eq!(exhausted(out).state.n, 0);
}

#[tokio::test]
async fn tokens_and_cost_count_as_they_are_charged_and_survive_a_resume() {
    let charge = |spend: Spend| {
        rounds(None, move |_| {
            Box::pin(async move {
                observe::current().unwrap().charge(&spend);
                Ok(Log::update().n(1))
            })
        })
    };
    let tokens = charge(Usage::tokens(30, 10).into());
    let budget = |tokens| Budget::default().tokens(tokens);
    let out = tokens.agent.run(Log::update(), ()).budget(budget(100)).await.unwrap();
    let out = exhausted(out);
    assert_eq!((out.limit, out.state.n), (Limit::Tokens, 3));
    assert_eq!(out.spent.usage.total(), Some(120));
    let more = tokens.agent.resume(&out, Answers::none(), ()).budget(budget(200));
    let out = exhausted(more.await.unwrap());
    assert_eq!((out.limit, out.state.n), (Limit::Tokens, 5));
    assert_eq!(out.spent.usage.total(), Some(200));

    let cost = charge(Spend { cost_micros: Some(4), ..Spend::default() });
    let budget = Budget::default().cost_micros(10);
    let out = exhausted(cost.agent.run(Log::update(), ()).budget(budget).await.unwrap());
    assert_eq!((out.limit, out.state.n), (Limit::Cost, 3));
    assert_eq!(out.spent.cost_micros, Some(12));
}

#[tokio::test]
async fn what_a_failed_attempt_spent_is_spent() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                observe::current().unwrap().charge(&Usage::tokens(5, 0).into());
                if cx.attempt() < 3 {
                    Err(Oops("no"))?
                }
                Ok(line(format!("{:?}", cx.usage().usage.total())))
            })
            .retry(Retry::every(Duration::ZERO))
            .end()
    });
    let out = ended(bench.run().await);
    assert_eq!(out.spent.usage.total(), Some(15));
    assert_eq!(out.state.lines, ["Some(15)"]);
}

#[tokio::test(start_paused = true)]
async fn the_wall_budget_begins_with_the_run_and_not_with_its_future() {
    let bench = rounds(Some(Budget::steps(2).wall(secs(25))), |_| {
        Box::pin(async {
            tokio::time::sleep(secs(10)).await;
            Ok(Log::update().n(1))
        })
    });
    let run = bench.agent.run(Log::update(), ()).into_future();
    tokio::time::sleep(secs(3_600)).await;
    let out = exhausted(run.await.unwrap());
    assert_eq!((out.limit, out.state.n), (Limit::Steps, 2));
}

#[tokio::test(start_paused = true)]
async fn the_wall_budget_drops_the_step_in_flight() {
    let bench = rounds(Some(Budget::default().wall(secs(25))), |cx| {
        Box::pin(async move {
            let _dropped = OnDrop(cx.probe.clone(), "dropped");
            tokio::time::sleep(secs(10)).await;
            Ok(Log::update().n(1))
        })
    });
    let began = Instant::now();
    let out = exhausted(bench.run().await);
    assert_eq!(began.elapsed(), secs(25));
    assert_eq!((out.limit, out.state.n), (Limit::Wall, 2));
    assert_eq!(bench.probe.count("dropped"), 3);
    // A larger one resumes at the step that was dropped; earlier use counts.
    let began = Instant::now();
    let more = bench.agent.resume(&out, Answers::none(), ());
    let out = exhausted(more.budget(Budget::default().wall(secs(40))).await.unwrap());
    assert_eq!(began.elapsed(), secs(15));
    assert_eq!(out.state.n, 3);
    assert!(bench.log().contains(&"First#3 (attempt 2) started".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_wall_budget_is_reached_in_the_middle_of_a_back_off() {
    let bench = only_with(
        |it| it.budget(Budget::default().wall(secs(5))),
        |define| {
            define.run(async |_, _| Err(Oops("no"))?).retry(Retry::every(secs(60)).times(9)).end()
        },
    );
    let began = Instant::now();
    let out = exhausted(bench.run().await);
    assert_eq!(out.limit, Limit::Wall);
    assert_eq!(began.elapsed(), secs(5));
    assert_eq!(bench.seen.started(), ["Work"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_does_not_count() {
    let bench = only_with(
        |it| it.budget(Budget::default().wall(secs(10))),
        |define| {
            define
                .run(async |_, cx| {
                    tokio::time::sleep(secs(4)).await;
                    let said = cx.ask("k", may("go")).await?;
                    Ok(line(said.to_string()))
                })
                .end()
        },
    );
    let waiting = interrupted(bench.run().await);
    tokio::time::advance(secs(86_400)).await;
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["true"]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_resumed_run_that_is_dropped_counts() {
    let bench = rounds(Some(Budget::default().wall(secs(10))), |cx| {
        Box::pin(async move {
            let said = cx.ask("k", may("go")).await?;
            tokio::time::sleep(secs(100)).await;
            Ok(line(said.to_string()))
        })
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let run = bench.agent.resume(&waiting, answers, ()).into_future();
    assert!(tokio::time::timeout(secs(7), run).await.is_err());
    let began = Instant::now();
    let out = bench.agent.resume(&waiting, Answers::none(), ()).await.unwrap();
    assert_eq!(exhausted(out).limit, Limit::Wall);
    assert_eq!(began.elapsed(), secs(3));
}

#[tokio::test]
async fn a_step_that_was_entered_may_be_finished_on_any_budget() {
    let bench = only(|define| {
        define.run(async |_, cx| Ok(line(cx.ask("k", may("go")).await?.to_string()))).end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let request = bench.agent.resume(&waiting, answers, ()).budget(Budget::steps(0));
    assert_eq!(ended(request.await.unwrap()).state.lines, ["true"]);
}
