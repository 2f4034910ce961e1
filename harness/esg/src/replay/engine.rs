//! The pass over the program.
mod close;
mod perform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::live::Live;
use super::need::close;
use super::{History, Outside, Planned, Reason, Report};
use crate::blobs::Blobs;
use crate::error::EsgError;
use crate::exec::{ExecError, Executor};
use crate::model::{Entity, UnitKey};
use crate::state::State;
use crate::trace::{Execution, changed};

/// How many workers in a row may die at the same thing, when no step is to blame.
const DEATHS: usize = 3;

/// How a replay goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether the steps after one that failed are left alone.
    pub(crate) stop_on_failure: bool,
    /// Whether everything that is live is looked at in the end.
    pub(crate) sweep: bool,
}

/// Runs programs in one worker, and knows all executions so far.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) history: History,
    pub(crate) blobs: Blobs,
    pub(crate) live: Live,
    pub(crate) name: Arc<str>,
    pub(crate) seq: u64,
    pub(crate) run: u64,
    /// Units whose stored form turned out to be lost.
    pub(crate) lost: BTreeSet<UnitKey>,
    /// Whether a step has run in this worker that touched what is not tracked: no other program must
    /// run in it.
    pub(crate) tainted: bool,
    /// The execution that stands for each step since the last replay.
    pub(crate) chosen: BTreeMap<Arc<str>, Arc<Execution>>,
    /// The executions that stood after each replay, in the order of the program then.
    pub(crate) runs: BTreeMap<u64, Vec<Arc<Execution>>>,
    /// Readings of clocks to give again, by step.
    pub(crate) readings: BTreeMap<Arc<str>, Vec<Json>>,
}

/// One replay under way.
struct Pass<'a> {
    steps: &'a [Planned],
    options: Options,
    /// Steps that run again to make what can not be stored.
    forced: BTreeSet<Arc<str>>,
    /// Failed steps that do not run again in this pass. Whatever a failed step looked at and what can
    /// not be stored is made again behind it, and would be lost to it for ever.
    spared: BTreeSet<Arc<str>>,
    /// Everything runs, as something is untracked, or can not be brought back otherwise.
    full: bool,
    /// What is missing can not be brought back by running only what made it.
    stuck: bool,
    reasons: BTreeMap<Arc<str>, Reason>,
    order: Vec<Arc<str>>,
    fresh: Vec<Arc<Execution>>,
    /// The execution that stands for each step.
    chosen: BTreeMap<Arc<str>, Arc<Execution>>,
    /// The steps that ran since everything has to.
    done: BTreeSet<Arc<str>>,
    /// A step of the program is known to touch what is not tracked.
    untracked: bool,
    widened: usize,
    /// How often that was when a step last lacked what can not be stored.
    used: usize,
    /// What steps looked at though nobody expected it, and whether that was everything.
    looked_for: BTreeMap<Arc<str>, (BTreeSet<Entity>, bool)>,
}

impl<'a> Pass<'a> {
    fn new(steps: &'a [Planned], options: Options) -> Self {
        Self {
            steps,
            options,
            forced: BTreeSet::new(),
            spared: BTreeSet::new(),
            full: false,
            stuck: false,
            reasons: BTreeMap::new(),
            order: Vec::new(),
            fresh: Vec::new(),
            chosen: BTreeMap::new(),
            done: BTreeSet::new(),
            untracked: false,
            widened: 0,
            used: 0,
            looked_for: BTreeMap::new(),
        }
    }

    /// Lets steps that have failed stand from here on. `false` if all of them do already.
    fn spare_failed(&mut self) -> bool {
        let before = self.spared.len();
        let failed = self.chosen.iter().filter(|(_, execution)| !execution.ending.is_ok());
        self.spared.extend(failed.map(|(step, _)| step.clone()));
        self.spared.len() > before
    }
}

/// Whether all that is not as a step found it leads to what can not be stored: that was only made
/// again.
fn stands(failed: &Execution, state: &State, outside: &mut Outside) -> bool {
    let Some(changed) = changed(failed, state, outside) else { return true };
    changed.inputs.into_iter().chain(changed.aliases).all(|entity| {
        let behind = close(state, BTreeSet::from([entity]), std::collections::VecDeque::new());
        behind
            .iter()
            .filter_map(|entity| state.slot(entity))
            .any(|slot| slot.made.unit.hole.is_some())
    })
}

/// How a walk through the program ended.
enum Walked {
    /// At its end.
    Through(State),
    /// More steps have to be forced.
    Again,
    /// Something has to run, and something is untracked.
    Everything,
}

/// What came of wanting to run a step.
enum Ended {
    Ran(Box<Execution>),
    /// These have to be made first.
    Missing(BTreeSet<Entity>),
}

/// Who is told of an execution before the next step runs.
pub(crate) type Told<'a> = &'a mut dyn FnMut(&Arc<Execution>, &mut Blobs) -> Result<(), EsgError>;

