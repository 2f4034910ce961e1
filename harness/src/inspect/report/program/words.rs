//! What a replay has recorded, in words.

use std::collections::BTreeSet;
use std::sync::Arc;

use harness_esg::{Change as Edit, Execution, Ledger, Operation, Record};
use serde::Deserialize as _;
use serde_json::Value;

use super::{is_record, ledger_of, took};
use crate::inspect::report::lines::clipped;
use crate::inspect::report::words::duration;
use crate::session::{Change, EffectDone, is_replay};
use crate::text::{prose, shown};

/// The most steps that a line names.
const MAX_NAMED: usize = 8;
/// The most characters of how a step ended.
const MAX_TEXT: usize = 200;

/// What is known of the replay that a step of the loop is at.
#[derive(Default)]
pub(in crate::inspect::report) struct Replays {
    /// The programs of the state, once an effect needs them. They change with the commit.
    ledgers: Option<Vec<Ledger>>,
    /// What this entry into the step has run.
    ran: Vec<Arc<Execution>>,
}

impl Replays {
    /// An entry of the log in words, if it is one of a replay. `state` is that before it.
    pub(in crate::inspect::report) fn describe(
        &mut self,
        change: &Change,
        state: &Value,
    ) -> Option<String> {
        match change {
            Change::Effect(it) => {
                let records = records(it)?;
                for record in &records {
                    if let Record::Ran(execution) = record {
                        self.ran.push(Arc::clone(execution));
                    }
                }
                let _ = self.ledgers.get_or_insert_with(|| {
                    let fields = state.as_object().into_iter().flatten();
                    fields.filter_map(|(_, field)| Some(ledger_of(field)?.0)).collect()
                });
                Some(described(&records, Some(self)))
            }
            Change::Committed(_) | Change::Diverted(_) | Change::Finishing(_) => {
                *self = Self::default();
                None
            }
            _ => None,
        }
    }

    /// The version whose source ran.
    fn version(&self, execution: &Execution) -> Option<String> {
        let ledgers = self.ledgers.iter().flatten();
        let mut steps = ledgers.filter_map(|ledger| ledger.program().step(&execution.step).ok());
        let step = steps.find(|step| step.source == execution.source)?;
        Some(step.version.to_string())
    }

    /// The names of the steps whose executions were kept. Inputs are no steps.
    fn kept(&self, executions: &[u64]) -> BTreeSet<Arc<str>> {
        let ledgers = self.ledgers.iter().flatten();
        let known = ledgers.flat_map(|ledger| {
            let is_step = |it: &&Arc<Execution>| ledger.program().step(&it.step).is_ok();
            ledger.executions().iter().filter(is_step)
        });
        let kept = known.filter(|it| executions.contains(&it.seq));
        let kept = kept.filter(|it| !self.ran.iter().any(|ran| ran.step == it.step));
        kept.map(|it| Arc::clone(&it.step)).collect()
    }
}

/// The records of an effect, if it is one of a replay.
fn records(effect: &EffectDone) -> Option<Vec<Record>> {
    match &effect.value {
        Value::Array(values) if !values.is_empty() && values.iter().all(is_record) => {
            Vec::deserialize(&effect.value).ok()
        }
        Value::Null if is_replay(&effect.key) => Some(Vec::new()),
        _ => None,
    }
}

/// An effect in words, if it is one of a replay, without what the program is.
pub(in crate::inspect::report) fn effect(effect: &EffectDone) -> Option<String> {
    records(effect).map(|records| described(&records, None))
}

fn described(records: &[Record], of: Option<&Replays>) -> String {
    if records.is_empty() {
        return "the replay is over".to_owned();
    }
    records.iter().map(|record| one(record, of)).collect::<Vec<_>>().join("; ")
}

fn one(record: &Record, of: Option<&Replays>) -> String {
    match record {
        Record::Ran(it) => {
            let version = of.and_then(|of| of.version(it)).map(|it| format!(" {it}"));
            format!(
                "replay {} ran {}{} in {}: {}",
                it.run,
                shown(&it.step),
                version.unwrap_or_default(),
                duration(took(it)),
                clipped(&prose(&it.ending.to_string()), MAX_TEXT),
            )
        }
        Record::Settled { run, executions } => match of {
            Some(of) => {
                let ran = named(of.ran.iter().filter(|it| it.run == *run).map(|it| &it.step));
                let kept = of.kept(executions);
                format!("replay {run} settled: ran {ran}, kept {}", named(kept.iter()))
            }
            None => format!("replay {run} settled"),
        },
        Record::Invalid(step) => format!("what {} ran so far no longer counts", shown(step)),
        Record::Edited(operation) => edited(operation),
        Record::Snapshot(_) => "a snapshot of the program".to_owned(),
        _ => "something else about the program".to_owned(),
    }
}

fn named<'s>(steps: impl Iterator<Item = &'s Arc<str>>) -> String {
    let all: Vec<_> = steps.map(|step| shown(step)).collect();
    let mut names = all.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => names.push_str("nothing"),
        MAX_NAMED.. if all.len() > MAX_NAMED => {
            names.push_str(&format!(" and {} more", all.len() - MAX_NAMED));
        }
        _ => {}
    }
    names
}

fn edited(operation: &Operation) -> String {
    match &operation.change {
        Edit::Added { step, .. } => format!("added {}", shown(step)),
        Edit::Replaced { step, .. } => format!("replaced the source of {}", shown(step)),
        Edit::Removed { step } => format!("removed {}", shown(step)),
        Edit::Moved { step, .. } => format!("moved {}", shown(step)),
        Edit::RolledBack { version } => format!("rolled back to {version}"),
        Edit::Input { name, .. } | Edit::InputJson { name, .. } => {
            format!("bound the input {}", shown(name))
        }
        _ => "changed the program".to_owned(),
    }
}
