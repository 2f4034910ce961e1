//! What operators do with the sessions of each store.

use std::path::Path;
use std::sync::Arc;

use harness::inspect::{Filter, Phase, PrunePolicy, SessionInterrupt};
use harness::prelude::*;
use harness::session::Change;
use harness::{Outcome, Seq, Sessions};
use tokio::sync::Semaphore;

use crate::check::Log;
use crate::place::Place;
use crate::store::{Kind, Store, in_each_store};
use crate::work::{open, runtime};

/// Enough for two snapshots.
const ROUNDS: u64 = 40;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    /// Written again by every step, so that snapshots are due.
    filler: String,
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "sign")]
struct Sign;

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Over,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Fill,
    Wait,
    Sign,
}

/// Where a run says that it is at work, and waits to continue.
#[derive(Clone)]
struct Gate {
    at_work: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new(open: usize) -> Self {
        Self { at_work: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(open)) }
    }
}

async fn fill(doc: View<Doc>, _: Cx<()>) -> StepResult<Doc> {
    let n = doc.lines.len();
    Ok(Doc::update().filler((n % 10).to_string().repeat(12 << 10)).lines([format!("line {n}")]))
}

fn agent(store: Store, gate: &Gate) -> Agent<(), Doc> {
    let gate = gate.clone();
    let wait = move |_: View<Doc>, _: Cx<()>| {
        let gate = gate.clone();
        async move {
            gate.at_work.add_permits(1);
            gate.open.acquire().await.unwrap().forget();
            Ok(Doc::update().lines(["waited".to_owned()]))
        }
    };
    Harness::<(), Doc>::builder("operate")
        .start(Step::Fill)
        .steps(move |define, step| match step {
            Step::Fill => define.run(fill).route(
                |doc: &Doc| match doc.lines.len() as u64 {
                    ..ROUNDS => Next::Again,
                    _ => Next::Over,
                },
                |next| match next {
                    Next::Again => to(Step::Fill),
                    Next::Over => to(Step::Wait),
                },
            ),
            Step::Wait => define.run(wait.clone()).then(Step::Sign),
            Step::Sign => define
                .ask(|_, _| async move { Ok(Sign) })
                .answer(|_, _, said: harness::Answered<Sign>| async move {
                    Ok(Doc::update().lines([format!("signed {}", said.answer)]))
                })
                .end(),
        })
        .build()
        .unwrap()
        .agent("operate", ())
        .store(store)
}

/// What all sessions of a directory wait for, as another process sees it.
async fn questions(dir: &Path) -> Vec<SessionInterrupt> {
    let sessions = Sessions::new(open(dir, true).await);
    let mut rows = sessions.pending_interrupts().await.unwrap().rows;
    rows.sort_by(|a, b| a.session.cmp(&b.session));
    rows
}

fn signed(asked: &SessionInterrupt, answer: bool) -> Answers {
    Answers::json(asked.interrupt.id.clone(), answer.into())
}

fn last(state: &Doc) -> &str {
    state.lines.last().unwrap()
}

in_each_store!(a_prune_skips_a_session_that_runs_and_the_session_continues_after_one, pruned);

fn pruned(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("prune", None);
    kind.choose(dir.path());
    runtime().block_on(async {
        let gate = Gate::new(1);
        let agent = agent(open(dir.path(), true).await, &gate);
        let rests = agent.run(Doc::update(), ()).session("rests").await.unwrap();
        assert!(matches!(rests, Outcome::Interrupted(_)), "{rests:?}");
        gate.at_work.acquire().await.unwrap().forget();
        let run = agent.run(Doc::update(), ()).session("runs").start();
        gate.at_work.acquire().await.unwrap().forget();

        let other = open(dir.path(), true).await;
        let sessions = Sessions::new(other.clone());
        let whole = Log::read(&other, "rests").await.unwrap();
        let policy = PrunePolicy::new(Filter::sessions().agent(agent.id().clone()));
        let report = sessions.prune_all(&policy).await.unwrap();
        assert_eq!((report.pruned, report.busy.len()), (1, 1), "{report:?}");
        assert_eq!(report.busy[0].as_str(), "runs");
        let refused = sessions.prune("runs", Seq(ROUNDS)).await.unwrap_err();
        assert!(refused.is_busy(), "{refused}");
        let before = Log::read(&other, "runs").await.unwrap();
        let snapshots = before.entries.iter();
        let snapshots = snapshots.filter(|(_, it)| matches!(it.change, Change::Snapshot(_)));
        assert!(snapshots.count() > 1);

        gate.open.add_permits(1);
        assert!(matches!(run.await.unwrap(), Outcome::Interrupted(_)));
        // Only the end of the one that was pruned is there.
        let status = sessions.status("rests").await.unwrap();
        assert_eq!(status.head.0, whole.head);
        assert!(status.first > Seq(1), "{status:?}");
        assert!(agent.state_at("rests", Seq(2)).await.unwrap_err().is_pruned());
        let kept = agent.state_at("rests", status.head).await.unwrap();
        assert_eq!(serde_json::to_value(&kept).unwrap(), *whole.states.last().unwrap());
        let report = sessions.prune_all(&policy).await.unwrap();
        assert_eq!((report.pruned, report.unchanged, report.busy.len()), (1, 1, 0), "{report:?}");

        let asked = questions(dir.path()).await;
        assert_eq!(asked.len(), 2);
        for asked in &asked {
            let ended = agent.resume(&asked.session, signed(asked, true), ()).await.unwrap();
            let lines = ended.ended().unwrap().state.lines;
            assert_eq!(lines.len() as u64, ROUNDS + 2, "{}: {lines:?}", asked.session);
            assert_eq!(lines[ROUNDS as usize..], ["waited", "signed true"]);
        }
    });
}

