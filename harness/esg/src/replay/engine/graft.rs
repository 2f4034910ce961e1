//! Keeps a step although something has changed that shares objects with what it bound.
//!
//! A step that takes an object out of another one makes one unit of both, and of whatever else shares objects
//! with them. If a step before it binds such a name to something else, the stored unit is out of date, but what the
//! step itself bound is not.
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Engine, Walk};
use crate::error::EsgError;
use crate::exec::{Blob, Graft, Load, Ran};
use crate::model::Entity;
use crate::replay::{Planned, close};
use crate::state::Made;
use crate::trace::{Execution, Read, only_others_changed};

/// Values of at most this many bytes are always taken from their stored form.
const SMALL: u64 = 64 << 10;
/// How many bytes of stored values are read in a second, at least. A step that takes less time runs.
const BYTES_PER_SECOND: f64 = 20e6;

/// Whether its values are read in less time than it ran.
fn pays(execution: &Execution) -> bool {
    let size: u64 = execution.trace.units.iter().map(|made| made.unit.size).sum();
    size <= SMALL || size as f64 / BYTES_PER_SECOND < execution.wall.as_secs_f64()
}

/// The names of a unit that the step bound.
fn load(made: &Made, blob: Blob, bound: impl Fn(&Entity) -> bool) -> Load {
    let members: Vec<Entity> = made.unit.members.iter().map(|one| one.entity.clone()).collect();
    let take = members.iter().filter(|entity| bound(entity)).cloned().collect();
    Load { key: made.unit.key.clone(), members, take, blob, refs: made.unit.refs.clone() }
}

impl Engine {
    /// The execution that stands for the step on the state of `walk`, if the names that it bound can be bound
    /// without running it.
    pub(super) fn graft(
        &mut self,
        step: &Planned,
        walk: &Walk,
    ) -> Result<Option<Execution>, EsgError> {
        let Walk { state, outside, .. } = walk;
        let stands = |one: &&Arc<Execution>| {
            pays(one)
                && !self.shows_old_lines(step, one)
                && only_others_changed(one, state, outside)
        };
        let executions = self.ledger.history.of(&step.id, step.syntax, &self.name);
        let Some(then) = executions.filter(|one| one.ending.is_ok()).find(stands).cloned() else {
            return Ok(None);
        };
        let units = &then.trace.units;
        let members = || units.iter().flat_map(|made| &made.unit.members).map(|one| &one.entity);
        let read = |entity: &&Entity| then.trace.reads.contains_key(*entity);
        let onto: Vec<Entity> = members().filter(read).cloned().collect();
        let refs = units.iter().flat_map(|made| &made.unit.refs);
        let wanted: BTreeSet<Entity> =
            refs.chain(&onto).chain(then.trace.reads.keys()).cloned().collect();
        let needed = close(state, wanted, VecDeque::new());
        if !self.bring(state, &needed)?.is_empty() {
            return Ok(None);
        }
        let mut loads = Vec::with_capacity(units.len());
        for made in units {
            let stored = made.stored.as_ref().filter(|_| !self.lost.contains(&made.unit.key));
            let Some(blob) = stored.map(|stored| self.blobs.load(stored)).transpose()?.flatten()
            else {
                return Ok(None);
            };
            loads.push(load(made, blob, |entity| then.trace.wrote.contains_key(entity)));
        }
        self.seq += 1;
        let started = SystemTime::now();
        let ran = match self.executor.graft(&Graft { seq: self.seq, units: &loads, onto: &onto }) {
            Ok(Some(ran)) => ran,
            Ok(None) => return Ok(None),
            Err(error) if self.survives(&error, &mut 0) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let external = |(entity, read): (&Entity, &Read)| {
            let is_outside = matches!(entity, Entity::External(_) | Entity::Package(_));
            is_outside.then(|| (entity.clone(), read.outside.clone()))
        };
        let ran = Ran {
            reads: then.trace.reads.keys().cloned().collect(),
            external: then.trace.reads.iter().filter_map(external).collect(),
            stdout: then.stdout.clone(),
            stderr: then.stderr.clone(),
            order: then.trace.order.clone(),
            shown: then.trace.shown.clone(),
            wall: then.wall,
            ..ran
        };
        let mut execution = self.record(step, state, &needed, started, ran, None)?;
        execution.host = then.host;
        Ok(Some(execution))
    }
}
