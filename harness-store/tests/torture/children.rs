//! Agents that steps call, in processes that are killed at each write of a parent and of its children.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use harness::llm::{Spend, Usage};
use harness::observe;
use harness::prelude::*;
use harness::run::Queued;
use harness::session::{Change, End, Entry};
use harness::store::{ReadRequest, SessionStore as _};
use harness::worker::Worker;
use harness::{Agent, Outcome, Seq, SessionId};

use crate::check::Log;
use crate::child::{Other, hear, say, setting};
use crate::loops::Ctx;
use crate::outside::Outside;
use crate::place::{Place, report};
use crate::store::{Hook, Kind, Moment, Store, in_each_store};
use crate::work::{open, runtime};
use crate::workers::{act_once, drain, work_until_terminated};

/// More than the moments before and after a write of a family.
const FAMILIES: usize = 64;
const LEASE: Duration = Duration::from_secs(1);
/// How many steps of a family have an effect: two of the parent, two of each of its children.
const EFFECTS: usize = 6;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    pub lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "sign")]
pub struct Sign;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    First,
    Second,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Before,
    Called,
    Declared,
    After,
}

fn line(line: impl Into<String>) -> StepResult<Doc> {
    Ok(Doc::update().lines([line.into()]))
}

/// Acts, spends ten tokens, and asks in its first step if it is one that does.
async fn work(cx: Cx<Ctx>, asks: bool) -> StepResult<Doc> {
    act_once(&cx).await?;
    let usage = Usage { input: Some(10), ..Usage::default() };
    observe::current().unwrap().charge(&Spend { usage, cost_micros: None });
    match *cx.step() == *"First" {
        true if asks => line(format!("signed {}", cx.ask("sign", Sign).await?)),
        false if setting("THEN") == "wait" => {
            say("in child");
            drop(tokio::task::spawn_blocking(hear).await);
            line("Second")
        }
        _ => line(cx.step().to_string()),
    }
}

pub fn child(outside: &Outside, asks: bool) -> Agent<Ctx, Doc> {
    let harness = Harness::<Ctx, Doc>::builder("children")
        .start(Step::First)
        .steps(move |define, step| match step {
            Step::First => {
                define.run(move |_: View<Doc>, cx: Cx<Ctx>| work(cx, asks)).then(Step::Second)
            }
            Step::Second => define.run(move |_: View<Doc>, cx: Cx<Ctx>| work(cx, asks)).end(),
        })
        .build()
        .unwrap();
    harness.agent("children", Ctx::required().outside(outside.clone()).build())
}

/// Calls the child in a body of a step, and has it for a step of its own.
pub fn parent(child: &Agent<Ctx, Doc>, outside: &Outside) -> Agent<Ctx, Doc> {
    let child = child.clone();
    let act = async |_: View<Doc>, cx: Cx<Ctx>| {
        act_once(&cx).await?;
        line(cx.step().to_string())
    };
    let harness = Harness::<Ctx, Doc>::builder("parents")
        .start(Task::Before)
        .steps(move |define, task| match task {
            Task::Before => define.run(act).then(Task::Called),
            Task::Called => {
                let child = child.clone();
                let call = move |_: View<Doc>, cx: Cx<Ctx>| {
                    let child = child.clone();
                    async move {
                        let input = Doc::update().lines(["called".to_owned()]);
                        line(cx.call(&child, input, ()).await?.state.lines.join(","))
                    }
                };
                define.run(call).then(Task::Declared)
            }
            Task::Declared => {
                let input = |_: &Doc, _: &Cx<Ctx>| (Doc::update().lines(["declared".into()]), ());
                let update = |ended: Doc| Doc::update().lines([ended.lines.join(",")]);
                define.child(&child, input, update).then(Task::After)
            }
            Task::After => define.run(act).end(),
        })
        .build()
        .unwrap();
    harness.agent("parents", Ctx::required().outside(outside.clone()).build())
}

/// Both agents on a store.
pub fn agents(store: &Store, dir: &Path, asks: bool) -> (Agent<Ctx, Doc>, Agent<Ctx, Doc>) {
    let outside = Outside::new(&dir.join("effects"));
    let child = child(&outside, asks);
    let parent = parent(&child, &outside).store(store.clone()).lease(LEASE);
    (parent, child.store(store.clone()).lease(LEASE))
}

