//! What a replay would run.
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::CodeGraph;
use crate::model::Entity;
use crate::replay::{Outside, Planned, Reason};
use crate::state::State;

/// What a replay would run, as far as can be determined without running anything. A step that may
/// run need not: a step whose outputs equal its earlier ones does not invalidate its readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    steps: Vec<(Arc<str>, Reason)>,
}

impl Plan {
    /// The steps that would or may run, in order, and why.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &Reason)> {
        self.steps.iter().map(|(step, reason)| (&**step, reason))
    }

    pub(super) fn add(&mut self, step: &Arc<str>, reason: Reason) {
        self.steps.push((step.clone(), reason));
    }

    /// Whether nothing would run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|(step, reason)| writeln!(f, "{step}: {reason}"))
    }
}

impl CodeGraph {
    /// What the next replay would run, and why.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let steps = self.planned();
        let mut plan = Plan::default();
        let mut state = State::default();
        let mut outside = Outside::new(self.engine.executor.readable());
        let mut unknown: BTreeSet<Entity> = BTreeSet::new();
        for step in &steps {
            let valid = self.engine.valid(step, &state, &mut outside);
            let may: Vec<Entity> = match &valid {
                Some(execution) => execution
                    .trace
                    .known()
                    .filter(|entity| unknown.contains(*entity))
                    .cloned()
                    .collect(),
                None => Vec::new(),
            };
            match valid {
                Some(execution) if may.is_empty() => {
                    state.apply(&execution);
                    continue;
                }
                Some(_) => plan.steps.push((step.id.clone(), Reason::May(may))),
                None => {
                    let reason =
                        self.engine.stale(step, &state, &outside).unwrap_or(Reason::Invalidated);
                    plan.steps.push((step.id.clone(), reason));
                }
            }
            self.assume(step, &mut state, &mut unknown);
        }
        if !plan.is_empty() && self.engine.is_untracked(&steps) {
            plan.steps = steps.iter().map(|step| (step.id.clone(), Reason::Untracked)).collect();
        }
        plan
    }

    /// Marks what is unknown after `step` runs, assuming that it does what it did before.
    fn assume(&self, step: &Planned, state: &mut State, unknown: &mut BTreeSet<Entity>) {
        if let Some(latest) = self.engine.history.latest(&step.id) {
            state.apply(latest);
            unknown.extend(latest.trace.wrote.keys().cloned());
        }
        let scan = &step.scan;
        let writes = scan.writes.iter().chain(&scan.mutates).chain(&scan.deletes);
        unknown.extend(writes.map(Entity::name));
    }
}
