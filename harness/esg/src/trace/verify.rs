//! When a recorded execution may replace a new run.
//!
//! It may if everything it read and every unit it altered is now as it was then: a new run would
//! have the same effects.
use super::{Execution, Trace};
use crate::model::Entity;
use crate::state::{FileKind, Looked, State};

/// What differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changed {
    /// What the step read.
    pub(crate) inputs: Vec<Entity>,
    /// What it altered without reading it.
    pub(crate) aliases: Vec<Entity>,
    /// Nothing of these, but untracked operations before it differ; or it has untracked operations,
    /// and anything before it differs.
    pub(crate) elsewhere: bool,
}

/// What changed since `execution` ran; `None` if its trace holds in `state`.
pub(crate) fn changed(
    execution: &Execution,
    state: &State,
    looked: &dyn Looked,
) -> Option<Changed> {
    let trace = &execution.trace;
    let Some(joint) = trace.joint else { return Some(Changed::default()) };
    let elsewhere = trace.tainted
        || trace.residue != state.past().residue
        || execution.is_untracked() && trace.past != state.past().ran;
    let now = state.joint(trace.known(), looked);
    let same = now.fingerprint == joint
        && same_tokens(trace, &trace.visited, &now.visited)
        && same_groups(trace, state)
        && same_kinds(trace, state);
    if same && elsewhere {
        return Some(Changed { elsewhere, ..Changed::default() });
    }
    (!same).then(|| differing(trace, state, looked))
}

/// Whether only what else shares objects with what `execution` read and bound has changed since it ran: the names
/// that it bound can be bound again without a run.
pub(crate) fn only_others_changed(
    execution: &Execution,
    state: &State,
    looked: &dyn Looked,
) -> bool {
    let trace = &execution.trace;
    let Some(then) = &trace.inputs else { return false };
    let now = state.joint(trace.reads.keys(), looked);
    trace.residue == state.past().residue
        && now.fingerprint == then.fingerprint
        && same_tokens(trace, &then.visited, &now.visited)
}

/// The produced units may refer to what was read. Those references must be to the same objects, not
/// to equal ones.
fn same_tokens(trace: &Trace, then: &[Entity], now: &[Entity]) -> bool {
    now == then
        || now.len() == then.len()
            && std::iter::zip(now, then).all(|(now, then)| {
                now == then
                    || !trace.units.iter().any(|made| {
                        made.unit.refs.contains(then)
                            || made.unit.members.iter().any(|member| member.entity == *then)
                    })
            })
}

/// Everything that shares objects with what was altered must have been known then.
fn same_groups(trace: &Trace, state: &State) -> bool {
    trace.tied.iter().all(|entity| {
        state
            .group(entity)
            .iter()
            .all(|one| trace.reads.contains_key(one) || trace.altered.contains_key(one))
    })
}

/// Paths written without reading must hold the same kind as then. An absent path counts as a file.
fn same_kinds(trace: &Trace, state: &State) -> bool {
    let as_file = |kind| if kind == FileKind::Nothing { FileKind::File } else { kind };
    trace.over.iter().all(|(path, kind)| as_file(*kind) == as_file(state.file_kind(path)))
}

fn differing(trace: &Trace, state: &State, looked: &dyn Looked) -> Changed {
    let differs = |(entity, read): (&Entity, &super::execution::Read)| {
        (state.joint([entity], looked).fingerprint != read.fingerprint).then(|| entity.clone())
    };
    let mut changed = Changed {
        inputs: trace.reads.iter().filter_map(differs).collect(),
        aliases: trace.altered.iter().filter_map(differs).collect(),
        elsewhere: false,
    };
    if changed.inputs.is_empty() && changed.aliases.is_empty() {
        // Each entity is as it was, but what they share with each other or with others is not.
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
