//! Observers: all get everything, none can hurt a run.

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use harness::observe::{Observer, Recorder, from_fn};

use crate::common::*;

fn harness() -> Harness<Ctx, Log> {
    Harness::<Ctx, Log>::builder("watched")
        .start(Only::Work)
        .steps(|define, step| match step {
            Only::Work => define.run(async |_, _| Ok(line("done"))).end(),
        })
        .build()
        .unwrap()
}

fn agent(harness: &Harness<Ctx, Log>) -> Agent<Ctx, Log> {
    harness.agent("a", Ctx::required().probe(Probe::default()).build())
}

const ALL: [&str; 4] = ["run started", "Work#1 started", "Work#1 committed -> end", "run ended"];

#[tokio::test]
async fn harness_agent_and_run_are_observed_each_repeatedly() {
    let seen: Vec<Recorder> = (0..6).map(|_| Recorder::default()).collect();
    let observer = |n: usize| -> Box<dyn Observer> { Box::new(seen[n].clone()) };
    let harness = harness().observe(observer(0)).observe(observer(1));
    let agent = agent(&harness).observe(observer(2)).observe(observer(3));
    let run = agent.run(Log::update(), ()).observe(observer(4)).observe(observer(5));
    ended(run.await.unwrap());
    for (n, seen) in seen.iter().enumerate() {
        assert_eq!(seen.lines(), ALL, "observer {n}");
    }
    // Those of the run are of that run only.
    ended(agent.run(Log::update(), ()).await.unwrap());
    let counts: Vec<usize> = seen.iter().map(|seen| seen.events().len()).collect();
    assert_eq!(counts, [8, 8, 8, 8, 4, 4]);
}

#[tokio::test]
async fn an_observer_that_panics_does_not_affect_others() {
    let (before, after) = (Recorder::default(), Recorder::default());
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let panics = from_fn(move |event| {
        *count.lock().unwrap() += 1;
        panic!("cannot stand {event}");
    });
    let agent = agent(&harness()).observe(before.clone()).observe(panics).observe(after.clone());
    for _ in 0..2 {
        ended(agent.run(Log::update(), ()).await.unwrap());
    }
    assert_eq!((before.events().len(), after.events().len()), (8, 8));
    assert_eq!(*seen.lock().unwrap_or_else(|it| it.into_inner()), 8, "it still receives events");
}

#[tokio::test]
async fn an_observer_that_blocks_does_not_hang_the_run() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let blocks = from_fn(move |_| {
        let _ = blocked.lock().map(|blocked| blocked.recv());
    });
    let seen = Recorder::default();
    let agent = agent(&harness()).observe(blocks).observe(seen.clone());
    let began = Instant::now();
    for _ in 0..3 {
        ended(agent.run(Log::update(), ()).await.unwrap());
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(seen.events().len(), 12);
    drop(release);
}

#[tokio::test]
async fn an_observer_that_is_slow_gets_everything_before_the_outcome() {
    let seen = Recorder::default();
    let inner = seen.clone();
    let (tick, ticks) = mpsc::channel::<()>();
    let ticks = Mutex::new(ticks);
    let slow = from_fn(move |event| {
        ticks.lock().unwrap().recv().unwrap();
        inner.on_event(event);
    });
    let agent = agent(&harness()).observe(slow);
    let run = agent.run(Log::update(), ()).start();
    for _ in ALL {
        tick.send(()).unwrap();
    }
    ended(run.await.unwrap());
    assert_eq!(seen.lines(), ALL);
}
