//! What the worker holds, as the host believes, and how to move it to where a step needs it.
//!
//! Before a step runs, the namespace holds nothing that is not at the version the state says, and
//! everything that the step may need. What is at another version is kept aside in the worker, for
//! the way back; what is not there is loaded from its blob; what has no blob is *missing*, and has to
//! be made again by the steps that made it.
//!
//! A token means one object at a time. Whatever was made or loaded refers to the object that was
//! meant then: each live unit knows which, by a number, and is of no use once the token means
//! another.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::exec::{Ran, Synced, Wrote};
use crate::model::{Entity, UnitKey};
use crate::state::{Made, Seen, Slot, State};
use crate::trace::Held as Known;

mod moves;

/// A unit that the worker holds.
#[derive(Clone, Debug)]
struct Held {
    /// The members that are there.
    members: BTreeSet<Entity>,
    /// The references of the whole unit, and which object each meant.
    refs: Vec<(Entity, u64)>,
    /// The tokens among the members, and which object each is.
    tokens: Vec<(Entity, u64)>,
    /// Whether it is kept aside, out of the namespace.
    aside: bool,
    /// About how many bytes it takes.
    size: u64,
}

/// What the worker holds.
#[derive(Debug, Default)]
pub(crate) struct Live {
    held: HashMap<UnitKey, Held>,
    /// The unit of each entity in the namespace.
    at: HashMap<Entity, UnitKey>,
    /// Which object a token means.
    meant: HashMap<Entity, u64>,
    objects: u64,
    /// Units kept aside, oldest first.
    aside: Vec<UnitKey>,
    /// What has to leave the namespace, whatever it is.
    spoiled: BTreeSet<Entity>,
    /// The state that all of the namespace agreed with, and how far that had come.
    agreed: Option<Seen>,
    /// What came into the namespace since.
    placed: Vec<Entity>,
    /// Whether a token means another object since.
    moved: bool,
    /// The source that the worker knows of each step.
    sources: HashMap<Arc<str>, Arc<str>>,
}

/// How much the units kept aside may take together, in bytes.
const ASIDE: u64 = 256 << 20;

impl Live {
    /// Forgets everything: the worker is another one.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the namespace has the entity.
    pub(crate) fn has(&self, entity: &Entity) -> bool {
        self.at.contains_key(entity)
    }

    /// Whether the entity is there, or aside, at the version that the slot says.
    pub(crate) fn holds(&self, entity: &Entity, slot: &Slot) -> bool {
        self.usable(slot.key(), &slot.made).is_some_and(|held| held.members.contains(entity))
    }

    fn usable(&self, key: &UnitKey, made: &Made) -> Option<&Held> {
        let held = self.held.get(key)?;
        let same = held.refs.len() == made.unit.refs.len()
            && std::iter::zip(&held.refs, &made.unit.refs).all(|((entity, object), wanted)| {
                entity == wanted && self.meant.get(entity).copied().unwrap_or(0) == *object
            });
        same.then_some(held)
    }

    fn new_object(&mut self) -> u64 {
        self.objects += 1;
        self.objects
    }

    fn mean(&mut self, entity: Entity, object: u64) {
        self.moved |= self.meant.insert(entity, object) != Some(object);
    }

    fn place(&mut self, entity: &Entity, key: &UnitKey) {
        self.at.insert(entity.clone(), key.clone());
        self.placed.push(entity.clone());
    }

    fn hold(&mut self, made: &Made, members: BTreeSet<Entity>) {
        let mut tokens = Vec::new();
        for member in &made.unit.members {
            if is_object(&member.entity) && members.contains(&member.entity) {
                let object = self.new_object();
                self.mean(member.entity.clone(), object);
                tokens.push((member.entity.clone(), object));
            }
        }
        self.keep(made, members, tokens);
    }

