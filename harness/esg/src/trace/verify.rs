//! When an execution may stand for a run that does not happen.
//!
//! It may if what it read, and every unit that it altered, is now as it was then: then running it
//! again would do again what it did.
use super::{Execution, Trace};
use crate::model::Entity;
use crate::state::{FileKind, Looked, State};

/// What is not as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changed {
    /// What the step looked at.
    pub(crate) inputs: Vec<Entity>,
    /// What it altered without looking at it.
    pub(crate) aliases: Vec<Entity>,
}

/// What changed since `execution` ran; `None` if its trace holds in `state`.
pub(crate) fn changed(
    execution: &Execution,
    state: &State,
    looked: &dyn Looked,
) -> Option<Changed> {
    let trace = &execution.trace;
    let Some(joint) = trace.joint else { return Some(Changed::default()) };
    let now = state.joint(trace.known(), looked);
    let same = now.print == joint
        && same_tokens(trace, &now.visited)
        && same_groups(trace, state)
        && same_kinds(trace, state);
    (!same).then(|| differing(trace, state, looked))
}

/// The units that came out may refer to what was read: those must be the same objects, not only
/// equal ones.
fn same_tokens(trace: &Trace, visited: &[Entity]) -> bool {
    visited == trace.visited
        || visited.len() == trace.visited.len()
            && std::iter::zip(visited, &trace.visited).all(|(now, then)| {
                now == then
                    || !trace.units.iter().any(|made| {
                        made.unit.refs.contains(then)
                            || made.unit.members.iter().any(|member| member.entity == *then)
                    })
            })
}

/// Whoever shares objects with what was altered must have been known then.
fn same_groups(trace: &Trace, state: &State) -> bool {
    trace.tied.iter().all(|entity| {
        state
            .group(entity)
            .iter()
            .all(|one| trace.reads.contains_key(one) || trace.altered.contains_key(one))
    })
}

/// What was written unseen went over something of the same kind; over nothing is as good as over a
/// file.
fn same_kinds(trace: &Trace, state: &State) -> bool {
    let as_file = |kind| if kind == FileKind::Nothing { FileKind::File } else { kind };
    trace.over.iter().all(|(path, kind)| as_file(*kind) == as_file(state.file_kind(path)))
}

fn differing(trace: &Trace, state: &State, looked: &dyn Looked) -> Changed {
    let differs = |(entity, read): (&Entity, &super::execution::Read)| {
        (state.joint([entity], looked).print != read.print).then(|| entity.clone())
    };
    let mut changed = Changed {
        inputs: trace.reads.iter().filter_map(differs).collect(),
        aliases: trace.altered.iter().filter_map(differs).collect(),
    };
    if changed.inputs.is_empty() && changed.aliases.is_empty() {
        // Each is as it was: what they share with each other, or with others, is not.
        changed.aliases = trace.tied.iter().cloned().collect();
        if changed.aliases.is_empty() {
            changed.inputs = trace.reads.keys().cloned().collect();
        }
    }
    changed
}

impl Trace {
    /// What was read and altered, sorted.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Entity> {
        let mut both: Vec<_> = self.reads.keys().chain(self.altered.keys()).collect();
        both.sort_unstable();
        both.dedup();
        both.into_iter()
    }
}
