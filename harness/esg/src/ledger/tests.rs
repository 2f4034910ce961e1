//! A ledger is what its records say: at every prefix, and whatever fails.
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::{collection, sample};

use super::{Journal, JournalError, Ledger, Record};
use crate::testing::TinyWorker;
use crate::{Blobs, CodeGraph, Program};

/// A journal in memory, which fails after so many records.
#[derive(Clone, Debug, Default)]
struct Kept {
    records: Arc<Mutex<Vec<Record>>>,
    room: Option<usize>,
}

impl Journal for Kept {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if let Some(room) = &mut self.room {
            let left = room.checked_sub(records.len());
            *room = left.ok_or_else(|| JournalError::new("the disk is full"))?;
        }
        // As a file would keep them.
        let stored = serde_json::to_vec(records).unwrap();
        let read: Vec<Record> = serde_json::from_slice(&stored).unwrap();
        self.records.lock().unwrap().extend(read);
        Ok(())
    }
}

/// What a caller does with a graph.
#[derive(Clone, Debug)]
enum Act {
    /// Sets a step to a source, or removes it.
    Edit(u8, Option<&'static str>),
    Rollback(u8),
    Input(i64),
    Replay,
    ReplayTo(u8),
    Invalidate(u8),
    Value,
    Compact,
    Verify,
}

const SOURCES: &[&str] = &[
    "xs = [1, 2]",
    "xs = [1, 3]",
    "ys = xs",
    "xs.append(4)",
    "ys.append(k)",
    "n = sum(xs)",
    "n = sum(ys) + k",
    "it = iter(xs)",
    "m = next(it)",
    "k = now()",
    "untracked()\nu = n + 1",
    "print(n)",
    "xs.append(9)\nraise ValueError",
    "crash()",
    "del n",
];

fn act() -> impl Strategy<Value = Act> {
    let step = 0..6_u8;
    prop_oneof![
        6 => (step.clone(), sample::select(SOURCES)).prop_map(|(at, text)| Act::Edit(at, Some(text))),
        1 => step.clone().prop_map(|at| Act::Edit(at, None)),
        1 => (0..20_u8).prop_map(Act::Rollback),
        1 => (0..3_i64).prop_map(Act::Input),
        4 => Just(Act::Replay),
        1 => step.clone().prop_map(Act::ReplayTo),
        1 => step.prop_map(Act::Invalidate),
        1 => Just(Act::Value),
        1 => Just(Act::Compact),
        1 => Just(Act::Verify),
    ]
}

/// Does it. Refusals and failures are expected.
fn perform(graph: &mut CodeGraph, act: &Act) {
    let id = |at: u8| format!("s{at}");
    match act {
        Act::Edit(at, source) => {
            let (id, known) = (id(*at), graph.program().step(&id(*at)).is_ok());
            let _ = graph.edit(|program| match source {
                Some(source) if known => program.replace(&id, source).map(drop),
                Some(source) => program.push(&id, source).map(drop),
                None => program.remove(&id),
            });
        }
        Act::Rollback(version) => {
            let versions = graph.program().versions();
            if let Some(version) = versions.get(usize::from(*version)).map(|one| one.id) {
                let _ = graph.edit(|program| program.rollback(version));
            }
        }
        Act::Input(value) => drop(graph.edit(|program| program.input("k", (*value).into()))),
        Act::Replay => drop(graph.replay()),
        Act::ReplayTo(at) => drop(graph.replay_to(&id(*at))),
        Act::Invalidate(at) => drop(graph.invalidate(&id(*at))),
        Act::Value => drop(graph.value("m")),
        Act::Compact => drop(graph.compact()),
        Act::Verify => drop(graph.verify()),
    }
}

fn graph(journal: &Kept) -> CodeGraph {
    CodeGraph::new(Program::new(), TinyWorker::new(), Blobs::memory()).with_journal(journal.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_fold_of_the_journal_is_the_live_ledger(acts in collection::vec(act(), 1..25)) {
        let journal = Kept::default();
        let mut graph = graph(&journal);
        for act in &acts {
            perform(&mut graph, act);
            let records = journal.records.lock().unwrap();
            prop_assert!(Ledger::fold(&*records).unwrap() == *graph.ledger(), "after {act:?}");
        }
        // At every prefix, a snapshot of it stands for the records before.
        let records = journal.records.lock().unwrap();
        let mut ledger = Ledger::default();
        for (at, record) in records.iter().enumerate() {
            ledger.apply(record).unwrap();
            let snapshot = Record::Snapshot(ledger.snapshot());
            let mut short = Ledger::fold(&[snapshot]).unwrap();
            prop_assert!(short == ledger, "after record {at}");
            for record in &records[at + 1..] {
                short.apply(record).unwrap();
            }
            prop_assert!(short == *graph.ledger(), "from record {at} on");
        }
    }

    #[test]
    fn what_is_not_written_does_not_count(
        acts in collection::vec(act(), 1..25), room in 0..40_usize,
    ) {
        let journal = Kept { room: Some(room), ..Kept::default() };
        let mut graph = graph(&journal);
        for act in &acts {
            perform(&mut graph, act);
            let records = journal.records.lock().unwrap();
            prop_assert!(Ledger::fold(&*records).unwrap() == *graph.ledger(), "after {act:?}");
        }
    }

    #[test]
    fn a_later_process_continues(acts in collection::vec(act(), 1..25), end in 0..25_usize) {
        let (journal, blobs) = (Kept::default(), Blobs::memory());
        let mut graph = CodeGraph::new(Program::new(), TinyWorker::new(), blobs.clone())
            .with_journal(journal.clone());
        acts.iter().take(end).for_each(|act| perform(&mut graph, act));
        drop(graph.replay());
        let ledger = Ledger::fold(&*journal.records.lock().unwrap()).unwrap();
        let mut graph = CodeGraph::resume(ledger, TinyWorker::new(), blobs).with_journal(journal);
        acts.iter().skip(end).for_each(|act| perform(&mut graph, act));
        drop(graph.replay());
        prop_assert!(graph.verify().map_or(true, |verdict| verdict.same));
    }
}

#[test]
fn an_edit_that_panics_leaves_nothing() {
    let mut graph = graph(&Kept::default());
    graph.edit(|edit| edit.push("a", "a = 1")).unwrap();
    let before = graph.ledger().clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        graph.edit(|edit| -> Result<(), crate::ProgramError> {
            edit.push("b", "b = 1")?;
            assert_eq!(edit.len(), 2);
            panic!("a caller's own mistake")
        })
    }));
    assert!(panicked.is_err() && *graph.ledger() == before);
    let refused = graph.edit(|edit| edit.push("b", "b = 1").and(edit.push("a", "")));
    assert!(refused.is_err() && *graph.ledger() == before);
}

#[test]
fn only_old_replays_leave_a_snapshot() {
    let mut graph = graph(&Kept::default());
    graph.edit(|program| program.push("a", "a = 0")).unwrap();
    for n in 0..300 {
        graph.edit(|program| program.replace("a", &format!("a = {n}"))).unwrap();
        graph.replay().unwrap();
    }
    let before = graph.executions().len();
    graph.compact().unwrap();
    assert_eq!((before, graph.executions().len()), (300, 256));
    assert!(graph.ran_at(44, 0).is_none() && graph.ran_at(45, 0).is_some());
    assert_eq!(graph.program().versions().len(), 300);
    assert!(graph.replay().unwrap().ran.is_empty());
}
