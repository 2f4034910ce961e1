//! What a step may need.
use std::collections::{BTreeSet, VecDeque};

use super::Planned;
use crate::model::Entity;
use crate::state::State;
use crate::trace::Execution;

/// What has to be there before `step` runs on `state`: what its source may read, what it read when
/// it last ran, and what the code of what it calls may read in turn.
///
/// With `all`, everything. What can not be stored is asked for only where the step surely looks at
/// it: to make it again for a branch that is not taken would be a waste, and if the step does look,
/// its run is discarded and repeated.
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
    // Files, modules and the process are as the state says, whoever needs them.
    if all {
        let stored = state.entities().filter(|(_, slot)| slot.made.unit.hole.is_none());
        sure.extend(stored.map(|(entity, _)| entity.clone()));
    } else {
        sure.extend(state.around().map(|(entity, _)| entity.clone()));
    }
    close(state, sure, maybe)
}

/// Adds what is referred to, who shares objects, and what the code that is reached may load.
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
        if !sure && slot.made.unit.hole.is_some() || !needed.insert(entity.clone()) {
            continue;
        }
        open.extend(slot.refs().map(|one| (one.clone(), sure)));
        open.extend(state.group(&entity).into_iter().map(|one| (one, sure)));
        // References are of the unit as a whole when it is loaded.
        open.extend(slot.made.unit.refs.iter().map(|one| (one.clone(), sure)));
        open.extend(slot.member().loads.iter().map(|name| (Entity::name(name), false)));
    }
    needed
}
