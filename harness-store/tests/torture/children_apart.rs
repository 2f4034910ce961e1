//! Agents that steps call, whose parents, runs and answers are in different processes.

use std::path::Path;
use std::sync::Arc;

use harness::inspect::{Filter, SessionInterrupt};
use harness::prelude::*;
use harness::question::{Breakpoint, BreakpointAnswer, BreakpointAt};
use harness::run::Waiting;
use harness::{Outcome, SessionId, Sessions};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::child::{Other, say};
use crate::children::{Doc, Sign, Step, Task, agents, check, ended, start};
use crate::place::Place;
use crate::store::{Hook, Kind, Moment, Store, in_each_store};
use crate::work::{open, runtime};
use crate::workers::drain;

/// The only open question.
async fn question(store: &Store) -> SessionInterrupt {
    let mut all = Sessions::new(store.clone()).pending_interrupts().await.unwrap().rows;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Answers the only open question, without a run.
pub async fn signer(dir: &Path) {
    let store = open(dir, true).await;
    let asked = question(&store).await;
    let answer: Value = match asked.interrupt.as_question::<Sign>() {
        Ok(_) => true.into(),
        Err(_) => json!("continue"),
    };
    let answers = Answers::json(asked.interrupt.id.clone(), answer).by("a third process");
    Sessions::new(store).answer_json(&asked.session, answers).await.unwrap();
    say("answered");
}

fn sign(dir: &Path) {
    let (status, said) = Other::start("signer", dir, &[]).end();
    assert!(status.success() && said == ["answered"], "{status}: {said:?}");
}

fn waiting(outcome: Outcome<Doc>) -> Waiting<Doc> {
    match outcome {
        Outcome::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

/// The step that a breakpoint is at.
fn stands_at(outcome: &Outcome<Doc>) -> (String, BreakpointAt) {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let asked = waiting.pending::<Breakpoint>().unwrap().question;
    (asked.step, asked.at)
}

fn onward(outcome: &Outcome<Doc>) -> Answers {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    waiting.pending::<Breakpoint>().unwrap().answer(BreakpointAnswer::Continue)
}

/// Counts the claims of sessions that another run holds.
struct Busy(Arc<Semaphore>);

#[async_trait]
impl Hook for Busy {
    async fn at(&self, _: &SessionId, moment: Moment<'_>) {
        if let Moment::Busy(_) = moment {
            self.0.add_permits(1);
        }
    }
}

in_each_store!(a_parent_waits_for_a_child_that_another_process_runs_and_has_its_result, held);

fn held(kind: Kind) {
    for kills in [false, true] {
        held_by_another(kind, kills);
    }
}

fn held_by_another(kind: Kind, kills: bool) {
    let _alone = crate::alone();
    let dir = Place::new("children held", None);
    kind.choose(dir.path());
    let runtime = runtime();
    runtime.block_on(async {
        let store = open(dir.path(), true).await;
        let busy = Arc::new(Semaphore::new(0));
        let (parent, _) = agents(&store.clone().with(Busy(busy.clone())), dir.path(), true);
        let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
        let child = &rests.children[0].session;
        for at in 0..2 {
            sign(dir.path());
            // It runs the child, and not the parent.
            let settings = [("ASKS", "1"), ("SERVES", "children"), ("THEN", "wait")];
            let mut holder = start(dir.path(), &settings);
            assert_eq!(holder.hear(), "in child");
            let run = parent.resume("s", Answers::none(), ()).start();
            busy.acquire().await.unwrap().forget();
            match kills {
                true => drop(holder.kill()),
                false => {
                    holder.say("continue");
                    // Its parent may have taken the message already.
                    drop(drain(holder));
                }
            }
            match (at, run.await.unwrap()) {
                // The second child asks, too.
                (0, rests) => assert_ne!(waiting(rests).children[0].session, *child),
                (_, ended) => drop(ended.ended().unwrap()),
            }
            let busy = busy.available_permits();
            assert!(busy < 10_000, "{busy} claims");
        }
        let recovered = check(&store, dir.path(), "s", "signed true").await;
        assert_eq!(recovered, if kills { 2 } else { 0 });
    });
}

in_each_store!(a_question_of_a_child_is_answered_by_a_third_process, answered);

fn answered(kind: Kind) {
    for kills in [false, true] {
        answered_by_a_third(kind, kills);
    }
}

fn answered_by_a_third(kind: Kind, kills: bool) {
    let _alone = crate::alone();
    let dir = Place::new("children asking", None);
    kind.choose(dir.path());
    let runtime = runtime();
    let store = runtime.block_on(open(dir.path(), true));
    let (parent, _) = agents(&store, dir.path(), true);
    let queued = parent.enqueue("s", Doc::update()).into_future();
    let queued = runtime.block_on(queued).unwrap();
    let work = || start(dir.path(), &[("ASKS", "1")]);
    let mut worker = work();
    for _ in 0..2 {
        assert_eq!(worker.hear(), "asked");
        if kills {
            worker.kill();
            sign(dir.path());
            worker = work();
        } else {
            sign(dir.path());
        }
    }
    runtime.block_on(async {
        ended(&queued).await;
        check(&store, dir.path(), "s", "signed true").await;
    });
    drain(worker);
}

in_each_store!(breakpoints_of_a_child_and_of_its_parent_wait_in_any_process, breakpoints);

fn breakpoints(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("children at breakpoints", None);
    kind.choose(dir.path());
    let runtime = runtime();
    runtime.block_on(async {
        let store = open(dir.path(), true).await;
        let (parent, child) = agents(&store, dir.path(), true);
        let run = parent.run(Doc::update(), ()).session("s").input_id("turn");
        let run = run.break_before(Task::Called).await.unwrap();
        assert_eq!(stands_at(&run), ("Called".to_owned(), BreakpointAt::Before));
        let sessions = Sessions::new(store.clone());
        let begun = sessions.all(&Filter::sessions()).await.unwrap().len();
        assert_eq!(begun, 1, "there is no child yet");
        let rests = parent.resume("s", onward(&run), ()).break_after(Task::Called);
        let rests = waiting(rests.await.unwrap());
        let session = &rests.children[0].session;

        // The child passes its question, and stands before its second step.
        let asked = question(&store).await;
        assert_eq!(asked.session, *session);
        let answers = Answers::json(asked.interrupt.id.clone(), true.into());
        let at = child.resume(session, answers, ()).break_before(Step::Second).await.unwrap();
        assert_eq!(stands_at(&at), ("Second".to_owned(), BreakpointAt::Before));
        let again = waiting(parent.resume("s", Answers::none(), ()).await.unwrap());
        assert_eq!(again.children[0].session, *session);
        sign(dir.path());
        // The parent's run continues the child, and stands after its own step.
        let run = parent.resume("s", Answers::none(), ()).break_after(Task::Called).await.unwrap();
        assert_eq!(stands_at(&run), ("Called".to_owned(), BreakpointAt::After));

        // Other processes do the rest.
        sign(dir.path());
        let mut worker = start(dir.path(), &[("ASKS", "1")]);
        assert_eq!(worker.hear(), "asked");
        worker.kill();
        sign(dir.path());
        let worker = start(dir.path(), &[("ASKS", "1")]);
        ended(&parent.enqueue("s", Doc::update()).input_id("turn").await.unwrap()).await;
        check(&store, dir.path(), "s", "signed true").await;
        drain(worker);
    });
}
