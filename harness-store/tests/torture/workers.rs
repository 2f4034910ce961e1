//! Workers in processes of their own: one is killed at work, or drained by a signal, or its server is
//! killed or cannot be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use harness::prelude::*;
use harness::run::Queued;
use harness::session::Change;
use harness::worker::Worker;
use harness::{Agent, FailureKind, Outcome, UtcMillis};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::check::Log;
use crate::child::{Other, hear, say, setting};
use crate::loops::Ctx;
use crate::outside::Outside;
use crate::place::{Place, report};
use crate::store::{Kind, Store, in_each_store};
use crate::work::open;

const SESSIONS: usize = 20;
const LEASE: Duration = Duration::from_secs(1);

/// How long a session may take to settle, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Job {
    #[state(reduce = append)]
    done: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
    Third,
}

/// Does something outside of the session, once.
pub async fn act_once(cx: &Cx<Ctx>) -> Result<(), StepError> {
    let (session, op) = (cx.session_id().to_string(), cx.op_id().to_string());
    let (outside, effects) = (cx.outside.clone(), cx.outside.path().to_owned());
    let (its, key) = (op.clone(), cx.step().to_string());
    let act = async move || {
        outside.act(&session, &op, &key, "once").await;
        Ok(())
    };
    let probe = async move || {
        let (traces, _) = Outside::traces(&effects, 0);
        Ok(traces.iter().any(|trace| trace.op == its).then_some(()))
    };
    cx.once("act", act).probe(probe).await
}

/// Acts, and says so. In the first step it then waits or ends the process, if the process was started to
/// do that.
async fn act(_: View<Job>, cx: Cx<Ctx>) -> StepResult<Job> {
    act_once(&cx).await?;
    let session = cx.session_id().to_string();
    if *cx.step() == *"First" {
        say(&format!("in {session} {}", UtcMillis::now().0));
        match &*setting("THEN") {
            "abort" => std::process::abort(),
            "suspects" => beside_a_deadly_one(&session).await,
            "wait" => drop(tokio::task::spawn_blocking(hear).await),
            _ => {}
        }
    }
    Ok(Job::update().done([cx.step().to_string()]))
}

/// The sessions that are at work beside one that ends the process.
const BESIDE: usize = 4;

/// What the first step does in a process that one session ends: the others are in the middle of it as
/// long as the test does not let them continue.
async fn beside_a_deadly_one(session: &str) {
    static ENTERED: Semaphore = Semaphore::const_new(0);
    if session != "deadly" {
        ENTERED.add_permits(1);
        drop(tokio::task::spawn_blocking(hear).await);
        return;
    }
    // At first it is at work beside all of them.
    if setting("ALL") == "1" {
        ENTERED.acquire_many(BESIDE as u32).await.unwrap().forget();
    }
    std::process::abort();
}

fn agent(store: Store, dir: &Path, lease: Duration) -> Agent<Ctx, Job> {
    let harness = Harness::<Ctx, Job>::builder("jobs")
        .start(Step::First)
        .steps(|define, step| match step {
            Step::First => define.run(act).then(Step::Second),
            Step::Second => define.run(act).then(Step::Third),
            Step::Third => define.run(act).end(),
        })
        .build()
        .unwrap();
    let outside = Outside::new(&dir.join("effects"));
    harness.agent("jobs", Ctx::required().outside(outside).build()).store(store).lease(lease)
}

/// Runs what is due, until it is terminated.
pub async fn worker(dir: &Path) {
    let lease = setting("LEASE").parse().map_or(LEASE, Duration::from_millis);
    let agent = agent(open(dir, true).await, dir, lease);
    work_until_terminated(Worker::new().at_most(SESSIONS).serve(&agent, |_| async { Ok(()) }))
        .await;
}

