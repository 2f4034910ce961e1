//! Timers that outlive the processes that started them.

use std::path::Path;
use std::time::Duration;

use harness::observe::{self, EventKind};
use harness::prelude::*;
use harness::session::{Change, End};
use harness::worker::Worker;
use harness::{Agent, UtcMillis};

use crate::check::Log;
use crate::child::{Other, say};
use crate::loops::Ctx;
use crate::outside::Outside;
use crate::place::Place;
use crate::store::{Kind, Store, in_each_store};
use crate::work::{open, runtime};
use crate::workers::{act_once, drain, work_until_terminated};

/// Longer than what a run waits for itself.
const NAP: Duration = Duration::from_millis(1_200);

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    done: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Sleep,
    Last,
}

/// Acts before it waits, and says another time whenever it is entered: the first counts.
async fn sleep(_: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    act_once(&cx).await?;
    cx.sleep_until("nap", UtcMillis::now().after(NAP)).await?;
    Ok(Doc::update().done(["slept".to_owned()]))
}

async fn last(_: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    act_once(&cx).await?;
    Ok(Doc::update().done(["last".to_owned()]))
}

fn agent(store: Store, dir: &Path) -> Agent<Ctx, Doc> {
    let harness = Harness::<Ctx, Doc>::builder("timers")
        .start(Step::Sleep)
        .steps(|define, step| match step {
            Step::Sleep => define.run(sleep).then(Step::Last),
            Step::Last => define.run(last).after(NAP).end(),
        })
        .build()
        .unwrap();
    let outside = Outside::new(&dir.join("effects"));
    let slots = Ctx::required().outside(outside).build();
    harness.agent("timers", slots).store(store).lease(Duration::from_secs(1))
}

/// Says which timers a run has started and found due, and that it waits.
pub async fn sleeper(dir: &Path) {
    let agent = agent(open(dir, true).await, dir).observe(observe::from_fn(|event| {
        let of = |key: &Option<String>| key.clone().unwrap_or_else(|| "after".to_owned());
        match &event.kind {
            EventKind::TimerStarted { key, due } => say(&format!("started {} {}", of(key), due.0)),
            EventKind::TimerFired { key } => say(&format!("fired {}", of(key))),
            EventKind::Settled { end: End::Waiting { .. }, .. } => say("waits"),
            _ => {}
        }
    }));
    work_until_terminated(Worker::new().serve(&agent, |_| async { Ok(()) })).await;
}

fn start(dir: &Path) -> Other {
    let mut worker = Other::start("sleeper", dir, &[]);
    assert_eq!(worker.hear(), "ready");
    worker
}

/// The moment that a timer which was just started is due at.
fn started(worker: &mut Other, key: &str) -> u64 {
    let said = worker.hear();
    let due = said.strip_prefix(&format!("started {key} ")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(worker.hear(), "waits");
    due.parse().unwrap()
}

in_each_store!(a_timer_outlives_the_process_that_started_it_and_is_started_once, timers);

fn timers(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("timers", None);
    kind.choose(dir.path());
    let runtime = runtime();
    let store = runtime.block_on(open(dir.path(), true));
    let agent = runtime.block_on(async { agent(store.clone(), dir.path()) });
    let queued = runtime.block_on(agent.enqueue("s", Doc::update()).into_future()).unwrap();
    let mut first = start(dir.path());
    let nap = started(&mut first, "nap");
    assert_eq!(first.kill(), [""; 0]);
    let mut second = start(dir.path());
    assert_eq!(second.hear(), "fired nap");
    let after = started(&mut second, "after");
    assert_eq!(second.kill(), [""; 0]);
    let mut third = start(dir.path());
    assert_eq!(third.hear(), "fired after");
    let ended = runtime.block_on(queued.outcome()).unwrap().ended().unwrap();
    assert_eq!(ended.state.done, ["slept", "last"]);
    assert_eq!(drain(third), ["draining", "drained"]);

    let log = runtime.block_on(Log::read(&store, "s")).unwrap();
    let (mut dues, mut commits) = (Vec::new(), Vec::new());
    for (_, entry) in &log.entries {
        match &entry.change {
            Change::Timer(wait) => dues.extend(wait.timers.iter().map(|timer| timer.due.0)),
            Change::Committed(_) => commits.push(entry.at.0),
            Change::Recovered(_) => panic!("no run was at work when its process was killed"),
            _ => {}
        }
    }
    assert_eq!(dues, [nap, after], "each was started once");
    assert!(nap <= commits[0] && commits[0] + 1_200 <= after && after <= commits[1], "{commits:?}");
    let (traces, _) = Outside::traces(&dir.path().join("effects"), 0);
    let begun = traces.iter().filter(|trace| trace.begins).count();
    assert_eq!(begun, 2, "an effect before a timer is not repeated: {traces:?}");
}
