//! What a step may need.
use std::collections::{BTreeSet, VecDeque};

use super::Planned;
use crate::model::Entity;
use crate::state::State;
use crate::trace::Execution;

/// What must be live before `step` runs on `state`: what its source may read, what it read when it
/// last ran, and what the code it calls may read in turn.
///
/// With `all`, everything, and [`Entity::Everything`] itself, which stands for the order of names. An
/// unserializable value is needed only if the step surely reads it: making it again for a branch that is
/// not taken is wasteful. If the step reads it after all, its run is discarded and repeated.
pub(crate) fn need<'a>(
    step: &Planned,
    state: &State,
    before: impl Iterator<Item = &'a Execution>,
    more: &BTreeSet<Entity>,
    all: bool,
) -> BTreeSet<Entity> {
    let mut sure: BTreeSet<Entity> = more.clone();
    if step.bind.is_none() {
        let scan = &step.scan;
        sure.extend(scan.reads.iter().chain(&scan.mutates).chain(&scan.deletes).map(Entity::name));
    }
    let before: Vec<&Execution> = before.collect();
    // By what this is bound to the worker compiles a step. Anything larger is no feature of `__future__`.
    let feature = Entity::name("annotations");
    sure.extend(state.slot(&feature).filter(|slot| slot.made.unit.size < 4_096).map(|_| feature));
    let all = all
        || step.scan.opaque
        || before.iter().any(|execution| execution.trace.reads.contains_key(&Entity::Everything));
    let mut maybe: VecDeque<Entity> = VecDeque::new();
    for execution in before {
        sure.extend(execution.trace.reads.keys().cloned());
        sure.extend(execution.trace.altered.keys().cloned());
    }
    let scan = &step.scan;
    maybe.extend(scan.deferred_reads.iter().chain(&scan.builtin_reads).map(Entity::name));
    // Files, modules and the process always have the version of the state.
    if all {
        let stored = state.entities().filter(|(_, slot)| slot.made.unit.unserializable.is_none());
        sure.extend(stored.map(|(entity, _)| entity.clone()));
    } else {
        sure.extend(state.around().map(|(entity, _)| entity.clone()));
    }
    let mut needed = close(state, sure, maybe);
    if all {
        needed.insert(Entity::Everything);
    }
    needed
}

/// Adds what is referred to, what shares objects, and what the reached code may load.
pub(crate) fn close(
    state: &State,
    sure: BTreeSet<Entity>,
    maybe: VecDeque<Entity>,
) -> BTreeSet<Entity> {
    let mut needed = BTreeSet::new();
    let mut open: VecDeque<(Entity, bool)> =
        sure.into_iter().map(|entity| (entity, true)).collect();
    open.extend(maybe.into_iter().map(|entity| (entity, false)));
    while let Some((entity, sure)) = open.pop_front() {
        let Some(slot) = state.slot(&entity) else { continue };
        if !sure && slot.made.unit.unserializable.is_some() || !needed.insert(entity.clone()) {
            continue;
        }
        open.extend(slot.refs().map(|one| (one.clone(), sure)));
        open.extend(state.group(&entity).into_iter().map(|one| (one, sure)));
        // Loading a unit needs the references of the whole unit.
        open.extend(slot.made.unit.refs.iter().map(|one| (one.clone(), sure)));
        open.extend(slot.member().loads.iter().map(|name| (Entity::name(name), false)));
    }
    needed
}
