//! Applies an execution to a state.
use std::collections::HashSet;

use super::Execution;
use crate::exec::Wrote;
use crate::model::Entity;
use crate::state::State;

impl State {
    /// Applies what `execution` did.
    pub(crate) fn apply(&mut self, execution: &Execution) {
        self.set_past(execution.follows(self.past()));
        if !execution.ending.is_ok() {
            return;
        }
        let by = &execution.step;
        for (entity, wrote) in &execution.trace.wrote {
            if *wrote == Wrote::Deleted {
                self.remove(entity, by);
            }
        }
        for (entity, made) in &execution.trace.again {
            let member = made.unit.members.iter().position(|member| member.entity == *entity);
            if let Some(at) = member {
                let wrote = execution.trace.wrote.contains_key(entity);
                let by = match self.by(entity) {
                    Some(before) if !wrote => before.clone(),
                    _ => by.clone(),
                };
                self.put(made, at, &by);
            }
        }
        for made in &execution.trace.units {
            for (at, member) in made.unit.members.iter().enumerate() {
                let wrote = execution.trace.wrote.contains_key(&member.entity);
                let by = match self.by(&member.entity) {
                    Some(before) if !wrote => before.clone(),
                    _ => by.clone(),
                };
                self.put(made, at, &by);
            }
        }
        self.place_last(&execution.trace.order);
        self.credit_names(execution);
    }

    /// A name also depends on the step that changed the class of its value.
    fn credit_names(&mut self, execution: &Execution) {
        let changed: HashSet<&Entity> = execution
            .trace
            .wrote
            .iter()
            .filter(|(entity, wrote)| {
                matches!(entity, Entity::Token(_) | Entity::Module(_)) && **wrote != Wrote::Bound
                    || matches!(entity, Entity::Module(_))
            })
            .map(|(entity, _)| entity)
            .collect();
        if changed.is_empty() {
            return;
        }
        let names: Vec<_> = self
            .entities()
            .map(|(entity, _)| entity)
            .filter(|one| matches!(one, Entity::Name(_)))
            .cloned()
            .collect();
        for name in names {
            if self.reach([name.clone()]).iter().any(|one| changed.contains(one)) {
                self.credit(&name, &execution.step);
            }
        }
    }
}
