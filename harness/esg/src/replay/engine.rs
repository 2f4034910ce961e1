//! The engine: passes over the program.
mod ask;
mod close;
mod perform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use super::live::Live;
use super::need::close;
use super::{Outside, Planned, Reason, Report};
use crate::blobs::Blobs;
use crate::error::EsgError;
use crate::exec::{Executor, Untracked};
use crate::ledger::{Journal, Ledger, Record};
use crate::model::{Entity, UnitKey};
use crate::state::State;
use crate::trace::{Execution, changed};

/// How often a replay may replace the worker because of untracked operations. Then everything runs.
const RENEWALS: usize = 8;

/// The options of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether the steps after a failed one do not run.
    pub(crate) stop_on_failure: bool,
    /// Whether the replay ends with a sweep of everything that is live.
    pub(crate) sweep: bool,
}

/// Runs a program in one worker, and records what happens.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) ledger: Ledger,
    pub(crate) journal: Option<Box<dyn Journal>>,
    pub(crate) blobs: Blobs,
    pub(crate) live: Live,
    pub(crate) name: Arc<str>,
    pub(crate) seq: u64,
    pub(crate) run: u64,
    /// Units whose stored form is lost.
    pub(crate) lost: BTreeSet<UnitKey>,
    /// Whether a replay ended early: what the worker holds may not be recorded.
    pub(crate) spoiled: bool,
    /// Clock readings to replay, by step.
    pub(crate) readings: BTreeMap<Arc<str>, Vec<Json>>,
}

/// A replay in progress.
struct Pass<'a> {
    steps: &'a [Planned],
    options: Options,
    /// Steps that run again to make unserializable values.
    forced: BTreeSet<Arc<str>>,
    /// Failed steps that do not run again in this pass. Otherwise each pass would make the
    /// unserializable values that a failed step read again after it, and the failed step would miss
    /// them indefinitely.
    spared: BTreeSet<Arc<str>>,
    /// Steps that run again in a fresh worker to leave what their untracked operations left.
    revived: BTreeSet<Arc<str>>,
    /// How often the worker was replaced because of untracked operations.
    renewed: usize,
    /// Everything runs, because something changed unseen or cannot be restored otherwise.
    full: bool,
    /// Running only the steps that made it does not restore what is missing.
    stuck: bool,
    reasons: BTreeMap<Arc<str>, Reason>,
    order: Vec<Arc<str>>,
    fresh: Vec<Arc<Execution>>,
    /// The execution that represents each step.
    chosen: BTreeMap<Arc<str>, Arc<Execution>>,
    /// The steps that ran since everything has to run.
    done: BTreeSet<Arc<str>>,
    /// A sweep follows each step that runs, to attribute unseen changes.
    watched: bool,
    widened: usize,
    /// The value of `widened` when a step last lacked something unserializable.
    used: usize,
    /// What steps read unexpectedly, and whether they read everything.
    looked_for: BTreeMap<Arc<str>, (BTreeSet<Entity>, bool)>,
}

impl<'a> Pass<'a> {
    fn new(steps: &'a [Planned], options: Options) -> Self {
        Self {
            steps,
            options,
            forced: BTreeSet::new(),
            spared: BTreeSet::new(),
            revived: BTreeSet::new(),
            renewed: 0,
            full: false,
            stuck: false,
            reasons: BTreeMap::new(),
            order: Vec::new(),
            fresh: Vec::new(),
            chosen: BTreeMap::new(),
            done: BTreeSet::new(),
            watched: false,
            widened: 0,
            used: 0,
            looked_for: BTreeMap::new(),
        }
    }

    /// Keeps the executions of failed steps from here on. `false` if all are kept already.
    fn spare_failed(&mut self) -> bool {
        let before = self.spared.len();
        let failed = self.chosen.iter().filter(|(_, execution)| !execution.ending.is_ok());
        self.spared.extend(failed.map(|(step, _)| step.clone()));
        self.spared.len() > before
    }
}

/// Whether every difference from what the failed step found leads to unserializable values, which
/// were only made again.
fn stands(failed: &Execution, state: &State, outside: &mut Outside) -> bool {
    let Some(changed) = changed(failed, state, outside) else { return true };
    changed.inputs.into_iter().chain(changed.aliases).all(|entity| {
        let behind = close(state, BTreeSet::from([entity]), std::collections::VecDeque::new());
        behind
            .iter()
            .filter_map(|entity| state.slot(entity))
            .any(|slot| slot.made.unit.unserializable.is_some())
    })
}

/// How a pass over the program ended.
enum Walked {
    /// It completed.
    Through(Box<State>),
    /// More steps have to run.
    Again,
    /// Nothing less than everything restores what is needed.
    Everything,
}

/// The result of trying to run a step.
enum Ended {
    Ran(Box<Execution>),
    /// These have to be made first.
    Missing(BTreeSet<Entity>),
    /// Untracked operations left something else in the worker than this step has to see.
    Elsewhere,
}

