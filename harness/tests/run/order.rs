//! In which order things are done, what is cloned, and which shapes a step can have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;

/// Counts its clones, wherever the original came from.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counting(#[serde(skip)] Arc<AtomicUsize>);

impl Clone for Counting {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&self.0))
    }
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Big {
    weight: Counting,
    #[state(reduce = add)]
    n: u32,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Next {
    More,
    Enough,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Other {
    More,
}

/// Ten rounds of a step; says how often the state was cloned.
async fn clones<F, Fut>(body: F) -> usize
where
    F: Fn(View<Big>, Cx<()>) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = StepResult<Big>> + Send + 'static,
{
    let harness = Harness::<(), Big>::builder("big")
        .start(Only::Work)
        .steps(|define, step| match step {
            Only::Work => define.run(body.clone()).route(
                |big| if big.n < 10 { Next::More } else { Next::Enough },
                |next| match next {
                    Next::More => to(Only::Work),
                    Next::Enough => end(),
                },
            ),
        })
        .build()
        .unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let input = Big::update().weight(Counting(Arc::clone(&count)));
    let ended = ended(harness.agent("a", ()).run(input, ()).await.unwrap());
    assert_eq!(ended.state.n, 10);
    count.load(Ordering::SeqCst)
}

#[tokio::test]
async fn an_update_is_folded_in_place() {
    assert_eq!(clones(async |_: View<Big>, _: Cx<()>| Ok(Big::update().n(1))).await, 0);
    let waits = async |big: View<Big>, _: Cx<()>| {
        tokio::task::yield_now().await;
        Ok(Big::update().n(u32::from(big.n < 100)))
    };
    assert_eq!(clones(waits).await, 0);
}

#[tokio::test]
async fn a_view_that_is_kept_costs_one_clone_and_does_not_change() {
    let (keep, kept) = std::sync::mpsc::channel();
    let body = move |big: View<Big>, _: Cx<()>| {
        let keep = keep.clone();
        async move {
            if big.n == 4 {
                keep.send(big).unwrap();
            }
            Ok(Big::update().n(1))
        }
    };
    assert_eq!(clones(body).await, 1);
    assert_eq!(kept.recv().unwrap().n, 4);
}

#[tokio::test]
async fn a_view_in_a_spawned_task_costs_one_clone() {
    let body = async |big: View<Big>, cx: Cx<()>| {
        if big.n == 0 {
            let view = big.clone();
            // Not of the attempt, so that it outlives the run.
            tokio::spawn(cx.scope(async move {
                std::future::pending::<()>().await;
                drop(view);
            }));
        }
        Ok(Big::update().n(1))
    };
    assert_eq!(clones(body).await, 1);
}

#[tokio::test]
async fn the_route_sees_the_updated_state_and_names_the_end() {
    let bench = only(|define| {
        define.run(async |_, _| Ok(Log::update().n(1))).route(
            |log| if log.n < 3 { Next::More } else { Next::Enough },
            |next| match next {
                Next::More => to(Only::Work),
                Next::Enough => end(),
            },
        )
    });
    let ended = ended(bench.run().await);
    assert_eq!((ended.state.n, ended.steps), (3, 3));
    assert_eq!(ended.by::<Next>(), Some(Next::Enough));
    assert_eq!(ended.by::<Other>(), None);
    assert_eq!(ended.signal(), Some("Enough"));
    assert_eq!(
        bench.log(),
        [
            "run started",
            "Work#1 started",
            "Work#1 committed More -> Work",
            "Work#2 started",
            "Work#2 committed More -> Work",
            "Work#3 started",
            "Work#3 committed Enough -> end",
            "run ended by Enough",
        ]
    );
}

#[tokio::test]
async fn a_decision_has_no_body_and_changes_nothing() {
    let decide = |log: &Log| if log.n < 2 { Next::More } else { Next::Enough };
    let bench = two(
        move |define| {
            define.decide(decide, |next| match next {
                Next::More => to(Two::Second),
                Next::Enough => end(),
            })
        },
        |define| define.run(async |_, _| Ok(Log::update().n(1))).then(Two::First),
    );
    let ended = ended(bench.run().await);
    assert_eq!((ended.state.n, ended.steps), (2, 5));
    assert_eq!(bench.seen.started(), ["First", "Second", "First", "Second", "First"]);
}

async fn named(_: View<Log>, cx: Cx<Ctx>) -> StepResult<Log> {
    cx.probe.hit("named");
    Ok(line("named"))
}

struct Says(&'static str);

#[async_trait]
impl Handler<Ctx, Log> for Says {
    async fn run(&self, log: View<Log>, _: Cx<Ctx>) -> StepResult<Log> {
        Ok(line(format!("{} after {}", self.0, log.lines.len())))
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Shapes {
    Named,
    Moving,
    Async,
    Handler,
    Shared,
    Dyn,
}

#[tokio::test]
async fn every_shape_of_a_step_runs_in_the_order_of_the_graph() {
    let word = String::from("moving");
    let shared: Arc<dyn Handler<Ctx, Log>> = Arc::new(Says("dyn"));
    let harness = Harness::<Ctx, Log>::builder("shapes")
        .start(Shapes::Named)
        .steps(|define, step| match step {
            Shapes::Named => define.run(named).then(Shapes::Moving),
            Shapes::Moving => {
                let word = word.clone();
                define
                    .run(move |_log, _cx| {
                        let word = word.clone();
                        async move { Ok(line(word)) }
                    })
                    .then(Shapes::Async)
            }
            Shapes::Async => define
                .run(async |log, cx| {
                    tokio::task::yield_now().await;
                    cx.probe.hit("async");
                    Ok(line(format!("async after {}", log.lines.len())))
                })
                .then(Shapes::Handler),
            Shapes::Handler => define.handler(Says("handler")).then(Shapes::Shared),
            Shapes::Shared => define.handler(Arc::new(Says("shared"))).then(Shapes::Dyn),
            Shapes::Dyn => define.handler(Arc::clone(&shared)).end(),
        })
        .build()
        .unwrap();
    let bench = Bench::of(harness);
    let ended = ended(bench.run().await);
    assert_eq!(
        ended.state.lines,
        ["named", "moving", "async after 2", "handler after 3", "shared after 4", "dyn after 5"]
    );
    assert_eq!(ended.signal(), None);
    assert_eq!(bench.probe.hits(), ["named", "async"]);
}

#[tokio::test]
async fn a_step_is_entered_at_most_as_often_as_declared() {
    let bench = two(
        |define| {
            define.run(async |_, _| Ok(line("first"))).at_most(3, Two::Second).then(Two::First)
        },
        |define| define.run(async |_, _| Ok(line("second"))).end(),
    );
    let ended = ended(bench.run().await);
    assert_eq!(ended.state.lines, ["first", "first", "first", "second"]);
}

#[tokio::test]
async fn steps_that_give_way_only_to_each_other_exhaust_the_turn_with_everything_committed() {
    let bench = two(
        |define| {
            define.run(async |_, _| Ok(line("first"))).at_most(2, Two::Second).then(Two::Second)
        },
        |define| {
            define.run(async |_, _| Ok(line("second"))).at_most(1, Two::First).route(
                |_| Next::More,
                |next| match next {
                    Next::More => to(Two::First),
                    Next::Enough => end(),
                },
            )
        },
    );
    let out = exhausted(bench.run().await);
    assert_eq!(out.limit, Limit::AtMost);
    assert_eq!(out.state.lines, ["first", "second", "first"]);
    // Resuming finds it exhausted again, and runs nothing a second time.
    bench.seen.clear();
    let again = bench.agent.resume(&out, Answers::none(), ()).await.unwrap();
    assert_eq!(exhausted(again).state.lines, ["first", "second", "first"]);
    assert!(bench.seen.started().is_empty());
}

#[tokio::test]
async fn the_input_is_reduced_into_the_default_state() {
    let bench = only(|define| define.run(async |log, _| Ok(Log::update().n(log.n))).end());
    let input = Log::update().n(2).n(3).note(Some("in".into())).lines(["a".to_owned()]);
    let ended = ended(bench.agent.run(input, ()).await.unwrap());
    let expected = Log { lines: vec!["a".into()], n: 10, note: Some("in".into()) };
    assert_eq!(ended.state, expected);
}
