//! A process that stands still while others continue.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::observe::{self, Streamed};
use harness::prelude::*;
use harness::{FailureKind, OnBusy, Outcome, SessionId, UtcMillis};
use rustix::process::Signal;

use crate::check::Log;
use crate::child::{Other, hear, say};
use crate::loops::Ctx;
use crate::outside::Outside;
use crate::place::{Place, report};
use crate::random::Random;
use crate::store::{Hook, Kind, Moment, Store};
use crate::work::open;

const STOPS: usize = 200;
const LEASE: Duration = Duration::from_millis(150);

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tally {
    /// Who did the last step.
    by: u32,
    #[state(reduce = add)]
    done: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Tick,
    Tock,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Again,
    /// No route returns it: the loop continues until it is stopped.
    Over,
}

async fn tick(tally: View<Tally>, cx: Cx<Ctx>) -> StepResult<Tally> {
    let (outside, op, session) =
        (cx.outside.clone(), cx.op_id().to_string(), cx.session_id().to_string());
    let effect = cx.once("act", async move || {
        outside.act(&session, &op, "act", "once").await;
        Ok(())
    });
    // Both kinds: one waits for its intent to be durable, one for nothing.
    match tally.done % 2 {
        0 => effect.await?,
        _ => effect.in_doubt(harness::step::InDoubt::Retry).await?,
    }
    Ok(Tally::update().by(std::process::id()).done(1))
}

fn agent(store: Store, outside: Outside, lease: Duration) -> Agent<Ctx, Tally> {
    let harness = Harness::<Ctx, Tally>::builder("tally")
        .start(Step::Tick)
        .budget(Budget::steps(1_000_000))
        .steps(|define, step| match step {
            Step::Tick => define.run(tick).then(Step::Tock),
            Step::Tock => define.run(tick).route(
                |tally| if tally.done == u64::MAX { Next::Over } else { Next::Again },
                |next| match next {
                    Next::Again => to(Step::Tick),
                    Next::Over => end(),
                },
            ),
        })
        .build()
        .unwrap();
    let slots = Ctx::required().outside(outside).build();
    harness.agent("tally", slots).store(store).lease(lease)
}

/// Runs the sessions it is asked to, until it is asked to stop, and says how they settled.
pub async fn holder(dir: &Path) {
    let agent = agent(open(dir, true).await, Outside::new(&dir.join("effects")), LEASE);
    let agent = agent.observe(observe::from_fn(|event| {
        if let Some(seq) = event.seq {
            say(&format!("c {seq}"));
        }
    }));
    say("ready");
    loop {
        let session = hear();
        if session.is_empty() {
            return;
        }
        let mut run = agent.run(Tally::update(), ()).session(session).start();
        let heard = tokio::task::spawn_blocking(hear);
        let control = run.control();
        tokio::pin!(heard);
        let (outcome, heard) = tokio::select! {
            outcome = &mut run => (outcome, Some(heard)),
            _ = &mut heard => {
                control.stop();
                (run.await, None)
            }
        };
        say(&match outcome {
            Ok(Outcome::Failed(failed)) => format!("failed {:?}", failed.failure.kind),
            Ok(Outcome::Stopped(_)) => "stopped".into(),
            other => format!("{other:?}"),
        });
        // What was to stop it is not the next session.
        if let Some(heard) = heard {
            let _ = heard.await;
        }
    }
}

/// What it says past its commits, and the last of those.
fn settled(holder: &mut Other, acknowledged: &mut u64) -> String {
    loop {
        let line = holder.hear();
        match line.strip_prefix("c ") {
            Some(seq) => *acknowledged = seq.parse().unwrap(),
            None => return line,
        }
    }
}

/// What a store says when it refuses to hand over a session.
#[derive(Default)]
struct Refusals {
    /// When it was asked.
    asked: AtomicU64,
    count: AtomicU64,
}

#[async_trait]
impl Hook for Arc<Refusals> {
    async fn at(&self, session: &SessionId, moment: Moment<'_>) {
        let Moment::Busy(until) = moment else { return };
        self.count.fetch_add(1, Ordering::SeqCst);
        let (asked, now) = (self.asked.load(Ordering::SeqCst), UtcMillis::now().0);
        let lease = LEASE.as_millis() as u64;
        // A clock that counts in milliseconds.
        let fits = asked <= until.0 + 2 && until.0 <= now + lease + 2;
        assert!(fits, "{session}: asked at {asked}, held until {until:?}, now {now}");
    }
}

#[test]
fn a_process_that_stood_still_does_nothing_more_if_another_has_continued() {
    stopped_and_continued(Kind::Files);
}

// Not in a database of one machine: a process that stops in a write there holds the lock of the file.
#[cfg(feature = "postgres")]
#[test]
fn a_process_that_stood_still_does_nothing_more_to_postgres() {
    stopped_and_continued(Kind::Postgres);
}