pub async fn work_until_terminated(worker: Worker) {
    let mut terminated = signal(SignalKind::terminate()).unwrap();
    let worker = worker.start().unwrap();
    say("ready");
    terminated.recv().await;
    let mut drained = pin!(worker.drain());
    let mut begun = false;
    std::future::poll_fn(|task| {
        let polled = drained.as_mut().poll(task);
        if !std::mem::replace(&mut begun, true) {
            say("draining");
        }
        polled
    })
    .await;
    say("drained");
}

/// A place, and an agent in this process that queues there.
struct Jobs {
    runtime: tokio::runtime::Runtime,
    dir: Place,
    agent: Agent<Ctx, Job>,
    store: Store,
}

impl Jobs {
    fn new(dir: Place) -> Self {
        let runtime = crate::work::runtime();
        let store = runtime.block_on(open(dir.path(), true));
        let agent = runtime.block_on(async { agent(store.clone(), dir.path(), LEASE) });
        Self { runtime, dir, agent, store }
    }

    fn queue(&self, session: impl AsRef<str>) -> Queued<Job> {
        let queued = self.agent.enqueue(session, Job::update());
        self.runtime.block_on(queued.into_future()).unwrap()
    }

    fn worker(&self, then: &str) -> Other {
        let mut worker = Other::start("worker", self.dir.path(), &[("THEN", then.to_owned())]);
        assert_eq!(worker.hear(), "ready");
        worker
    }

    /// What became of a session. If nothing does, the last entries of its log say why.
    fn outcome(&self, queued: &Queued<Job>) -> Outcome<Job> {
        self.runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, queued.outcome()).await {
                Ok(Ok(outcome)) => outcome,
                unsettled => {
                    let log = Log::read(&self.store, queued.session.as_ref()).await.unwrap();
                    let last: Vec<_> = log.entries.iter().rev().take(20).collect();
                    panic!("{}: {unsettled:?} after {last:#?}", queued.session)
                }
            }
        })
    }

    /// That each of these sessions has ended, and that each effect has happened once.
    fn check(&self, queued: &[Queued<Job>]) -> BTreeMap<String, Log> {
        for queued in queued {
            let ended = self.outcome(queued).ended().unwrap();
            assert_eq!(ended.state.done, ["First", "Second", "Third"], "{}", queued.session);
        }
        let (traces, _) = Outside::traces(&self.dir.path().join("effects"), 0);
        let begun = traces.iter().filter(|trace| trace.begins);
        let once: BTreeSet<_> = begun.clone().map(|it| (&it.session, &it.key)).collect();
        assert_eq!(begun.count(), once.len(), "twice: {traces:?}");
        assert_eq!(once.len(), 3 * queued.len(), "{traces:?}");
        let log = |queued: &Queued<Job>| {
            let session = queued.session.to_string();
            let log = self.runtime.block_on(Log::read(&self.store, &session)).unwrap();
            (session, log)
        };
        queued.iter().map(log).collect()
    }
}

fn takeovers(log: &Log) -> usize {
    let recovered = log.entries.iter();
    recovered.filter(|(_, entry)| matches!(entry.change, Change::Recovered(_))).count()
}

/// Ends a worker in good order; what it has said.
pub fn drain(worker: Other) -> Vec<String> {
    worker.signal(Signal::TERM);
    let (status, said) = worker.end();
    assert!(status.success(), "{status}: {said:?}");
    assert_eq!(said.last().unwrap(), "drained");
    said
}

/// The session that a line says is at work, and since when.
fn entered(line: &str) -> Option<(String, u64)> {
    let (session, at) = line.strip_prefix("in ")?.split_once(' ')?;
    Some((session.to_owned(), at.parse().unwrap()))
}

in_each_store!(what_a_killed_worker_had_in_flight_ends_in_others, killed_at_work);