    fn keep(&mut self, made: &Made, members: BTreeSet<Entity>, tokens: Vec<(Entity, u64)>) {
        let refs = made
            .unit
            .refs
            .iter()
            .map(|entity| (entity.clone(), self.meant.get(entity).copied().unwrap_or(0)))
            .collect();
        for entity in &members {
            self.place(entity, &made.unit.key);
        }
        let held = Held { members, refs, tokens, aside: false, size: made.unit.size };
        self.held.insert(made.unit.key.clone(), held);
    }

    /// The entity is not in the namespace any more.
    pub(crate) fn lose(&mut self, entity: &Entity) {
        let Some(key) = self.at.remove(entity) else { return };
        if let Some(held) = self.held.get_mut(&key) {
            held.members.remove(entity);
            if held.members.is_empty() {
                self.held.remove(&key);
            }
        }
    }

    /// What a run left behind must not be used, and leaves with the next moves.
    pub(crate) fn spoil(&mut self, entities: impl IntoIterator<Item = Entity>) {
        for entity in entities {
            self.lose(&entity);
            if is_object(&entity) {
                // Whatever refers to it refers to the spoiled object.
                let nobodys = self.new_object();
                self.mean(entity.clone(), nobodys);
            }
            self.spoiled.insert(entity);
        }
    }

    /// The worker has been given the source of the step.
    pub(crate) fn knows_source(&mut self, step: &Arc<str>, source: &Arc<str>) {
        self.sources.insert(step.clone(), source.clone());
    }

    /// Those of the sources that the worker does not know; from now on it does.
    pub(crate) fn unknown_sources<'a>(
        &mut self,
        sources: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let unknown: Vec<_> = sources
            .filter(|(step, source)| self.sources.get(*step) != Some(*source))
            .map(|(step, source)| (step.clone(), source.clone()))
            .collect();
        self.sources.extend(unknown.iter().cloned());
        unknown
    }

    /// Whether the unit is there or aside, and of which objects.
    pub(crate) fn knows(&self, made: &Made) -> Known {
        let Some(held) = self.held.get(&made.unit.key) else { return Known::No };
        let meant = |(token, object): &(Entity, u64)| self.meant.get(token) == Some(object);
        match self.usable(&made.unit.key, made).is_some() && held.tokens.iter().all(meant) {
            true => Known::AsMeant,
            false => Known::Else,
        }
    }

    /// Takes note of what a step that ended well made. `made` is as the worker named it.
    pub(crate) fn ran(&mut self, ran: &Ran, made: &[Made]) {
        for (entity, wrote) in &ran.wrote {
            if *wrote == Wrote::Deleted {
                self.lose(entity);
            }
        }
        // Tokens that were there before are the same objects still.
        let mut objects: Vec<Vec<(Entity, u64)>> = Vec::with_capacity(made.len());
        for made in made {
            let mut tokens = Vec::new();
            for member in &made.unit.members {
                let entity = &member.entity;
                if is_object(entity) {
                    let object = match self.meant.get(entity) {
                        Some(&known) if self.has(entity) => known,
                        // References to a module as its import left it mean no number.
                        None if matches!(entity, Entity::Module(_)) => 0,
                        _ => self.new_object(),
                    };
                    tokens.push((entity.clone(), object));
                }
            }
            objects.push(tokens);
        }
        for made in made {
            made.unit.members.iter().for_each(|member| self.lose(&member.entity));
        }
        for (entity, object) in objects.iter().flatten() {
            self.mean(entity.clone(), *object);
        }
        for (made, tokens) in std::iter::zip(made, objects) {
            let members = made.unit.members.iter().map(|member| member.entity.clone()).collect();
            self.keep(made, members, tokens);
        }
    }

    /// Takes note of units that turned out not to load.
    pub(crate) fn failed(&mut self, synced: &Synced) {
        for (key, _) in &synced.failed {
            if let Some(held) = self.held.remove(key) {
                held.members.iter().for_each(|entity| {
                    self.at.remove(entity);
                });
            }
        }
    }
}

/// Whether references to the entity mean an object that can be replaced by another.
fn is_object(entity: &Entity) -> bool {
    matches!(entity, Entity::Token(_) | Entity::Module(_))
}