/// Lets each family stand still at one of its writes, one at each: before it is made, and after.
struct Stands {
    /// How many writes the first family makes before.
    from: usize,
    store: Store,
    inner: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    parents: BTreeMap<SessionId, SessionId>,
    moments: BTreeMap<SessionId, usize>,
}

/// The parent of a session, if it is a child.
fn parent_in(entry: &[u8]) -> Option<SessionId> {
    match Entry::decode(entry).unwrap().change {
        Change::Opened(opened) => Some(opened.parent?.session),
        _ => None,
    }
}

/// Whether a turn is over with this entry.
fn ends(entry: &[u8]) -> bool {
    match Entry::decode(entry).unwrap().change {
        Change::Settled(settled) => matches!(settled.end, End::Ended { .. }),
        _ => false,
    }
}

impl Stands {
    /// The session of the family's parent.
    async fn family(&self, session: &SessionId, moment: &Moment<'_>) -> SessionId {
        let known = self.inner.lock().unwrap().parents.get(session).cloned();
        if let Some(known) = known {
            return known;
        }
        let begins = match moment {
            Moment::Before(Some(batch)) => batch.entries.first(),
            _ => None,
        };
        let parent = match begins.and_then(|first| parent_in(first.bytes)) {
            Some(parent) => Some(parent),
            None => {
                let first = self.store.read(session, ReadRequest::from(Seq(1)).limit(1)).await;
                first.unwrap().and_then(|page| parent_in(&page.entries[0].bytes))
            }
        };
        let parent = parent.unwrap_or_else(|| session.clone());
        self.inner.lock().unwrap().parents.insert(session.clone(), parent.clone());
        parent
    }
}

#[async_trait]
impl Hook for Stands {
    async fn at(&self, session: &SessionId, moment: Moment<'_>) {
        if let Moment::Busy(_) = moment {
            return;
        }
        let family = self.family(session, &moment).await;
        let number: usize = family.as_str().trim_start_matches('f').parse().unwrap();
        let stands = {
            let mut written = self.inner.lock().unwrap();
            let moments = written.moments.entry(family.clone()).or_default();
            *moments += 1;
            *moments > (number + self.from) % FAMILIES
        };
        if let Moment::After(Some(batch)) = &moment
            && *session == family
            && batch.entries.last().is_some_and(|last| ends(last.bytes))
        {
            say(&format!("ended {number}"));
        } else if stands {
            say(&format!("stands {number}"));
            std::future::pending::<()>().await;
        }
    }
}

/// Says when a question is stored.
struct SaysAsked;

#[async_trait]
impl Hook for SaysAsked {
    async fn at(&self, _: &SessionId, moment: Moment<'_>) {
        if let Moment::After(Some(batch)) = moment
            && !batch.open.is_empty()
        {
            say("asked");
        }
    }
}

/// Runs what is due of these agents, until it is terminated.
pub async fn worker(dir: &Path) {
    let store = open(dir, true).await;
    let store = match setting("STANDS").parse() {
        Ok(from) => {
            let inner = Mutex::default();
            store.clone().with(Stands { from, store, inner })
        }
        Err(_) => store.with(SaysAsked),
    };
    let (parent, child) = agents(&store, dir, setting("ASKS") == "1");
    let worker = Worker::new().at_most(2 * FAMILIES).serve(&child, |_| async { Ok(()) });
    work_until_terminated(match &*setting("SERVES") {
        "children" => worker,
        _ => worker.serve(&parent, |_| async { Ok(()) }),
    })
    .await;
}

pub fn start(dir: &Path, settings: &[(&str, &str)]) -> Other {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, (*value).into())).collect();
    let mut worker = Other::start("family", dir, &settings);
    assert_eq!(worker.hear(), "ready");
    worker
}

fn tokens(log: &Log) -> u64 {
    let spent = log.entries.iter().filter_map(|(_, entry)| entry.spent.as_ref());
    spent.filter_map(|spent| spent.usage.input).sum()
}

