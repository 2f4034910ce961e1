//! Why a step would run, and what would run after a change.
use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::error::EsgError;
use crate::graph::{CodeGraph, Plan};
use crate::model::Entity;
use crate::model::List;
use crate::replay::Reason;

impl CodeGraph {
    /// Why the next replay would run `step`, down to the cause. `None` if it would not.
    ///
    /// # Errors
    /// If there is no such step.
    pub fn why_stale(&self, step: &str) -> Result<Option<String>, EsgError> {
        self.program().step(step)?;
        let plan = self.plan();
        let reason =
            |step: &str| plan.steps().find(|(id, _)| *id == step).map(|(_, reason)| reason.clone());
        let Some(mut why) = reason(step) else { return Ok(None) };
        let mut said = format!("{step} would run: {why}");
        let (mut at, mut seen) = (step.to_owned(), BTreeSet::from([step.to_owned()]));
        while let Reason::May(entities) | Reason::Inputs(entities) | Reason::Aliases(entities) =
            &why
        {
            let Some((entity, by)) =
                entities.iter().find_map(|entity| Some((entity, self.writer(entity, &at)?)))
            else {
                break;
            };
            let Some(next) = reason(&by).filter(|_| seen.insert(by.clone())) else { break };
            let written = List(std::slice::from_ref(entity)).to_string();
            let _ = write!(said, "; {written} is written by {by}, which would run: {next}");
            (at, why) = (by, next);
        }
        Ok(Some(said))
    }

    /// The last known step before `step` that writes `entity`.
    fn writer(&self, entity: &Entity, step: &str) -> Option<String> {
        let steps = self.planned();
        let end = steps.iter().position(|one| &*one.id == step)?;
        let wrote = steps[..end].iter().rev().find(|one| {
            let latest = self.engine.ledger.history.latest(&one.id);
            latest.is_some_and(|latest| latest.trace.wrote.contains_key(entity))
                || entity.as_name().is_some_and(|name| {
                    one.scan.writes.contains(name) || one.scan.mutates.contains(name)
                })
        });
        wrote.map(|one| one.id.to_string())
    }

    /// What would have to run if a step, or a name that steps bind, changed now: its readers, their
    /// readers, and so on, with what each of them reads.
    ///
    /// # Errors
    /// If there is no such step or bound name.
    pub fn if_changed(&self, step_or_symbol: &str) -> Result<Plan, EsgError> {
        let mut plan = Plan::default();
        let mut changed: BTreeSet<Entity> = BTreeSet::new();
        let is_step = self.program().step(step_or_symbol).is_ok();
        let symbol = Entity::name(step_or_symbol);
        let mut begun = false;
        if !is_step {
            if self.state.by(&symbol).is_none() {
                self.program().step(step_or_symbol)?;
            }
            changed.insert(symbol.clone());
        }
        // The symbol counts from its last binding.
        let from = self.state.by(&symbol).filter(|_| !is_step).cloned();
        for step in self.planned() {
            let Some(execution) = self.engine.ledger.execution(&step.id) else {
                if begun {
                    plan.add(&step.id, Reason::New);
                }
                continue;
            };
            if is_step && &*step.id == step_or_symbol || from.as_ref() == Some(&step.id) {
                begun = true;
                if is_step {
                    plan.add(&step.id, Reason::Edited);
                    changed.extend(execution.trace.wrote.keys().cloned());
                }
                continue;
            }
            if !begun {
                continue;
            }
            let reads: Vec<_> = execution
                .trace
                .known()
                .filter(|entity| changed.contains(*entity))
                .cloned()
                .collect();
            if reads.is_empty() {
                execution.trace.wrote.keys().for_each(|entity| {
                    changed.remove(entity);
                });
            } else {
                plan.add(&step.id, Reason::May(reads));
                changed.extend(execution.trace.wrote.keys().cloned());
            }
        }
        Ok(plan)
    }
}