#[cfg(feature = "redis")]
#[test]
fn a_process_that_stood_still_does_nothing_more_to_redis() {
    stopped_and_continued(Kind::Redis);
}

fn stopped_and_continued(kind: Kind) {
    let _alone = crate::alone();
    let (mut random, seed) = Random::seeded();
    let place = Place::new("stops", Some(seed));
    let dir = place.path();
    kind.choose(dir);
    let stops = if kind == Kind::Files { STOPS } else { STOPS / 5 };
    let runtime = crate::work::runtime();
    let effects = dir.join("effects");
    let store = runtime.block_on(open(dir, true));
    let refusals = Arc::<Refusals>::default();
    let watched = store.clone().with(Arc::clone(&refusals));
    let thief = agent(watched, Outside::new(&effects), Duration::from_secs(30));
    let mut holder = Other::start("holder", dir, &[]);
    assert_eq!(holder.hear(), "ready");
    let mut longest = Duration::ZERO;
    let (mut continued, mut expired, mut squeezed) = (0, 0, 0);
    for stop in 0..stops {
        let session = format!("h{stop}");
        let begun = std::fs::metadata(&effects).map_or(0, |file| file.len()) as usize;
        holder.say(&session);
        let mut acknowledged = 0;
        while acknowledged == 0 {
            let line = holder.hear();
            acknowledged =
                line.strip_prefix("c ").unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        }
        std::thread::sleep(random.micros(12_000));
        holder.signal(Signal::STOP);
        let stopped = Instant::now();
        if stop % 2 == 0 {
            // Long enough for the lease to be over, or not.
            let long = stop % 8 == 0;
            std::thread::sleep(if long { LEASE * 4 / 3 } else { LEASE / 5 });
            holder.signal(Signal::CONT);
            let before = acknowledged;
            while acknowledged < before + 12 {
                let line = holder.hear();
                let seq = line.strip_prefix("c ");
                let seq = seq.unwrap_or_else(|| panic!("stop {stop} (long: {long}): {line}"));
                acknowledged = seq.parse().unwrap();
            }
            holder.say("stop");
            assert_eq!(settled(&mut holder, &mut acknowledged), "stopped");
            continued += 1;
            expired += usize::from(long);
            continue;
        }
        let (run, waited) = runtime.block_on(async {
            loop {
                // No claim that is made after the lease of the other is over is refused.
                refusals.asked.store(UtcMillis::now().0, Ordering::SeqCst);
                let request = thief.resume(&*session, Answers::none(), ());
                let mut run = request.on_busy(OnBusy::Reject).start();
                let mut events = run.events();
                // It has the session once it reports anything that is in the log.
                let mut committed = 0;
                while let Some(event) = events.next().await {
                    if matches!(&event, Streamed::Event(event) if event.seq.is_some()) {
                        committed += 1;
                        if committed == 2 {
                            break;
                        }
                    }
                }
                if committed > 0 {
                    break (run, stopped.elapsed());
                }
                let error = run.await.unwrap_err();
                assert!(error.is_busy(), "stop {stop}: {error}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        longest = longest.max(waited);
        holder.signal(Signal::CONT);
        holder.say("");
        let how = settled(&mut holder, &mut acknowledged);
        assert_eq!(how, format!("failed {:?}", FailureKind::LeaseLost), "stop {stop}");
        run.stop();
        let outcome = runtime.block_on(run).unwrap();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        // Behind the first step of the thief, all are the thief's.
        let log = runtime.block_on(Log::read(&store, &session)).unwrap();
        assert!(acknowledged <= log.head, "stop {stop}");
        let ours = std::process::id();
        let by: Vec<u64> = log.states.iter().map(|state| state["by"].as_u64().unwrap()).collect();
        let first = by.iter().position(|by| *by == u64::from(ours)).unwrap();
        assert!(by[first..].iter().all(|by| *by == u64::from(ours)), "stop {stop}: {by:?}");
        let done = log.states.last().unwrap()["done"].as_u64().unwrap();
        let ticks = by.len() as u64;
        assert!(done <= ticks, "stop {stop}");
        let (traces, _) = Outside::traces(&effects, begun);
        let first = traces.iter().position(|trace| trace.process == ours).unwrap();
        let late = traces[first..].iter().filter(|trace| trace.begins && trace.process != ours);
        squeezed += late.count();
    }
    report(&format!(
        "stops, {kind:?}: {stops}, taken after {longest:.0?} at most, {} times too early; continued: {continued} \
         ({expired} with a lease that was over); effects that began as the process stopped: {squeezed}",
        refusals.count.load(Ordering::SeqCst),
    ));
    // Between the last look at the lease and the effect nothing can be done about a stop.
    assert!(squeezed <= 3, "{squeezed} effects began though the lease was lost");
}
