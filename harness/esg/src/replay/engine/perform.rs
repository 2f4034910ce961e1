//! Runs one step on exactly the state it must see.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::{Ended, Engine};
use crate::blobs::BlobError;
use crate::error::EsgError;
use crate::exec::{Ran, RunStep, Synced};
use crate::model::{Entity, Fingerprint, UnitKey};
use crate::replay::Planned;
use crate::replay::need::need;
use crate::replay::pass::Pass;
use crate::state::{Made, State};
use crate::trace::{Execution, Recorder, unify};

impl Engine {
    /// Runs the step on `state`. If an earlier execution stands and the step only makes values
    /// again, it finds the clocks and entropy of then.
    pub(super) fn perform(
        &mut self,
        step: &Planned,
        state: &State,
        pass: &mut Pass<'_>,
        stands: Option<&Execution>,
    ) -> Result<Ended, EsgError> {
        let mut deaths = 0;
        let begun = Instant::now();
        let readings = stands.map(|stands| &*stands.trace.readings).filter(|all| !all.is_empty());
        loop {
            // What an earlier try in this pass read. The steps that make it may have run since.
            let (more, all) = pass.looked_for.get(&step.id).cloned().unwrap_or_default();
            let all = all || pass.full;
            let before: Vec<_> =
                self.ledger.history.of(&step.id, step.syntax, &self.name).cloned().collect();
            let needed = need(step, state, before.iter().map(Arc::as_ref), &more, all);
            if self.live.residue() != state.past().residue && !pass.full {
                return Ok(Ended::Elsewhere);
            }
            let missing = self.bring(state, &needed)?;
            if !missing.is_empty() {
                return Ok(Ended::Missing(missing));
            }
            self.seq += 1;
            self.live.knows_source(&step.id, &step.source);
            let started = SystemTime::now();
            let ran = match self.executor.run(&RunStep {
                seq: self.seq,
                step: &step.id,
                source: &step.source,
                bind: step.bind.as_ref().map(|(name, value)| (&**name, &**value)),
                readings: self.readings.get(&step.id).map(Vec::as_slice).or(readings),
            }) {
                Ok(ran) => ran,
                // It was lost before the step began, and its untracked state with it.
                Err(error) if self.survives(&error, &mut deaths) && !pass.full => continue,
                Err(error) => return Err(error.into()),
            };
            if ran.ending.lacks_memory() && self.live.is_used() && !pass.full {
                // Values of earlier versions take memory too.
                self.renew()?;
                continue;
            }
            let short = self.short(&ran, state);
            if !short.is_empty() {
                self.discard(&ran);
                pass.widened += 1;
                let wider = pass.looked_for.entry(step.id.clone()).or_default();
                wider.0.extend(short);
                wider.1 |= ran.reads.contains(&Entity::Everything);
                continue;
            }
            let mut execution = self.record(step, state, &needed, started, ran, stands)?;
            // A fresh worker holds no old objects, and untracked operations may refer to the new ones.
            if !pass.full
                && execution.trace.residue.is_none()
                && !execution.is_untracked()
                && execution.ending.is_ok()
                && let Some(old) = self.ledger.history.last_good(&step.id, &self.name).cloned()
            {
                unify(&mut execution, &old, &|made| self.live.knows(made));
            }
            execution.host = begun.elapsed().saturating_sub(execution.wall);
            return Ok(Ended::Ran(Box::new(execution)));
        }
    }

    /// What the step read although it was not live, and exists in the state. [`Entity::Everything`], if it read
    /// the names in another order.
    fn short(&self, ran: &Ran, state: &State) -> BTreeSet<Entity> {
        if ran.lost {
            return BTreeSet::new();
        }
        let absent = |entity: &Entity| state.slot(entity).is_some() && !self.live.has(entity);
        if ran.reads.contains(&Entity::Everything) {
            let mut short: BTreeSet<_> = state.names().into_iter().filter(absent).collect();
            short.extend(self.live.is_disordered().then_some(Entity::Everything));
            return short;
        }
        ran.reads.iter().filter(|entity| absent(entity)).cloned().collect()
    }