impl Engine {
    pub(crate) fn new(ledger: Ledger, executor: Box<dyn Executor>, blobs: Blobs) -> Self {
        Self {
            name: executor.fingerprint().into(),
            executor,
            journal: None,
            blobs,
            live: Live::default(),
            seq: ledger.history.last_seq(),
            run: ledger.run(),
            ledger,
            lost: BTreeSet::new(),
            spoiled: false,
            readings: BTreeMap::new(),
        }
    }

    /// Records what happened. Nothing counts before it is in the journal, after the values it refers
    /// to.
    pub(crate) fn commit(&mut self, record: Record) -> Result<(), EsgError> {
        if let Some(journal) = &mut self.journal {
            if matches!(record, Record::Ran(_)) {
                self.blobs.flush()?;
            }
            match &record {
                Record::Snapshot(_) => journal.compact(&record)?,
                _ => journal.append(std::slice::from_ref(&record))?,
            }
        }
        Ok(self.ledger.apply(&record)?)
    }

    /// Replays `steps`. Returns the report and the final state.
    pub(crate) fn replay(
        &mut self,
        steps: &[Planned],
        options: Options,
    ) -> Result<(Report, State), EsgError> {
        let begun = Instant::now();
        self.run += 1;
        let mut pass = Pass::new(steps, options);
        let mut state = self.settle(&mut pass)?;
        if !pass.full && options.sweep && !pass.order.is_empty() {
            let swept = self.sweep(&state)?;
            if swept.as_ref().is_none_or(|found| !found.is_empty()) {
                let unseen = swept.unwrap_or_default();
                pass.watched = !unseen.is_empty();
                state = self.everything(&mut pass)?;
                if pass.watched && !pass.chosen.values().any(|one| one.is_untracked()) {
                    self.attribute(&unseen, &mut pass, &mut state)?;
                }
            }
        }
        let report = self.report(&pass, begun.elapsed());
        self.settled(&pass)?;
        Ok((report, state))
    }

    /// Records the end of a replay.
    fn settled(&mut self, pass: &Pass<'_>) -> Result<(), EsgError> {
        let standing = pass.steps.iter().filter_map(|step| pass.chosen.get(&step.id));
        let executions = standing.map(|execution| execution.seq).collect();
        self.commit(Record::Settled { run: self.run, executions })
    }

    /// Runs everything in a fresh worker.
    fn everything(&mut self, pass: &mut Pass<'_>) -> Result<State, EsgError> {
        self.renew()?;
        pass.full = true;
        pass.order.clear();
        pass.done.clear();
        pass.forced.clear();
        pass.spared.clear();
        pass.revived.clear();
        self.settle(pass)
    }

    /// Continues in a fresh worker.
    fn renew(&mut self) -> Result<(), EsgError> {
        self.executor.fresh()?;
        self.live.clear();
        Ok(())
    }

    /// Runs every step in a fresh worker.
    pub(crate) fn whole(&mut self, steps: &[Planned], options: Options) -> Result<State, EsgError> {
        self.run += 1;
        let mut pass = Pass::new(steps, options);
        pass.full = true;
        let state = self.settle(&mut pass)?;
        self.settled(&pass)?;
        Ok(state)
    }

    fn settle(&mut self, pass: &mut Pass<'_>) -> Result<State, EsgError> {
        let settled = self.passes(pass);
        self.spoiled |= settled.is_err();
        settled
    }

    /// Makes passes until one completes.
    fn passes(&mut self, pass: &mut Pass<'_>) -> Result<State, EsgError> {
        loop {
            let known = (pass.forced.len(), pass.widened, pass.spared.len(), pass.renewed);
            match self.once(pass)? {
                Walked::Through(state) => return Ok(*state),
                Walked::Everything => return self.everything(pass),
                Walked::Again
                    if (pass.forced.len(), pass.widened, pass.spared.len(), pass.renewed)
                        == known =>
                {
                    if pass.full {
                        return Err(EsgError::unreachable_state());
                    }
                    pass.stuck = true;
                    return self.everything(pass);
                }
                Walked::Again => {}
            }
        }
    }

