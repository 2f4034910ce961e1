//! Panics, wherever user code runs.

use std::pin::Pin;
use std::task::{Context as Task, Poll};

use crate::common::*;

#[tokio::test]
async fn a_panic_in_a_step_is_fatal_and_the_session_resumes_from_there() {
    for waits in [false, true] {
        let bench = two(
            |define| define.run(async |_, _| Ok(line("kept"))).then(Two::Second),
            move |define| {
                define
                    .run(move |_log, cx| async move {
                        if waits {
                            tokio::task::yield_now().await;
                        }
                        assert!(cx.attempt() > 1, "out of luck");
                        Ok(line("mended"))
                    })
                    .retry(Retry::exponential())
                    .end()
            },
        );
        let out = failed(bench.run().await);
        assert_eq!((out.failure.kind, out.failure.retryable), (FailureKind::Panic, false));
        assert!(out.failure.message.contains("out of luck"), "{}", out.failure.message);
        assert_eq!(out.state.as_ref().unwrap().lines, ["kept"]);
        let resumed = bench.agent.resume(&out, Answers::none(), ()).await.unwrap();
        assert_eq!(ended(resumed).state.lines, ["kept", "mended"]);
        assert_eq!(bench.seen.started(), ["First", "Second", "Second"]);
    }
}

#[tokio::test]
async fn a_panic_before_there_is_a_future_is_contained_and_takes_the_error_route() {
    let bench = two(
        |define| {
            define
                .run(|log: View<Log>, _cx| {
                    assert!(log.n > 0, "in the closure itself");
                    async move { Ok(line("never")) }
                })
                .on_error(Two::Second)
                .end()
        },
        |define| define.run(async |_, cx| Ok(line(cx.failure().unwrap().message.clone()))).end(),
    );
    let lines = ended(bench.run().await).state.lines;
    assert_eq!(lines, ["the step panicked: in the closure itself"]);
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[tokio::test]
async fn a_panic_in_a_value_that_a_finished_step_drops_is_the_steps() {
    for waits in [false, true] {
        let bench = only(move |define| {
            define
                .run(move |_log, _cx| async move {
                    let _bomb = Bomb;
                    if waits {
                        tokio::task::yield_now().await;
                    }
                    Ok(line("never"))
                })
                .end()
        });
        let out = failed(bench.run().await);
        assert_eq!(out.failure.kind, FailureKind::Panic);
        assert!(out.state.unwrap().lines.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_value_that_is_dropped_with_its_step_changes_nothing() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                if cx.attempt() == 1 {
                    let _bomb = Bomb;
                    std::future::pending::<()>().await;
                }
                Ok(line("done"))
            })
            .timeout(std::time::Duration::from_secs(1))
            .retry(Retry::exponential())
            .end()
    });
    assert_eq!(ended(bench.run().await).state.lines, ["done"]);
}

#[tokio::test]
async fn a_panic_with_a_value_that_is_no_text_is_contained() {
    let bench = only(|define| define.run(async |_, _| std::panic::panic_any(7)).end());
    let out = failed(bench.run().await);
    assert_eq!(out.failure.message, "the step panicked: the panic value is not a string");
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    On,
}

#[tokio::test]
async fn a_panic_in_a_route_loses_the_state() {
    for waits in [false, true] {
        let bench = two_with(
            |it| it.on_error(Two::Second),
            move |define| {
                define
                    .run(move |_log, _cx| async move {
                        if waits {
                            tokio::task::yield_now().await;
                        }
                        Ok(line("half"))
                    })
                    .route(
                        |_| panic!("lost the way"),
                        |next| match next {
                            Next::On => end(),
                        },
                    )
            },
            |define| define.run(async |_, _| Ok(line("never"))).end(),
        );
        let out = failed(bench.run().await);
        assert_eq!(out.failure.kind, FailureKind::RoutePanic);
        assert_eq!(out.failure.message, "the route panicked: lost the way");
        assert!(out.state.is_none());
        let refused = bench.agent.resume(&out, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_not_at_rest(), "{refused}");
        assert_eq!(bench.seen.started(), ["First"]);
    }
}

#[tokio::test]
async fn a_panic_in_the_route_of_a_decision_loses_the_state() {
    let bench = only(|define| {
        define.decide(
            |_| panic!("no idea"),
            |next| match next {
                Next::On => end(),
            },
        )
    });
    let out = failed(bench.run().await);
    assert_eq!(out.failure.kind, FailureKind::RoutePanic);
    assert!(out.state.is_none());
}

fn explode(into: &mut u32, by: u32) {
    *into += by;
    assert!(*into < 10, "too much");
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Fragile {
    #[state(reduce = explode)]
    n: u32,
}

#[tokio::test]
async fn a_panic_in_a_reducer_loses_the_state_and_refuses_to_resume() {
    for waits in [false, true] {
        let harness = Harness::<(), Fragile>::builder("fragile")
            .start(Only::Work)
            .steps(|define, step| match step {
                Only::Work => define
                    .run(move |_n, _cx| async move {
                        if waits {
                            tokio::task::yield_now().await;
                        }
                        Ok(Fragile::update().n(99))
                    })
                    .end(),
            })
            .build()
            .unwrap();
        let agent = harness.agent("a", ());
        let out = failed(agent.run(Fragile::update(), ()).await.unwrap());
        assert_eq!(out.failure.kind, FailureKind::ReducerPanic);
        assert_eq!(out.failure.message, "a reducer panicked: too much");
        assert!(out.state.is_none());
        let refused = agent.resume(&out, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_not_at_rest(), "{refused}");
        // On the input there is no run yet that could fail.
        let refused = agent.run(Fragile::update().n(99), ()).await.unwrap_err();
        assert!(refused.to_string().contains("too much"), "{refused}");
    }
}

/// A future by hand that is done but panics when it is dropped.
struct Hollow;

impl Future for Hollow {
    type Output = StepResult<Log>;

    fn poll(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(line("never")))
    }
}

impl Drop for Hollow {
    fn drop(&mut self) {
        panic!("hollow");
    }
}

#[tokio::test]
async fn a_panic_in_the_drop_of_the_future_itself_is_contained() {
    let bench = only(|define| define.run(|_log, _cx| Hollow).end());
    let out = failed(bench.run().await);
    assert_eq!(out.failure.message, "the step panicked: hollow");
    assert!(out.state.unwrap().lines.is_empty());
}

#[tokio::test]
async fn what_a_panicked_body_held_is_gone_before_the_next_step() {
    let bench = two(
        |define| {
            define
                .run(|_, cx| {
                    let held = OnDrop(cx.probe.clone(), "dropped");
                    // Unlike an async function, this future keeps what it holds when it panics.
                    std::future::poll_fn(move |_| -> std::task::Poll<StepResult<Log>> {
                        let _held = &held;
                        panic!("with something in hand")
                    })
                })
                .on_error(Two::Second)
                .end()
        },
        |define| {
            define.run(async |_, cx| Ok(Log::update().n(cx.probe.count("dropped") as u32))).end()
        },
    );
    assert_eq!(ended(bench.run().await).state.n, 1);
}