fn killed_at_work(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("workers killed", None);
    kind.choose(dir.path());
    let jobs = Jobs::new(dir);
    let queued: Vec<_> = (0..SESSIONS).map(|job| jobs.queue(format!("s{job}"))).collect();
    let mut victim = jobs.worker("wait");
    for _ in 0..SESSIONS {
        entered(&victim.hear()).unwrap();
    }
    let others = [jobs.worker(""), jobs.worker("")];
    let killed = UtcMillis::now().0;
    victim.kill();
    let logs = jobs.check(&queued);
    let said: Vec<_> = others.into_iter().flat_map(drain).collect();
    let continued: BTreeMap<_, _> = said.iter().filter_map(|line| entered(line)).collect();
    assert_eq!(continued.len(), SESSIONS);
    let longest = Duration::from_millis(continued.values().max().unwrap() - killed);
    assert!(logs.values().all(|log| takeovers(log) == 1), "each was recovered once");
    report(&format!(
        "workers, {kind:?}: {SESSIONS} sessions of a killed one continue after {longest:?}"
    ));
}

in_each_store!(a_worker_that_is_terminated_finishes_what_runs_and_begins_nothing, terminated);

fn terminated(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("workers terminated", None);
    kind.choose(dir.path());
    let jobs = Jobs::new(dir);
    let first = jobs.queue("first");
    let mut worker = jobs.worker("wait");
    entered(&worker.hear()).unwrap();
    worker.signal(Signal::TERM);
    assert_eq!(worker.hear(), "draining");
    let second = jobs.queue("second");
    worker.say("continue");
    let (status, said) = worker.end();
    assert!(status.success() && said == ["drained"], "{status}: {said:?}");
    let log = jobs.runtime.block_on(Log::read(&jobs.store, "second")).unwrap();
    assert_eq!(log.head, 1, "nothing but its beginning");
    let other = jobs.worker("");
    let logs = jobs.check(&[first, second]);
    assert!(logs.values().all(|log| takeovers(log) == 0), "nothing was recovered");
    drain(other);
}

in_each_store!(a_session_that_keeps_ending_its_worker_fails, crash_loop);

fn crash_loop(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("workers aborted", None);
    kind.choose(dir.path());
    let jobs = Jobs::new(dir);
    let queued = jobs.queue("deadly");
    let settings = [("THEN", "abort".to_owned()), ("LEASE", "100".to_owned())];
    let start = || Other::start("worker", jobs.dir.path(), &settings);
    // The one that begins it, and those that recover it, except for the one that gives up.
    for _ in 0..5 {
        let (status, said) = start().end();
        assert!(!status.success());
        assert!(said.iter().any(|line| entered(line).is_some()), "{said:?}");
    }
    let last = start();
    let Outcome::Failed(failed) = jobs.outcome(&queued) else { panic!() };
    assert_eq!(failed.failure.kind, FailureKind::CrashLoop);
    assert_eq!(drain(last), ["ready", "draining", "drained"], "the step did not run again");
}

#[cfg(feature = "postgres")]
#[test]
fn a_worker_survives_the_end_of_its_postgres() {
    let _alone = crate::alone();
    let server = crate::postgres_server::Server::start();
    server_killed(&server.url(), || server.kill(), || server.restart());
}

#[cfg(feature = "redis")]
#[test]
fn a_worker_survives_the_end_of_its_redis() {
    use crate::redis_server::{SAFE, Server};

    let _alone = crate::alone();
    let server = Server::start(SAFE);
    server_killed(&server.url(), || server.kill(), || server.restart());
}

in_each_store!(a_session_beside_one_that_keeps_ending_its_worker_ends_well, beside);