impl Engine {
    pub(crate) fn new(executor: Box<dyn Executor>, blobs: Blobs) -> Self {
        let name = executor.fingerprint().into();
        Self {
            executor,
            history: History::default(),
            blobs,
            live: Live::default(),
            name,
            seq: 0,
            run: 0,
            lost: BTreeSet::new(),
            tainted: false,
            chosen: BTreeMap::new(),
            runs: BTreeMap::new(),
            readings: BTreeMap::new(),
        }
    }

    /// Goes through `steps`, and answers with what it did and the state at the end.
    pub(crate) fn replay(
        &mut self,
        steps: &[Planned],
        options: Options,
        told: Told<'_>,
    ) -> Result<(Report, State), EsgError> {
        self.run += 1;
        let mut pass = Pass::new(steps, options);
        pass.untracked = self.is_untracked(steps);
        let mut state = self.settle(&mut pass, told)?;
        if !pass.full {
            let doubtful = pass.chosen.values().any(|execution| execution.is_doubtful());
            // What is not tracked may have led from one step to another: that holds only as long as
            // all of them are there, in this order.
            let everything = doubtful && (!pass.order.is_empty() || self.differs(&pass))
                || options.sweep && !pass.order.is_empty() && !self.sweep(&state, &pass, told)?;
            if everything {
                state = self.everything(&mut pass, told)?;
            }
        }
        let report = self.report(&pass);
        self.chosen = pass.chosen;
        self.runs.insert(self.run, self.standing(steps).cloned().collect());
        Ok((report, state))
    }

    /// Whether other executions stand now than after the last replay, or in another order.
    fn differs(&self, pass: &Pass<'_>) -> bool {
        let last = self.runs.last_key_value().map_or(&[][..], |(_, run)| run);
        let now = pass.steps.iter().filter_map(|step| pass.chosen.get(&step.id));
        !now.map(|one| one.seq).eq(last.iter().map(|one| one.seq))
    }

    /// Runs everything in a fresh worker.
    fn everything(&mut self, pass: &mut Pass<'_>, told: Told<'_>) -> Result<State, EsgError> {
        self.renew()?;
        pass.full = true;
        pass.order.clear();
        pass.done.clear();
        pass.forced.clear();
        pass.spared.clear();
        self.settle(pass, told)
    }

    /// Goes on in a fresh worker.
    fn renew(&mut self) -> Result<(), EsgError> {
        self.executor.fresh()?;
        self.live.clear();
        self.tainted = false;
        Ok(())
    }

    /// Runs every step, in a worker that is fresh.
    pub(crate) fn whole(&mut self, steps: &[Planned], options: Options) -> Result<State, EsgError> {
        self.run += 1;
        let mut pass = Pass::new(steps, options);
        pass.full = true;
        let state = self.settle(&mut pass, &mut |_, _| Ok(()))?;
        self.chosen = pass.chosen;
        Ok(state)
    }

