//! The pass over the program.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use super::live::Live;
use super::need::{close, need};
use super::{Blocked, History, Outside, Planned, Reason, Report};
use crate::esg::blobs::Blobs;
use crate::esg::error::EsgError;
use crate::esg::exec::{Ending, Executor, Ran, RunStep, Synced, Untracked};
use crate::esg::model::{Entity, UnitKey};
use crate::esg::state::{Made, State};
use crate::esg::trace::{Execution, Recorder, changed, unify};

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
    /// The execution that stands for each step since the last replay.
    pub(crate) chosen: BTreeMap<Arc<str>, Arc<Execution>>,
}

/// One replay under way.
struct Pass<'a> {
    steps: &'a [Planned],
    options: Options,
    /// Steps that run again to make what can not be stored.
    forced: BTreeSet<Arc<str>>,
    /// Everything runs, as something is untracked.
    full: bool,
    reasons: BTreeMap<Arc<str>, Reason>,
    order: Vec<Arc<str>>,
    fresh: Vec<Arc<Execution>>,
    /// The execution that stands for each step.
    chosen: BTreeMap<Arc<str>, Arc<Execution>>,
    /// A step of the program is known to touch what is not tracked.
    untracked: bool,
    widened: usize,
}

impl<'a> Pass<'a> {
    fn new(steps: &'a [Planned], options: Options) -> Self {
        Self {
            steps,
            options,
            forced: BTreeSet::new(),
            full: false,
            reasons: BTreeMap::new(),
            order: Vec::new(),
            fresh: Vec::new(),
            chosen: BTreeMap::new(),
            untracked: false,
            widened: 0,
        }
    }
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
            chosen: BTreeMap::new(),
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
        if !pass.full && !pass.order.is_empty() {
            let untracked = pass.chosen.values().any(|execution| execution.is_untracked());
            if untracked || options.sweep && !self.sweep(&state, &pass, told)? {
                state = self.everything(&mut pass, told)?;
            }
        }
        let report = self.report(&pass);
        self.chosen = pass.chosen;
        Ok((report, state))
    }

    /// Runs everything in a fresh worker.
    fn everything(&mut self, pass: &mut Pass<'_>, told: Told<'_>) -> Result<State, EsgError> {
        self.executor.fresh()?;
        self.live.clear();
        pass.full = true;
        pass.order.clear();
        self.settle(pass, told)
    }

    fn settle(&mut self, pass: &mut Pass<'_>, told: Told<'_>) -> Result<State, EsgError> {
        loop {
            let forced = pass.forced.len();
            match self.once(pass, told)? {
                Walked::Through(state) => return Ok(state),
                Walked::Everything => return self.everything(pass, told),
                Walked::Again if pass.forced.len() == forced => {
                    return Err(EsgError::unreachable_state());
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
            let forced = pass.full || pass.forced.contains(&step.id);
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
            let reason = self.reason(pass, step, &state, &outside);
            let execution = match self.perform(step, &state, pass)? {
                Ended::Ran(execution) => *execution,
                Ended::Missing(entities) => {
                    let makers = self.makers(&state, &entities);
                    let before = pass.forced.len();
                    pass.forced.extend(makers);
                    if pass.forced.len() == before {
                        return Err(EsgError::missing(&step.id, &entities));
                    }
                    return Ok(Walked::Again);
                }
            };
            let execution = Arc::new(execution);
            self.history.push(execution.clone());
            told(&execution, &mut self.blobs)?;
            pass.reasons.entry(step.id.clone()).or_insert(reason);
            if !pass.order.contains(&step.id) {
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
        for execution in self.history.of(&step.id, step.syntax, &self.name) {
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
        if pass.full {
            return Reason::Untracked;
        }
        let stale = self.stale(step, state, outside);
        if pass.forced.contains(&step.id) && !matches!(stale, Some(Reason::New | Reason::Edited)) {
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
        changed(latest, state, outside).map(Reason::from)
    }

    /// Runs the step on `state`.
    fn perform(
        &mut self,
        step: &Planned,
        state: &State,
        pass: &mut Pass<'_>,
    ) -> Result<Ended, EsgError> {
        let mut more = BTreeSet::new();
        let mut all = pass.full;
        loop {
            let before: Vec<_> =
                self.history.of(&step.id, step.syntax, &self.name).cloned().collect();
            let needed = need(step, state, before.iter().map(Arc::as_ref), &more, all);
            let missing = self.bring(state, &needed)?;
            if !missing.is_empty() {
                return Ok(Ended::Missing(missing));
            }
            self.seq += 1;
            let started = SystemTime::now();
            let ran = self.executor.run(&RunStep {
                seq: self.seq,
                step: &step.id,
                source: &step.source,
                bind: step.bind.as_ref().map(|(name, value)| (&**name, value)),
                readings: None,
            })?;
            let short = self.short(&ran, state);
            if !short.is_empty() {
                self.discard(&ran);
                pass.widened += 1;
                all |= ran.reads.contains(&Entity::Everything);
                more.extend(short);
                continue;
            }
            let mut execution = self.record(step, state, &needed, started, ran)?;
            // In a fresh worker there are no old objects to put back.
            if !pass.full
                && execution.ending.is_ok()
                && let Some(old) = self.last_good(&step.id)
            {
                unify(&mut execution, &old, &|key| self.live.knows(key));
            }
            return Ok(Ended::Ran(Box::new(execution)));
        }
    }

    /// What the step looked at and was not shown, though it is there.
    fn short(&self, ran: &Ran, state: &State) -> BTreeSet<Entity> {
        if ran.lost {
            return BTreeSet::new();
        }
        let absent = |entity: &Entity| state.slot(entity).is_some() && !self.live.has(entity);
        if ran.reads.contains(&Entity::Everything) {
            let names = state.entities().map(|(entity, _)| entity);
            return names
                .filter(|one| matches!(one, Entity::Name(_)) && absent(one))
                .cloned()
                .collect();
        }
        ran.reads.iter().filter(|entity| absent(entity)).cloned().collect()
    }

    /// Moves the worker to `state`, as far as needed. What can not be had comes back.
    pub(crate) fn bring(
        &mut self,
        state: &State,
        needed: &BTreeSet<Entity>,
    ) -> Result<BTreeSet<Entity>, EsgError> {
        loop {
            let (blobs, lost) = (&mut self.blobs, &self.lost);
            let mut read = |made: &Made| {
                let stored = made.stored.as_ref().filter(|_| !lost.contains(&made.unit.key))?;
                blobs.value(stored)
            };
            let moves = self.live.moves(state, needed, &mut read);
            let synced = if moves.sync.is_empty() {
                Synced::default()
            } else {
                self.executor.sync(&moves.sync)?
            };
            if synced.failed.is_empty() {
                return Ok(moves.missing);
            }
            self.live.failed(&synced);
            for (key, why) in &synced.failed {
                tracing::warn!(unit = %key, why, "a stored value does not load, and is made again");
                self.lost.insert(key.clone());
            }
        }
    }

    /// What the step did does not count: its traces leave the worker.
    fn discard(&mut self, ran: &Ran) {
        let mut dirty = ran.dirty.clone();
        dirty.extend(ran.wrote.keys().cloned());
        dirty.extend(
            ran.units
                .iter()
                .flat_map(|(unit, _)| &unit.members)
                .map(|member| member.entity.clone()),
        );
        if ran.lost {
            self.live.clear();
        }
        self.live.spoil(dirty);
    }

    fn record(
        &mut self,
        step: &Planned,
        state: &State,
        shown: &BTreeSet<Entity>,
        started: SystemTime,
        mut ran: Ran,
    ) -> Result<Execution, EsgError> {
        let mut made = Vec::with_capacity(ran.units.len());
        for (unit, blob) in std::mem::take(&mut ran.units) {
            let stored = match blob {
                Some(bytes) if unit.hole.is_none() => Some(self.blobs.keep(&bytes)?),
                _ => None,
            };
            made.push(Made { unit, stored });
        }
        if ran.lost {
            self.live.clear();
        } else if ran.ending.is_ok() {
            self.live.ran(&ran, &made);
        } else {
            self.discard(&ran);
        }
        let recorder = Recorder {
            seq: self.seq,
            run: self.run,
            step: &step.id,
            syntax: step.syntax,
            source: &step.source,
            executor: &self.name,
            started,
            before: state,
            shown,
        };
        Ok(recorder.record(ran, made))
    }

    fn last_good(&self, step: &Arc<str>) -> Option<Arc<Execution>> {
        let all = self.history.all().iter().rev();
        let mut same =
            all.filter(|execution| execution.step == *step && execution.executor == self.name);
        same.find(|execution| execution.ending.is_ok()).cloned()
    }

    /// The steps that made what is missing, from the first on.
    fn makers(&self, state: &State, missing: &BTreeSet<Entity>) -> BTreeSet<Arc<str>> {
        let mut open: Vec<UnitKey> = missing
            .iter()
            .filter_map(|entity| state.slot(entity))
            .filter(|slot| self.cannot_load(&slot.made))
            .map(|slot| slot.key().clone())
            .collect();
        let (mut seen, mut makers) = (BTreeSet::new(), BTreeSet::new());
        while let Some(key) = open.pop() {
            if seen.insert(key.clone())
                && let Some(execution) = self.history.maker(&key)
            {
                makers.insert(execution.step.clone());
                open.extend(execution.trace.holes.iter().cloned());
            }
        }
        makers
    }

    fn cannot_load(&self, made: &Made) -> bool {
        made.stored.is_none() || self.lost.contains(&made.unit.key) || {
            let stored = made.stored.as_ref();
            !stored.is_some_and(|stored| self.blobs.has(stored))
        }
    }

    pub(crate) fn is_untracked(&self, steps: &[Planned]) -> bool {
        steps.iter().any(|step| {
            self.history
                .latest(&step.id)
                .is_some_and(|latest| latest.syntax == step.syntax && latest.is_untracked())
        })
    }

    /// Brings everything that is stored or can be made to the worker.
    pub(crate) fn materialise(
        &mut self,
        steps: &[Planned],
        state: State,
        options: Options,
        told: Told<'_>,
    ) -> Result<State, EsgError> {
        let mut pass = Pass::new(steps, options);
        let mut state = state;
        loop {
            let all = state.entities().map(|(entity, _)| entity.clone()).collect();
            let needed = close(&state, all, std::collections::VecDeque::new());
            let missing = self.bring(&state, &needed)?;
            if missing.is_empty() {
                return Ok(state);
            }
            let before = pass.forced.len();
            let makers = self.makers(&state, &missing);
            pass.forced.extend(makers);
            if pass.forced.len() == before {
                return Err(EsgError::unreachable_state());
            }
            state = self.settle(&mut pass, told)?;
        }
    }

    /// Compares everything that is live with the books. `false` if something changed behind them.
    fn sweep(&mut self, state: &State, pass: &Pass<'_>, told: Told<'_>) -> Result<bool, EsgError> {
        let swept = self.executor.sweep()?;
        let mut found: Vec<String> = swept.strays;
        for member in swept.units.iter().flat_map(|unit| &unit.members) {
            let Some(slot) = state.slot(&member.entity) else { continue };
            let there = slot.member();
            if !there.opaque
                && !member.opaque
                && there.own != member.own
                && self.live.holds(&member.entity, slot)
            {
                found.push(format!("{} changed where no step was seen to", member.entity));
            }
        }
        if found.is_empty() {
            return Ok(true);
        }
        // Nobody can say which of them it was.
        for execution in pass.fresh.clone() {
            let mut again = Execution::clone(&execution);
            again
                .trace
                .untracked
                .extend(found.iter().map(|what| Untracked { what: what.clone(), line: None }));
            let again = Arc::new(again);
            self.history.push(again.clone());
            told(&again, &mut self.blobs)?;
        }
        Ok(false)
    }

    fn report(&self, pass: &Pass<'_>) -> Report {
        let mut report = Report { run: self.run, widened: pass.widened, ..Report::default() };
        for step in pass.steps {
            let Some(latest) = pass.chosen.get(&step.id) else { continue };
            let ran = pass.order.contains(&step.id);
            if ran {
                let reason = pass.reasons.get(&step.id).cloned().unwrap_or(Reason::New);
                report.order.push(step.id.clone());
                match if pass.full { Reason::Untracked } else { reason } {
                    Reason::Rebuilt => report.rebuilt.push(step.id.clone()),
                    reason => report.ran.push((step.id.clone(), reason)),
                }
                report.wall += latest.wall;
            } else {
                report.kept.push(step.id.clone());
                report.saved += latest.wall;
                if latest.trace.clock {
                    report.kept_clock.push(step.id.clone());
                }
            }
            report
                .untracked
                .extend(latest.trace.untracked.iter().map(|one| (step.id.clone(), one.clone())));
            if !latest.ending.is_ok() {
                report.failed.push((step.id.clone(), latest.ending.clone()));
            }
        }
        report.blocked = blocked(pass.steps, &report);
        report
    }
}

/// Failures for want of what an earlier failed step would have bound.
fn blocked(steps: &[Planned], report: &Report) -> Vec<Blocked> {
    let mut blocked: Vec<Blocked> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some((_, Ending::Raised { name: Some(name), .. })) =
            report.failed.iter().find(|(id, _)| *id == step.id)
        else {
            continue;
        };
        let by = steps[..at].iter().rev().find(|earlier| {
            earlier.scan.writes.contains(name)
                && report.failed.iter().any(|(id, _)| *id == earlier.id)
        });
        if let Some(by) = by {
            blocked.push(Blocked { step: step.id.clone(), name: name.clone(), by: by.id.clone() });
        }
    }
    blocked
}