/// A family that has come to its end: each child is one session with one turn, which the parent has
/// recorded once. Returns how often a run of a child was recovered.
pub async fn check(store: &Store, dir: &Path, session: &str, first: &str) -> usize {
    let log = Log::read(store, session).await.unwrap();
    let lines = &log.states.last().unwrap()["lines"];
    let expected =
        ["Before", &format!("called,{first},Second"), &format!("declared,{first},Second"), "After"];
    assert_eq!(*lines, serde_json::json!(expected), "{session}");
    let mut started: Vec<SessionId> = Vec::new();
    let mut done = 0;
    for (_, entry) in &log.entries {
        match &entry.change {
            Change::Child(at) if !started.contains(&at.session) => started.push(at.session.clone()),
            Change::ChildDone(_) => done += 1,
            _ => {}
        }
    }
    assert_eq!((started.len(), done, log.turns()), (2, 2, 1), "{session}");
    let (mut spent, mut recovered) = (0, 0);
    let (traces, _) = Outside::traces(&dir.join("effects"), 0);
    let mut of_family: BTreeSet<&str> = BTreeSet::from([session]);
    for child in &started {
        let of_child = Log::read(store, child.as_str()).await.unwrap();
        let runs = of_child.entries.iter().filter_map(|(_, entry)| match &entry.change {
            Change::RunStarted(run) => run.start.as_ref(),
            _ => None,
        });
        assert_eq!((runs.count(), of_child.turns()), (1, 1), "{child} of {session}");
        // A step that is repeated after a crash spends again.
        let its = tokens(&of_child);
        assert!(its.is_multiple_of(10) && (10..=40).contains(&its), "{child}: {its}");
        spent += its;
        let is_takeover = |(_, entry): &&(Seq, Entry)| matches!(entry.change, Change::Recovered(_));
        recovered += of_child.entries.iter().filter(is_takeover).count();
        of_family.insert(child.as_str());
    }
    assert_eq!(tokens(&log), spent, "{session}: what its children spend counts once");
    let begun: Vec<_> = traces
        .iter()
        .filter(|trace| trace.begins && of_family.contains(&*trace.session))
        .map(|trace| (&trace.session, &trace.key))
        .collect();
    let once: BTreeSet<_> = begun.iter().collect();
    assert_eq!((begun.len(), once.len()), (EFFECTS, EFFECTS), "{session}: {begun:?}");
    recovered
}

pub async fn ended(queued: &Queued<Doc>) {
    let outcome = tokio::time::timeout(Duration::from_secs(60), queued.outcome()).await;
    let outcome = outcome.expect("the session settles").unwrap();
    assert!(matches!(outcome, Outcome::Ended(_)), "{outcome:?}");
}

in_each_store!(a_family_that_is_killed_at_any_write_has_each_child_once, killed);

fn killed(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("children killed", None);
    kind.choose(dir.path());
    let runtime = runtime();
    let store = runtime.block_on(open(dir.path(), true));
    let (parent, _) = agents(&store, dir.path(), false);
    let queued = |number| parent.enqueue(format!("f{number}"), Doc::update()).into_future();
    let queued: Vec<_> =
        (0..FAMILIES).map(|number| runtime.block_on(queued(number)).unwrap()).collect();
    let (mut stood, mut over) = (0, BTreeSet::new());
    // The second process continues families that the first one has left, and is killed at their other
    // writes.
    for from in [0, FAMILIES / 3] {
        let mut victim = start(dir.path(), &[("STANDS", &from.to_string())]);
        let mut stands = BTreeSet::new();
        while stands.len() + over.len() < FAMILIES {
            let heard = victim.hear();
            match heard.split_once(' ').unwrap() {
                ("ended", family) => over.insert(family.to_owned()),
                (_, family) => stands.insert(family.to_owned()),
            };
        }
        assert!(!over.is_empty(), "there are moments at which no family stands");
        stood += stands.len();
        victim.kill();
    }
    let last = start(dir.path(), &[]);
    let recovered: usize = runtime.block_on(async {
        let mut recovered = 0;
        for queued in &queued {
            ended(queued).await;
            recovered += check(&store, dir.path(), queued.session.as_str(), "First").await;
        }
        recovered
    });
    drain(last);
    assert!(stood > FAMILIES, "{stood} families stood at a write");
    report(&format!(
        "children, {kind:?}: {stood} families killed, {recovered} takeovers of children"
    ));
}