    /// The executions that stand for `steps` since the last replay.
    pub(crate) fn standing<'a>(
        &'a self,
        steps: &'a [Planned],
    ) -> impl Iterator<Item = &'a Arc<Execution>> {
        steps.iter().filter_map(|step| self.chosen.get(&step.id))
    }

    /// Takes over which executions stood after a replay of an earlier process.
    pub(crate) fn settled(&mut self, run: u64, executions: &[u64]) {
        let known =
            executions.iter().filter_map(|seq| self.history.by_seq(*seq)).cloned().collect();
        self.run = self.run.max(run);
        self.runs.insert(run, known);
    }

    /// Takes over an execution from an earlier process.
    pub(crate) fn remember(&mut self, execution: Arc<Execution>) {
        self.seq = self.seq.max(execution.seq);
        self.run = self.run.max(execution.run);
        self.history.push(execution);
    }

    fn settle(&mut self, pass: &mut Pass<'_>, told: Told<'_>) -> Result<State, EsgError> {
        loop {
            let known = (pass.forced.len(), pass.widened, pass.spared.len());
            match self.once(pass, told)? {
                Walked::Through(state) => return Ok(state),
                Walked::Everything => return self.everything(pass, told),
                Walked::Again if (pass.forced.len(), pass.widened, pass.spared.len()) == known => {
                    if pass.full {
                        return Err(EsgError::unreachable_state());
                    }
                    pass.stuck = true;
                    return self.everything(pass, told);
                }
                Walked::Again => {}
            }
        }
    }

    /// Goes through the program once.
    fn once(&mut self, pass: &mut Pass<'_>, told: Told<'_>) -> Result<Walked, EsgError> {
        let mut state = State::default();
        let mut outside = Outside::default();
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
            if !forced && let Some(valid) = self.valid(step, &state, &mut outside) {
                state.apply(&valid);
                let failed = !valid.ending.is_ok();
                pass.chosen.insert(step.id.clone(), valid);
                if pass.options.stop_on_failure && failed {
                    break;
                }
                continue;
            }
            if pass.untracked && !pass.full {
                return Ok(Walked::Everything);
            }
            if self.tainted && !pass.full {
                // What a step of this pass made may be lost with the worker, and never come back.
                if pass.fresh.iter().any(|execution| execution.is_untracked()) {
                    return Ok(Walked::Everything);
                }
                self.renew()?;
            }
            let reason = self.reason(pass, step, &state, &outside);
            let execution = match self.perform(step, &state, pass)? {
                Ended::Ran(execution) => *execution,
                Ended::Missing(entities) => {
                    let makers = self.makers(&state, &entities);
                    let before = pass.forced.len();
                    pass.forced.extend(makers);
                    // A run that was discarded used up what its makers had made.
                    let used = std::mem::replace(&mut pass.used, pass.widened) < pass.widened;
                    if pass.forced.len() == before && !used {
                        pass.forced.extend(self.changers(&state, &entities));
                    }
                    if pass.forced.len() == before && !used && !pass.spare_failed() {
                        if pass.full {
                            return Err(EsgError::missing(&step.id, &entities));
                        }
                        pass.stuck = true;
                        return Ok(Walked::Everything);
                    }
                    return Ok(Walked::Again);
                }
            };
            let execution = Arc::new(execution);
            self.history.push(execution.clone());
            told(&execution, &mut self.blobs)?;
            pass.reasons.entry(step.id.clone()).or_insert(reason);
            if pass.done.insert(step.id.clone()) {
                pass.order.push(step.id.clone());
            }
            pass.fresh.push(execution.clone());
            state.apply(&execution);
            let failed = !execution.ending.is_ok();
            pass.chosen.insert(step.id.clone(), execution);
            if pass.options.stop_on_failure && failed {
                break;
            }
        }
        Ok(Walked::Through(state))
    }

    /// The newest execution of the step's code that is valid in `state`.
    pub(crate) fn valid(
        &self,
        step: &Planned,
        state: &State,
        outside: &mut Outside,
    ) -> Option<Arc<Execution>> {
        let executions = self.history.of(&step.id, step.syntax, &self.name);
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
        let forced = pass.stuck || pass.forced.contains(&step.id);
        if forced && !matches!(stale, Some(Reason::New | Reason::Edited)) {
            return Reason::Rebuilt;
        }
        stale.unwrap_or(Reason::Invalidated)
    }

    /// Why the step's latest execution does not hold in `state`; `None` if it does.
    pub(crate) fn stale(&self, step: &Planned, state: &State, outside: &Outside) -> Option<Reason> {
        let Some(latest) = self.history.latest(&step.id) else { return Some(Reason::New) };
        if latest.syntax != step.syntax {
            return Some(Reason::Edited);
        }
        if latest.executor != self.name {
            return Some(Reason::Worker);
        }
        if self.history.is_invalid(latest) {
            return Some(Reason::Invalidated);
        }
        if latest.ending.is_accident() {
            return Some(Reason::Accident);
        }
        changed(latest, state, outside).map(Reason::from)
    }

    pub(crate) fn is_untracked(&self, steps: &[Planned]) -> bool {
        steps.iter().any(|step| {
            self.history
                .latest(&step.id)
                .is_some_and(|latest| latest.syntax == step.syntax && latest.is_doubtful())
        })
    }

    /// Brings what is asked for, or everything, to the worker; what can not be stored is made again.
    fn materialise(
        &mut self,
        steps: &[Planned],
        state: &mut State,
        only: Option<&BTreeSet<Entity>>,
        options: Options,
        told: Told<'_>,
    ) -> Result<(), EsgError> {
        let mut pass = Pass::new(steps, options);
        loop {
            let all = || state.entities().map(|(entity, _)| entity.clone()).collect();
            let wanted = only.cloned().unwrap_or_else(all);
            let needed = close(state, wanted, std::collections::VecDeque::new());
            let missing = self.bring(state, &needed)?;
            if missing.is_empty() {
                return Ok(());
            }
            let before = pass.forced.len();
            let makers = self.makers(state, &missing);
            pass.forced.extend(makers);
            if pass.forced.len() > before || pass.spare_failed() {
                *state = self.settle(&mut pass, told)?;
            } else if pass.full {
                return Err(EsgError::unreachable_state());
            } else {
                pass.stuck = true;
                *state = self.everything(&mut pass, told)?;
            }
        }
    }

    /// Brings what is asked for, or everything, to the worker, and asks it something; again, if the
    /// worker is lost meanwhile.
    pub(crate) fn ask<T>(
        &mut self,
        steps: &[Planned],
        state: &mut State,
        only: Option<&BTreeSet<Entity>>,
        options: Options,
        told: Told<'_>,
        ask: impl Fn(&mut dyn Executor) -> Result<T, ExecError>,
    ) -> Result<T, EsgError> {
        let mut deaths = 0;
        loop {
            self.materialise(steps, state, only, options, &mut *told)?;
            match ask(&mut *self.executor) {
                Err(error) if self.survives(&error, &mut deaths) => {}
                answer => return Ok(answer?),
            }
        }
    }

    /// Takes note that the worker is lost, if it is: then the same may be tried with the next one.
    pub(crate) fn survives(&mut self, error: &ExecError, deaths: &mut usize) -> bool {
        if error.lost() {
            // What was live can be loaded into the next worker.
            self.live.clear();
            *deaths += 1;
        }
        error.lost() && *deaths <= DEATHS
    }
}
