//! Runs that a step of another run starts.

use harness::Budget;
use harness::llm::{Spend, Usage};
use harness::observe::{self, End, Event, EventKind, Recorder};

use super::common::*;

fn tokens(input: u64) -> Spend {
    Spend { usage: Usage { input: Some(input), ..Usage::default() }, cost_micros: Some(input) }
}

/// An agent that spends 10 tokens in each run.
fn spender(seen: &Recorder) -> Agent<Ctx, Log> {
    let spends = only(|define| {
        let spend = async |_, _| {
            observe::current().unwrap().charge(&tokens(10));
            Ok(line("spent"))
        };
        define.run(spend).end()
    });
    spends.agent.observe(seen.clone())
}

/// A run of two steps, each of which runs a child in this way: its outcome, its events, and those of
/// the children.
async fn parent(how: &'static str, budget: Budget) -> (Outcome<Log>, Vec<Event>, Vec<Event>) {
    let below = Recorder::default();
    let child = spender(&below);
    let step = move |define: Def<Two>| {
        let child = child.clone();
        define.run(move |_, cx: Cx<Ctx>| {
            let child = child.clone();
            async move {
                let run = child.run(Log::update(), ());
                match how {
                    "awaited" => drop(run.await.fatal()?),
                    "started" => drop(run.start().await.fatal()?),
                    "scoped" => {
                        let run = tokio::spawn(cx.scope(run.into_future()));
                        drop(run.await.fatal()?.fatal()?);
                    }
                    _ => drop(run.detached().await.fatal()?),
                }
                Ok(line("outer"))
            }
        })
    };
    let again = step.clone();
    let outer =
        two(move |define| step(define).then(Two::Second), move |define| again(define).end());
    let outcome = outer.agent.run(Log::update(), ()).budget(budget).await.unwrap();
    (outcome, outer.seen.events(), below.events())
}

#[tokio::test]
async fn what_a_child_spends_its_parent_spends() {
    for how in ["awaited", "started", "scoped"] {
        let (outcome, above, below) = parent(how, Budget::default()).await;
        let out = ended(outcome);
        assert_eq!(out.spent, tokens(20), "{how}");

        // The events of both are linked, and the spend is reported once.
        let charged = |events: &[Event]| {
            events.iter().filter(|it| matches!(it.kind, EventKind::Charged { .. })).count()
        };
        assert_eq!((charged(&above), charged(&below)), (0, 2), "{how}");
        let mut children = Vec::new();
        for event in &above {
            match &event.kind {
                EventKind::ChildStarted { child } => children.push((event, child.clone())),
                EventKind::ChildSettled { child, end, spent } => {
                    assert_eq!(children.last().unwrap().1, *child, "{how}");
                    assert_eq!((end.to_string(), *spent), ("ended".to_owned(), tokens(10)));
                }
                _ => {}
            }
        }
        let steps: Vec<_> = children.iter().filter_map(|(event, _)| event.step.clone()).collect();
        assert_eq!(steps.iter().map(|step| &**step).collect::<Vec<_>>(), ["First", "Second"]);
        for event in &below {
            let (started, child) = children.iter().find(|(_, it)| it.run == event.run).unwrap();
            assert_eq!((&child.session, &child.agent), (&event.session, &event.agent));
            assert_eq!(event.parent.as_ref(), Some(&out.run));
            let parent = event.parent_step.as_ref().unwrap();
            assert_eq!((&parent.session, parent.attempt), (&out.session, 1));
            assert_eq!(Some(&parent.step), started.step.as_ref());
            assert_eq!(parent.position, started.position);
            let json = serde_json::to_value(event).unwrap();
            assert_eq!(json["parent_step"]["step"], *parent.step);
        }
        let last = above.last().unwrap();
        assert!(matches!(last.kind, EventKind::Settled { .. }), "{how}: {last}");
    }
}

#[tokio::test]
async fn what_a_child_spends_counts_against_the_budget_of_its_parent() {
    let (outcome, ..) = parent("awaited", Budget::default().tokens(10)).await;
    let out = exhausted(outcome);
    assert_eq!((out.limit, out.spent, out.state.lines.len()), (Limit::Tokens, tokens(10), 1));
}

#[tokio::test]
async fn a_detached_run_has_no_parent() {
    let (outcome, above, below) = parent("detached", Budget::default().tokens(10)).await;
    assert_eq!(ended(outcome).spent, Spend::default());
    assert!(below.iter().all(|it| it.parent.is_none() && it.parent_step.is_none()));
    let is_child = |event: &Event| {
        matches!(event.kind, EventKind::ChildStarted { .. } | EventKind::ChildSettled { .. })
    };
    assert!(!above.iter().any(is_child));
}

/// The step times out while its child runs.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_dropped_is_reported_as_cancelled() {
    let inner = only(|define| {
        define.run(async |_, _| std::future::pending::<StepResult<Log>>().await).end()
    });
    let child = inner.agent.clone();
    let outer = only(move |define| {
        let child = child.clone();
        define
            .run(move |_, _| {
                let child = child.clone();
                async move {
                    drop(child.run(Log::update(), ()).await.fatal()?);
                    Ok(line("outer"))
                }
            })
            .timeout(std::time::Duration::from_secs(1))
            .end()
    });
    failed(outer.run().await);
    let ends: Vec<End> = outer
        .seen
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ChildSettled { end, .. } => Some(end),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [End::Cancelled]);
}