    /// Moves the worker to `state` as far as needed. Returns what is missing.
    pub(crate) fn bring(
        &mut self,
        state: &State,
        needed: &BTreeSet<Entity>,
    ) -> Result<BTreeSet<Entity>, EsgError> {
        if std::mem::take(&mut self.spoiled) {
            self.renew().inspect_err(|_| self.spoiled = true)?;
        }
        let mut deaths = 0;
        loop {
            let (blobs, lost) = (&mut self.blobs, &self.lost);
            // It is not made again: with its key it is there.
            let mut locked = None;
            let mut read = |made: &Made| {
                let stored = made.stored.as_ref().filter(|_| !lost.contains(&made.unit.key))?;
                blobs.load(stored).unwrap_or_else(|error| {
                    locked.get_or_insert(error);
                    None
                })
            };
            let mut moves = self.live.moves(state, needed, &mut read);
            if let Some(error) = locked {
                return Err(error.into());
            }
            if !moves.sync.load.is_empty() {
                moves.sync.sources =
                    self.live.unknown_sources(self.ledger.history.latest_sources());
            }
            let texts = self.texts.iter().map(|(step, (text, _))| (step, text));
            moves.sync.moved = self.live.unknown_texts(texts);
            let synced = if moves.sync.is_empty() {
                Synced::default()
            } else {
                match self.executor.sync(&moves.sync) {
                    Ok(synced) => synced,
                    Err(error) if self.survives(&error, &mut deaths) => continue,
                    Err(error) => return Err(error.into()),
                }
            };
            if synced.failed.is_empty() {
                return Ok(moves.missing);
            }
            self.live.failed(&synced);
            for (key, why) in &synced.failed {
                tracing::warn!(unit = %key, why, "failed to load a stored value; making it again");
                self.lost.insert(key.clone());
            }
        }
    }

    /// Discards a run: what it did leaves the worker.
    pub(super) fn discard(&mut self, ran: &Ran) {
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
        } else if !ran.untracked.is_empty() {
            // It stays in the worker, and belongs to no step.
            self.live.entered(Some(Fingerprint::of(&[b"discarded", &self.seq.to_le_bytes()])));
        }
        self.live.spoil(dirty);
    }

    pub(super) fn record(
        &mut self,
        step: &Planned,
        state: &State,
        shown: &BTreeSet<Entity>,
        started: SystemTime,
        mut ran: Ran,
        stands: Option<&Execution>,
    ) -> Result<Execution, EsgError> {
        let mut made = Vec::with_capacity(ran.units.len());
        let restores = self.executor.caps().restores;
        for (mut unit, blob) in std::mem::take(&mut ran.units) {
            if !restores && unit.unserializable.is_none() {
                unit.unserializable = Some("the executor restores no values".to_owned());
            }
            let blob = blob.filter(|_| unit.unserializable.is_none());
            let stored = match blob.map(|bytes| self.blobs.keep(bytes)).transpose() {
                Err(error @ BlobError::TooLarge { .. }) => {
                    unit.unserializable = Some(error.to_string());
                    None
                }
                stored => stored?,
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
            stands,
        };
        Ok(recorder.record(ran, made))
    }

    /// The steps that made what is missing, from the first on.
    pub(crate) fn makers(&self, state: &State, missing: &BTreeSet<Entity>) -> BTreeSet<Arc<str>> {
        let mut open: Vec<UnitKey> = missing
            .iter()
            .filter_map(|entity| state.slot(entity))
            .filter(|slot| self.cannot_load(&slot.made))
            .map(|slot| slot.key().clone())
            .collect();
        let (mut seen, mut makers) = (BTreeSet::new(), BTreeSet::new());
        while let Some(key) = open.pop() {
            if seen.insert(key.clone())
                && let Some(execution) = self.ledger.history.maker(&key)
            {
                makers.insert(execution.step.clone());
                open.extend(execution.trace.unserializable.iter().cloned());
            }
        }
        makers
    }

    /// The steps that changed what the missing unit holds after it was made. The unit holds those
    /// very objects, so they have to be changed again after it is made again.
    pub(super) fn changers(&self, state: &State, missing: &BTreeSet<Entity>) -> BTreeSet<Arc<str>> {
        let held = missing.iter().filter_map(|entity| state.slot(entity));
        let mut open: Vec<&Entity> = held.flat_map(|slot| &slot.made.unit.refs).collect();
        let (mut seen, mut changers) = (BTreeSet::new(), BTreeSet::new());
        while let Some(entity) = open.pop() {
            if !seen.insert(entity) {
                continue;
            }
            let Some(slot) = state.slot(entity) else { continue };
            open.extend(&slot.made.unit.refs);
            changers.extend(self.ledger.history.maker(slot.key()).map(|maker| maker.step.clone()));
        }
        changers
    }

    fn cannot_load(&self, made: &Made) -> bool {
        made.stored.is_none() || self.lost.contains(&made.unit.key) || {
            let stored = made.stored.as_ref();
            !stored.is_some_and(|stored| self.blobs.load(stored).is_ok_and(|blob| blob.is_some()))
        }
    }
}
