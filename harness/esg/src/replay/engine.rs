//! The engine: does what `pass` decides.
mod ask;
mod close;
mod graft;
mod perform;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use super::live::Live;
use super::need::close;
use super::pass::{Action, Event, Pass, Valid, advance};
use super::{Options, Outside, Planned, Reason, Report};
use crate::blobs::Blobs;
use crate::error::EsgError;
use crate::exec::{Executor, Untracked};
use crate::ledger::{Journal, Ledger, Record};
use crate::model::{Entity, UnitKey};
use crate::state::State;
use crate::trace::{Execution, changed};

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
    /// The present texts of steps whose code ran with another layout before, and the last execution
    /// before they had these.
    texts: BTreeMap<Arc<str>, (Arc<str>, u64)>,
    /// Whether the steps run on another machine: what they read there cannot be looked at.
    pub(crate) elsewhere: bool,
}

/// Where a pass is.
struct Walk {
    /// The state so far.
    state: State,
    outside: Outside,
    /// The valid execution of the present step.
    valid: Option<Arc<Execution>>,
    /// What the present step needs and no blob has.
    missing: BTreeSet<Entity>,
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

/// Keeps the valid execution of the present step. Returns whether it failed.
fn keep(pass: &mut Pass<'_>, walk: &mut Walk) -> bool {
    let Some(valid) = walk.valid.take() else { return false };
    walk.state.apply(&valid);
    let failed = !valid.ending.is_ok();
    pass.chosen.insert(pass.step().id.clone(), valid);
    failed
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
            texts: BTreeMap::new(),
            elsewhere: false,
        }
    }

    /// What is outside of the state, as it is now.
    pub(crate) fn outside(&self) -> Outside {
        match self.elsewhere {
            true => Outside::unseen(),
            false => Outside::new(self.executor.readable()),
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
        self.notice(steps);
        let mut pass = Pass::new(steps, options);
        let mut state = self.settle(&mut pass)?;
        let (mut event, mut unseen) = (Event::Settled, Vec::new());
        loop {
            event = match advance(&pass, event) {
                Action::Sweep => {
                    let swept = self.sweep(&state)?;
                    let count = swept.as_ref().map(Vec::len);
                    unseen = swept.unwrap_or_default();
                    Event::Swept { unseen: count }
                }
                Action::Everything { stuck, watched } => {
                    self.everything(&mut pass, stuck, watched)?;
                    state = self.settle(&mut pass)?;
                    Event::Settled
                }
                Action::Attribute => {
                    self.attribute(&unseen, &mut pass, &mut state)?;
                    break;
                }
                _ => break,
            };
        }
        let report = self.report(&pass, begun.elapsed());
        self.settled(&pass)?;
        Ok((report, state))
    }

    /// Takes in which steps have another text than their code ran with.
    pub(crate) fn notice(&mut self, steps: &[Planned]) {
        let before = std::mem::take(&mut self.texts);
        for step in steps {
            let known = before.get(&step.id);
            let moved = |one: &&Arc<Execution>| known.is_some() || one.source != step.source;
            let latest = self.ledger.history.latest(&step.id);
            if latest.filter(|one| one.syntax == step.syntax).is_some_and(|one| moved(&one)) {
                let since = known.filter(|(text, _)| *text == step.source).map(|(_, since)| *since);
                let text = (step.source.clone(), since.unwrap_or(self.seq));
                self.texts.insert(step.id.clone(), text);
            }
        }
    }

    /// Whether the execution failed or printed something at lines that have moved since.
    fn shows_old_lines(&self, step: &Planned, execution: &Execution) -> bool {
        execution.source != step.source && execution.shows_lines_of(&step.id)
            || self.texts.iter().any(|(id, (_, since))| {
                *id != step.id && execution.seq <= *since && execution.shows_lines_of(id)
            })
    }

    /// Records the end of a replay.
    fn settled(&mut self, pass: &Pass<'_>) -> Result<(), EsgError> {
        let standing = pass.steps.iter().filter_map(|step| pass.chosen.get(&step.id));
        let executions = standing.map(|execution| execution.seq).collect();
        self.commit(Record::Settled { run: self.run, executions })
    }

    /// From here on everything runs, in a fresh worker.
    fn everything(
        &mut self,
        pass: &mut Pass<'_>,
        stuck: bool,
        watched: bool,
    ) -> Result<(), EsgError> {
        self.renew()?;
        pass.full = true;
        pass.stuck |= stuck;
        pass.watched |= watched;
        pass.done.clear();
        pass.forced.clear();
        pass.spared.clear();
        pass.revived.clear();
        Ok(())
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
        let mut walk = self.begin(pass);
        let mut event = Event::Begun;
        loop {
            event = match advance(pass, event) {
                Action::Look(at) => self.look(pass, &mut walk, at),
                // Of a step that does not run, the names may be there in the order of a program before an edit.
                Action::Spare => {
                    self.live.disorder();
                    if let Some(failed) = pass.chosen.get(&pass.step().id) {
                        walk.state.apply(failed);
                    }
                    Event::Past { failed: false }
                }
                Action::Keep => {
                    self.live.disorder();
                    Event::Past { failed: keep(pass, &mut walk) }
                }
                Action::Run => self.attempt(pass, &mut walk)?,
                Action::Restore => {
                    // Files and the process are as a full run leaves them, whichever step ran last.
                    let missing = self.bring(&walk.state, &walk.state.world())?;
                    let more = !missing.is_empty() && self.force(pass, &walk.state, &missing);
                    Event::Restored { more }
                }
                Action::Again => {
                    walk = self.begin(pass);
                    Event::Begun
                }
                Action::Renew => {
                    self.renew()?;
                    pass.renewed += 1;
                    let before = pass.steps[..pass.at].iter();
                    let untracked = before.filter(|one| {
                        pass.chosen.get(&one.id).is_some_and(|chosen| chosen.is_untracked())
                    });
                    pass.revived = untracked.map(|one| one.id.clone()).collect();
                    walk = self.begin(pass);
                    Event::Begun
                }
                Action::Everything { stuck, watched } => {
                    self.everything(pass, stuck, watched)?;
                    walk = self.begin(pass);
                    Event::Begun
                }
                Action::Fail => return Err(EsgError::missing(&pass.step().id, &walk.missing)),
                Action::Unreachable => return Err(EsgError::unreachable_state()),
                Action::Sweep | Action::Attribute | Action::Done => return Ok(walk.state),
            };
        }
    }

    fn begin(&self, pass: &mut Pass<'_>) -> Walk {
        pass.begin();
        Walk {
            state: State::default(),
            outside: self.outside(),
            valid: None,
            missing: BTreeSet::new(),
        }
    }

    /// Looks at a step.
    fn look(&self, pass: &mut Pass<'_>, walk: &mut Walk, at: usize) -> Event {
        pass.at = at;
        let step = pass.step();
        let spared = pass.spared.contains(&step.id)
            && pass
                .chosen
                .get(&step.id)
                .is_some_and(|failed| stands(failed, &walk.state, &mut walk.outside));
        walk.valid = None;
        if !spared && !pass.is_whole() {
            walk.valid = self.valid(step, &walk.state, &mut walk.outside);
        }
        let absent = |valid: &Execution| {
            valid.is_untracked()
                && !self.live.passed(walk.state.past().residue_with(valid.identity()))
        };
        let valid = walk.valid.as_deref().map(|valid| Valid { absent: absent(valid) });
        Event::Looked { spared, valid }
    }

    /// Runs the present step, if what it needs is there.
    fn attempt(&mut self, pass: &mut Pass<'_>, walk: &mut Walk) -> Result<Event, EsgError> {
        if walk.valid.is_none()
            && !pass.is_forced()
            && let Some(execution) = self.graft(pass.step(), walk)?
        {
            return self.grafted(pass, walk, execution);
        }
        let (step, state) = (pass.step(), &mut walk.state);
        let reason = self.reason(pass, step, state, &walk.outside);
        let mut execution = match self.perform(step, state, pass, walk.valid.as_deref())? {
            Ended::Ran(execution) => *execution,
            Ended::Elsewhere => return Ok(Event::Elsewhere),
            Ended::Missing(missing) => {
                let more = self.force(pass, state, &missing);
                walk.missing = missing;
                return Ok(Event::Missing { more });
            }
        };
        let past = state.past();
        state.apply(&execution);
        if pass.watched {
            let unseen = self.sweep(state)?.unwrap_or_default();
            execution.trace.untracked.extend(unseen.into_iter().map(Untracked::of));
            state.set_past(execution.follows(past));
        }
        if execution.is_untracked() {
            self.live.entered(state.past().residue);
        }
        let execution = Arc::new(execution);
        self.commit(Record::Ran(execution.clone()))?;
        pass.reasons.entry(step.id.clone()).or_insert(reason);
        pass.done.insert(step.id.clone());
        let failed = !execution.ending.is_ok();
        pass.chosen.insert(step.id.clone(), execution);
        Ok(Event::Past { failed })
    }

    /// Keeps the present step, with an execution that no run of it made.
    fn grafted(
        &mut self,
        pass: &mut Pass<'_>,
        walk: &mut Walk,
        execution: Execution,
    ) -> Result<Event, EsgError> {
        walk.state.apply(&execution);
        if execution.is_untracked() {
            self.live.entered(walk.state.past().residue);
        }
        let execution = Arc::new(execution);
        self.commit(Record::Ran(execution.clone()))?;
        pass.chosen.insert(pass.step().id.clone(), execution);
        Ok(Event::Past { failed: false })
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
        let stands =
            |one: &&Arc<Execution>| !one.ending.is_accident() && !self.shows_old_lines(step, one);
        for execution in executions.filter(stands) {
            for (entity, read) in &execution.trace.reads {
                if outside.trusts(entity) {
                    outside.trust(entity, read.outside.clone());
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
        if self.shows_old_lines(step, latest) {
            return Some(Reason::Edited);
        }
        changed(latest, state, outside).map(Reason::from)
    }
}
