//! The end of a replay: the sweep and the report.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use crate::error::EsgError;
use crate::exec::{Ending, Untracked};
use crate::ledger::Record;
use crate::model::Entity;
use crate::replay::pass::Pass;
use crate::replay::{Blocked, Planned, Reason, Report};
use crate::state::{Past, State};
use crate::trace::Execution;

impl Engine {
    /// Compares everything live with the recorded state: the unattributed changes, or `None` if the
    /// worker is lost and cannot be inspected.
    pub(super) fn sweep(&mut self, state: &State) -> Result<Option<Vec<String>>, EsgError> {
        // Removes what a failed step left behind.
        self.bring(state, &BTreeSet::new())?;
        let swept = match self.executor.sweep() {
            Ok(swept) => swept,
            // The worker cannot report any more what the steps changed.
            Err(error) if self.survives(&error, &mut 0) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut found: Vec<String> = swept.unattributed;
        for member in swept.units.iter().flat_map(|unit| &unit.members) {
            let Some(slot) = state.slot(&member.entity) else { continue };
            let there = slot.member();
            // A function whose content is elsewhere looks like another one.
            let whole =
                slot.refs().all(|one| !matches!(one, Entity::Token(_)) || self.live.has(one));
            if whole
                && !there.opaque
                && !member.opaque
                && there.own != member.own
                && self.live.holds(&member.entity, slot)
            {
                found.push(format!("unattributed change of {}", member.entity));
            }
        }
        Ok(Some(found))
    }

    /// Attributes changes to all steps that ran, because any may have made them.
    pub(super) fn attribute(
        &mut self,
        unseen: &[String],
        pass: &mut Pass<'_>,
        state: &mut State,
    ) -> Result<(), EsgError> {
        state.set_past(Past::default());
        for step in pass.steps {
            let Some(execution) = pass.chosen.get_mut(&step.id) else { continue };
            if !pass.done.contains(&step.id) {
                state.set_past(execution.follows(state.past()));
                continue;
            }
            let mut again = Execution::clone(execution);
            again.trace.untracked.extend(unseen.iter().cloned().map(Untracked::of));
            let before = state.past();
            (again.trace.past, again.trace.residue) = (before.ran, before.residue);
            state.set_past(again.follows(before));
            self.live.entered(state.past().residue);
            *execution = Arc::new(again);
            self.commit(Record::Ran(execution.clone()))?;
        }
        Ok(())
    }

    pub(super) fn report(&self, pass: &Pass<'_>, wall: Duration) -> Report {
        let (run, widened) = (self.run, pass.widened);
        let mut report = Report { run, widened, wall, ..Report::default() };
        for step in pass.steps {
            let Some(latest) = pass.chosen.get(&step.id) else { continue };
            let ran = pass.done.contains(&step.id);
            if ran {
                let reason = pass.reasons.get(&step.id).cloned().unwrap_or(Reason::New);
                report.order.push(step.id.clone());
                match if pass.full && !pass.stuck { Reason::Untracked } else { reason } {
                    Reason::Rebuilt => report.rebuilt.push(step.id.clone()),
                    reason => report.ran.push((step.id.clone(), reason)),
                }
            } else {
                report.kept.push(step.id.clone());
                report.saved += latest.wall + latest.host;
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

/// Failures caused by a name that an earlier failed step would have bound.
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