in_each_store!(an_edit_over_another_connection_is_what_the_session_continues_with, edited);

fn edited(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("edits", None);
    kind.choose(dir.path());
    runtime().block_on(async {
        let gate = Gate::new(0);
        let runs = agent(open(dir.path(), true).await, &gate);
        let run = runs.run(Doc::update(), ()).session("s").start();
        // A person has a connection of its own to the store, and corrects no session that runs.
        let store = open(dir.path(), true).await;
        let edits = agent(store.clone(), &Gate::new(0));
        gate.at_work.acquire().await.unwrap().forget();
        let line = || Doc::update().lines(["corrected".to_owned()]);
        let busy = edits.edit("s", line(), "sam", "a slip").await.unwrap_err();
        assert!(busy.is_busy(), "{busy}");
        gate.open.add_permits(1);
        assert!(matches!(run.await.unwrap(), Outcome::Interrupted(_)));

        let before = Log::read(&store, "s").await.unwrap();
        // Of two at once each is kept, in one order.
        let (one, other) = tokio::join!(
            edits.edit("s", line(), "sam", "a slip"),
            runs.edit("s", line(), "eve", "")
        );
        let mut made = 0;
        for edit in [one, other] {
            match edit {
                Ok(seq) => made += u64::from(seq.0 > before.head),
                Err(error) => assert!(error.is_busy(), "{error}"),
            }
        }
        assert!(made > 0);
        let after = Log::read(&store, "s").await.unwrap();
        assert_eq!(after.head, before.head + made);
        let by = |change: &Change| matches!(change, Change::Edited(edit) if edit.ops.len() == 1);
        let recorded = after.entries.iter().filter(|(_, entry)| by(&entry.change)).count();
        assert_eq!(recorded as u64, made);

        // Neither of those that edited continues it.
        let asked = questions(dir.path()).await;
        let next = agent(open(dir.path(), true).await, &Gate::new(0));
        let ended = next.resume("s", signed(&asked[0], true), ()).await.unwrap().ended().unwrap();
        let mut lines = vec!["waited"];
        lines.extend((0..made).map(|_| "corrected"));
        lines.push("signed true");
        assert_eq!(ended.state.lines[ROUNDS as usize..], lines);
        let last = Log::read(&store, "s").await.unwrap();
        assert_eq!(*last.states.last().unwrap(), serde_json::to_value(&ended.state).unwrap());
        let past = next.state_at("s", Seq(before.head)).await.unwrap();
        assert_eq!(past.lines.last().unwrap(), "waited");
    });
}

in_each_store!(a_fork_of_a_fork_is_a_session_of_its_own, forked);

fn forked(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("forks", None);
    kind.choose(dir.path());
    runtime().block_on(async {
        let agent = agent(open(dir.path(), true).await, &Gate::new(usize::MAX >> 4));
        let waiting = agent.run(Doc::update(), ()).session("a").await.unwrap();
        assert!(matches!(waiting, Outcome::Interrupted(_)), "{waiting:?}");
        let store = open(dir.path(), true).await;
        let sessions = Sessions::new(store.clone());
        // The log of the first begins late when it is forked.
        let pruned = sessions.prune_all(&PrunePolicy::new(Filter::sessions())).await.unwrap();
        assert_eq!(pruned.pruned, 1);
        for (from, to) in [("a", "b"), ("b", "c")] {
            let head = sessions.status(from).await.unwrap().head;
            agent.fork(from, head, to).await.unwrap();
            let of_fork = Log::read(&store, to).await.unwrap();
            let Change::Opened(opened) = &of_fork.entries[0].1.change else { panic!() };
            let origin = opened.from.as_ref().unwrap();
            assert_eq!((origin.session.as_str(), origin.seq), (from, head));
        }
        let asked = questions(dir.path()).await;
        let names: Vec<_> = asked.iter().map(|asked| asked.session.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_ne!(asked[0].interrupt.id, asked[1].interrupt.id);
        assert_ne!(asked[1].interrupt.id, asked[2].interrupt.id);

        // Each is answered by itself, and an answer to its source is none to it.
        let source = agent.resume("a", signed(&asked[0], true), ()).await.unwrap();
        let refused = agent.resume("c", signed(&asked[1], true), ()).await.unwrap_err();
        assert!(refused.answer_error().unwrap().is_unknown_interrupt(), "{refused}");
        let fork = agent.resume("c", signed(&asked[2], false), ()).await.unwrap();
        let (source, fork) = (source.ended().unwrap().state, fork.ended().unwrap().state);
        assert_eq!((last(&source), last(&fork)), ("signed true", "signed false"));
        assert_eq!(source.lines[..=ROUNDS as usize], fork.lines[..=ROUNDS as usize]);
        assert_eq!(sessions.status("b").await.unwrap().phase, Phase::Interrupted);
        let left = questions(dir.path()).await;
        assert_eq!(left.len(), 1);
        let between = agent.resume("b", signed(&left[0], false), ()).await.unwrap();
        assert_eq!(between.ended().unwrap().state, fork);
    });
}
