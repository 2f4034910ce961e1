//! Compares the state after selective re-execution with that of a full run.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::CodeGraph;
use crate::blobs::Blobs;
use crate::error::EsgError;
use crate::exec::Swept;
use crate::ledger::Ledger;
use crate::model::{Entity, Fingerprint};
use crate::replay::Engine;
use crate::state::{Looked, Made, State};
use crate::trace::Execution;

/// The result of comparing with a full run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether nothing differs.
    pub same: bool,
    /// The differences, a sentence each.
    pub differences: Vec<String>,
    /// How many steps ran again only to restore unserializable values.
    pub rebuilt: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.same {
            return f.write_str("equal to a full re-run");
        }
        write!(f, "differs from a full re-run: {}", self.differences.join("; "))
    }
}

/// Files outside scratch are the same for both sides.
struct Nothing;

impl Looked for Nothing {
    fn outside(&self, _: &Entity) -> Option<String> {
        None
    }
}

impl CodeGraph {
    /// Compares the state after the last replay with that of running every step in a fresh worker,
    /// which replays the clock readings of the executions. Both sides are inspected in full: names,
    /// what they share, classes, modules, files, process state, output and endings.
    ///
    /// # Errors
    /// If the worker fails to start, or its kind has no [twins](crate::Caps::twins).
    pub fn verify(&mut self) -> Result<Verdict, EsgError> {
        if !self.engine.executor.caps().twins {
            return Err(EsgError::unsupported("verify a graph", "starts no second worker"));
        }
        let steps = self.planned();
        let ran: BTreeMap<_, _> = self.engine.ledger.standing().clone();
        let steps: Vec<_> = steps.into_iter().filter(|step| ran.contains_key(&step.id)).collect();
        let before = self.engine.ledger.history.all().len();
        let (state, options) = (&mut self.state, self.options);
        let swept = self.engine.ask(&steps, state, None, options, |worker| worker.sweep())?;
        let ours = view(&swept);
        let rebuilt = self.engine.ledger.history.all().len() - before;

        let twin = self.engine.executor.twin()?;
        let mut other = Engine::new(Ledger::default(), twin, Blobs::memory());
        other.readings = ran
            .iter()
            .map(|(step, execution)| (step.clone(), execution.trace.readings.clone()))
            .collect();
        let mut whole = other.whole(&steps, options)?;
        // What failed steps left behind is removed only when the worker is synced again.
        let swept = other.ask(&steps, &mut whole, None, options, |worker| worker.sweep())?;
        let theirs = view(&swept);

        let mut differences = differing(&ours, &theirs);
        for step in &steps {
            let (Some(one), Some(two)) = (ran.get(&step.id), other.ledger.execution(&step.id))
            else {
                continue;
            };
            differences.extend(outputs(&step.id, one, two));
        }
        Ok(Verdict { same: differences.is_empty(), differences, rebuilt })
    }
}

/// The result of a sweep as a state.
fn view(swept: &Swept) -> State {
    let mut state = State::default();
    let unknown: Arc<str> = "".into();
    for unit in &swept.units {
        let mut unit = unit.clone();
        for member in &mut unit.members {
            if member.opaque {
                member.own = Fingerprint::of(&[b"opaque"]);
            }
        }
        let made = Arc::new(Made { unit, stored: None });
        for at in 0..made.unit.members.len() {
            state.put(&made, at, &unknown);
        }
    }
    state
}

fn differing(ours: &State, theirs: &State) -> Vec<String> {
    let named = |state: &State| -> BTreeSet<Entity> {
        let entities = state.entities().map(|(entity, _)| entity);
        entities.filter(|entity| !matches!(entity, Entity::Token(_))).cloned().collect()
    };
    let (left, right) = (named(ours), named(theirs));
    let mut differences = Vec::new();
    for entity in left.union(&right) {
        match (left.contains(entity), right.contains(entity)) {
            (true, false) => differences.push(format!("{entity} exists and should not")),
            (false, true) => differences.push(format!("{entity} is missing")),
            _ if ours.joint([entity], &Nothing).fingerprint
                != theirs.joint([entity], &Nothing).fingerprint =>
            {
                differences.push(format!("{entity} has another value"));
            }
            _ => {}
        }
    }
    let together =
        ours.joint(&left, &Nothing).fingerprint == theirs.joint(&right, &Nothing).fingerprint;
    if differences.is_empty() && !together {
        differences = apart(ours, theirs, &left);
    }
    differences
}

/// The pairs whose values share different objects.
fn apart(ours: &State, theirs: &State, entities: &BTreeSet<Entity>) -> Vec<String> {
    let mut found = Vec::new();
    for (at, one) in entities.iter().enumerate() {
        for other in entities.iter().skip(at + 1) {
            let of = |state: &State| state.joint([one, other], &Nothing).fingerprint;
            if of(ours) != of(theirs) {
                found.push(format!("{one} and {other} share different objects"));
            }
        }
    }
    if found.is_empty() {
        found.push("values share different objects".to_owned());
    }
    found
}

fn outputs(step: &str, one: &Execution, two: &Execution) -> Vec<String> {
    let mut differences = Vec::new();
    if !one.ending.is_like(&two.ending) {
        differences
            .push(format!("{step} ended differently: {} instead of {}", one.ending, two.ending));
    }
    if one.stdout != two.stdout {
        differences.push(format!("the output of {step} differs"));
    }
    if one.stderr != two.stderr {
        differences.push(format!("the standard error of {step} differs"));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Ending;
    use crate::model::{Member, Unit};

    /// A unit of `a`, `b` and `c`, in which `a` and `b` share `shared`.
    fn state(shared: &[u8]) -> State {
        let members = ["a", "b", "c"].map(|name| Member {
            entity: Entity::name(name),
            own: Fingerprint::of(&[b"own"]),
            refs: Vec::new(),
            opaque: false,
            iterates: false,
            loads: Vec::new(),
        });
        let unit = Unit {
            key: "1.0".into(),
            members: members.into(),
            share: vec![(0, 1, Fingerprint::of(&[shared]))],
            refs: Vec::new(),
            unserializable: None,
            size: 0,
        };
        view(&Swept { units: vec![unit], ..Swept::default() })
    }

    #[test]
    fn a_busy_machine_does_not_change_how_a_late_step_ended() {
        let limit = std::time::Duration::from_secs(3);
        let late = Ending::Timeout { limit };
        assert!(late.is_like(&Ending::Stalled { limit }));
        assert!(!late.is_like(&Ending::Stalled { limit: limit * 2 }));
        assert!(!late.is_like(&Ending::Ok) && !Ending::Ok.is_like(&Ending::OutOfMemory));
    }

    #[test]
    fn the_pairs_that_share_different_objects_are_named() {
        assert!(differing(&state(b"one"), &state(b"one")).is_empty());
        let found = differing(&state(b"one"), &state(b"two"));
        assert_eq!(found, ["n:a and n:b share different objects"]);
    }
}