fn beside(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("workers aborted beside", None);
    kind.choose(dir.path());
    let jobs = Jobs::new(dir);
    let names = (0..BESIDE).map(|at| format!("s{at}"));
    let healthy: Vec<_> = names.map(|name| jobs.queue(name)).collect();
    let deadly = jobs.queue("deadly");
    let start = |all: bool| {
        let all = u8::from(all).to_string();
        let settings = [("THEN", "suspects".into()), ("LEASE", "500".into()), ("ALL", all)];
        Other::start("worker", jobs.dir.path(), &settings)
    };
    // The first run and the first takeover are those of all of them at once.
    for _ in 0..2 {
        let (status, said) = start(true).end();
        let entered: BTreeSet<_> = said.iter().filter_map(|line| Some(entered(line)?.0)).collect();
        assert!(!status.success() && entered.len() == BESIDE + 1, "{status}: {said:?}");
    }
    // From then on one at a time, and those that are not the reason come further.
    let mut further = BTreeSet::new();
    let mut on = |worker: &mut Other, line: &str| {
        let (session, _) = entered(line).unwrap_or_else(|| panic!("{line}"));
        if session != "deadly" {
            worker.say("continue");
            further.insert(session);
            return true;
        }
        false
    };
    for _ in 2..5 {
        let mut worker = start(false);
        assert_eq!(worker.hear(), "ready");
        loop {
            let line = worker.hear();
            if !on(&mut worker, &line) {
                break;
            }
        }
        assert!(!worker.end().0.success());
    }
    let mut last = start(false);
    assert_eq!(last.hear(), "ready");
    for _ in further.len()..BESIDE {
        last.say("continue");
    }
    let Outcome::Failed(failed) = jobs.outcome(&deadly) else { panic!() };
    assert_eq!(failed.failure.kind, FailureKind::CrashLoop);
    for queued in &healthy {
        let ended = jobs.outcome(queued).ended().unwrap();
        assert_eq!(ended.state.done, ["First", "Second", "Third"], "{}", queued.session);
    }
    drain(last);
}

/// The common server, through a proxy of this process.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn disconnected(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("workers disconnected", None);
    kind.choose(dir.path());
    let url = crate::store::marked(dir.path());
    let (_, address) = url.rsplit_once('@').or_else(|| url.split_once("://")).unwrap();
    let address = address.split('/').next().unwrap();
    let runtime = crate::work::runtime();
    let proxy = runtime.block_on(crate::proxy::Proxy::new(address.parse().unwrap()));
    let down = || {
        proxy.there.send_replace(false);
        proxy.cut();
    };
    let up = || {
        proxy.there.send_replace(true);
    };
    server_killed(&url.replace(address, &proxy.address.to_string()), down, up);
}

#[cfg(feature = "postgres")]
#[test]
fn a_worker_survives_cuts_of_the_network_to_postgres() {
    disconnected(Kind::Postgres);
}

#[cfg(feature = "redis")]
#[test]
fn a_worker_survives_cuts_of_the_network_to_redis() {
    disconnected(Kind::Redis);
}

#[cfg(any(feature = "postgres", feature = "redis"))]
fn server_killed(url: &str, kill: impl Fn(), restart: impl Fn()) {
    let dir = Place::new("workers without a server", None);
    crate::store::mark(dir.path(), url);
    let jobs = Jobs::new(dir);
    let queued: Vec<_> = (0..SESSIONS).map(|job| jobs.queue(format!("s{job}"))).collect();
    let mut worker = jobs.worker("wait");
    // Half of them are in their step, the others may be on their way there.
    for _ in 0..SESSIONS / 2 {
        entered(&worker.hear()).unwrap();
    }
    kill();
    // More than once each: a step is repeated whenever a busy machine renews a lease too late, and a step
    // that was given up still takes its line.
    for _ in 0..50 * SESSIONS {
        worker.say("continue");
    }
    restart();
    // Connections from before are gone.
    let jobs = Jobs::new(jobs.dir);
    let queued = queued.iter().map(|queued| {
        let again = jobs.agent.enqueue(&queued.session, Job::update()).input_id(&queued.input_id);
        jobs.runtime.block_on(again.into_future()).unwrap()
    });
    let logs = jobs.check(&queued.collect::<Vec<_>>());
    let recovered: usize = logs.values().map(takeovers).sum();
    drain(worker);
    report(&format!("workers: {recovered} takeovers after the end of the server"));
}