    /// Makes one pass over the program.
    fn once(&mut self, pass: &mut Pass<'_>) -> Result<Walked, EsgError> {
        let mut state = State::default();
        let mut outside = Outside::new(self.executor.readable());
        let steps = pass.steps;
        for step in steps {
            if pass.spared.contains(&step.id)
                && let Some(failed) = pass.chosen.get(&step.id)
                && stands(failed, &state, &mut outside)
            {
                state.apply(failed);
                continue;
            }
            let forced =
                pass.full && !pass.done.contains(&step.id) || pass.forced.contains(&step.id);
            let whole = forced && pass.full && !pass.stuck;
            let mut stands = if whole { None } else { self.valid(step, &state, &mut outside) };
            let keeps = |valid: &Execution| {
                !pass.revived.contains(&step.id)
                    || !valid.is_untracked()
                    || self.live.passed(state.past().residue_with(valid.identity()))
            };
            if let Some(valid) = stands.take_if(|valid| !forced && keeps(valid)) {
                state.apply(&valid);
                let failed = !valid.ending.is_ok();
                pass.chosen.insert(step.id.clone(), valid);
                if pass.options.stop_on_failure && failed {
                    break;
                }
                continue;
            }
            let reason = self.reason(pass, step, &state, &outside);
            let mut execution = match self.perform(step, &state, pass, stands.as_deref())? {
                Ended::Ran(execution) => *execution,
                Ended::Elsewhere => {
                    if pass.renewed >= RENEWALS {
                        pass.stuck = true;
                        return Ok(Walked::Everything);
                    }
                    self.renew()?;
                    pass.renewed += 1;
                    let before = steps.iter().take_while(|one| one.id != step.id);
                    let untracked = before.filter(|one| {
                        pass.chosen.get(&one.id).is_some_and(|chosen| chosen.is_untracked())
                    });
                    pass.revived = untracked.map(|one| one.id.clone()).collect();
                    return Ok(Walked::Again);
                }
                Ended::Missing(entities) => {
                    if self.force(pass, &state, &entities) {
                        return Ok(Walked::Again);
                    }
                    if pass.full {
                        return Err(EsgError::missing(&step.id, &entities));
                    }
                    pass.stuck = true;
                    return Ok(Walked::Everything);
                }
            };
            let past = state.past();
            state.apply(&execution);
            if pass.watched {
                let unseen = self.sweep(&state)?.unwrap_or_default();
                execution.trace.untracked.extend(unseen.into_iter().map(Untracked::of));
                state.set_past(execution.follows(past));
            }
            if execution.is_untracked() {
                self.live.entered(state.past().residue);
            }
            let execution = Arc::new(execution);
            self.commit(Record::Ran(execution.clone()))?;
            pass.reasons.entry(step.id.clone()).or_insert(reason);
            if pass.done.insert(step.id.clone()) {
                pass.order.push(step.id.clone());
            }
            pass.fresh.push(execution.clone());
            let failed = !execution.ending.is_ok();
            pass.chosen.insert(step.id.clone(), execution);
            if pass.options.stop_on_failure && failed {
                break;
            }
        }
        // Files and the process are as a full run leaves them, whichever step ran last.
        let missing = self.bring(&state, &state.world())?;
        if !missing.is_empty() && self.force(pass, &state, &missing) {
            return Ok(Walked::Again);
        }
        Ok(Walked::Through(Box::new(state)))
    }

    /// Forces the steps that make what is missing. `false` if all of them ran already.
    fn force(&self, pass: &mut Pass<'_>, state: &State, missing: &BTreeSet<Entity>) -> bool {
        let before = pass.forced.len();
        pass.forced.extend(self.makers(state, missing));
        // A discarded run consumed what the steps before it had made.
        let used = std::mem::replace(&mut pass.used, pass.widened) < pass.widened;
        if pass.forced.len() == before && !used {
            pass.forced.extend(self.changers(state, missing));
        }
        pass.forced.len() > before || used || pass.spare_failed()
    }

    /// The newest execution of the step's code that is valid in `state`.
    pub(crate) fn valid(
        &self,
        step: &Planned,
        state: &State,
        outside: &mut Outside,
    ) -> Option<Arc<Execution>> {
        let executions = self.ledger.history.of(&step.id, step.syntax, &self.name);
        for execution in executions.filter(|execution| !execution.ending.is_accident()) {
            for (entity, read) in &execution.trace.reads {
                if matches!(entity, Entity::Package(_)) {
                    outside.trust_package(entity, read.outside.clone());
                }
            }
            if changed(execution, state, outside).is_none() {
                return Some(execution.clone());
            }
        }
        None
    }

    /// Why the step runs.
    fn reason(&self, pass: &Pass<'_>, step: &Planned, state: &State, outside: &Outside) -> Reason {
        if pass.full && !pass.stuck {
            return Reason::Untracked;
        }
        let stale = self.stale(step, state, outside);
        let forced =
            pass.stuck || pass.forced.contains(&step.id) || pass.revived.contains(&step.id);
        if forced && !matches!(stale, Some(Reason::New | Reason::Edited)) {
            return Reason::Rebuilt;
        }
        stale.unwrap_or(Reason::Invalidated)
    }

    /// Why the step's latest execution is not valid in `state`; `None` if it is.
    pub(crate) fn stale(&self, step: &Planned, state: &State, outside: &Outside) -> Option<Reason> {
        let Some(latest) = self.ledger.history.latest(&step.id) else { return Some(Reason::New) };
        if latest.syntax != step.syntax {
            return Some(Reason::Edited);
        }
        if latest.executor != self.name {
            return Some(Reason::Worker);
        }
        if self.ledger.history.is_invalid(latest) {
            return Some(Reason::Invalidated);
        }
        if latest.ending.is_accident() {
            return Some(Reason::Accident);
        }
        changed(latest, state, outside).map(Reason::from)
    }
}
