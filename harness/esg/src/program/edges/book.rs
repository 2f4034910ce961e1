//! The static effects of every step, as numbers.
use crate::scan::Scan;

use super::super::order::Slot;
use super::Observed;
use super::facts::Facts;
use super::names::{Name, Names};

/// The static effects of every step. It is maintained from the first step on, so that building the
/// [index](super::Net) looks up no name.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Book {
    names: Names,
    /// By slot; none of a step that is not in the program.
    facts: Vec<Option<Facts>>,
}

impl Book {
    /// The effects of a step, for [`write`](Book::write).
    pub(in super::super) fn read(&mut self, scan: &Scan, observed: Option<&Observed>) -> Facts {
        Facts::of(&mut self.names, scan, observed)
    }

    /// The effects of an input, for [`write`](Book::write).
    pub(in super::super) fn read_input(&mut self, name: &str) -> Facts {
        Facts::input(&mut self.names, name)
    }

    /// Sets the effects of the step at a slot.
    pub(in super::super) fn write(&mut self, slot: Slot, facts: Option<Facts>) {
        if self.facts.len() <= slot.index() {
            self.facts.resize_with(slot.index() + 1, || None);
        }
        self.facts[slot.index()] = facts;
    }

    /// The effects of the step at a slot.
    pub(in super::super) fn facts(&self, slot: Slot) -> Option<&Facts> {
        self.facts.get(slot.index()).and_then(Option::as_ref)
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// What a step does to one channel by itself.
    pub(super) fn own(&self, slot: Slot) -> &[(Name, super::channel::How)] {
        self.facts(slot).map(|facts| facts.own.as_slice()).unwrap_or_default()
    }
}
