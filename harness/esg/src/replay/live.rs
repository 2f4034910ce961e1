//! What the host knows about the worker's live values, and how to move them to what a step needs.
//!
//! Before a step runs, the namespace holds everything that the step may need, and nothing at
//! another version than the state's. Values of other versions are stashed in the worker for later
//! use. Absent values are loaded from their blobs. A value without a blob is *missing*: the steps
//! that made it have to make it again.
//!
//! A token refers to one object at a time. Whatever was made or loaded refers to the object that
//! the token meant then. Each live unit records these objects by number, and becomes useless once a
//! token means another object.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::exec::{Ran, Synced, Wrote};
use crate::model::{Entity, Fingerprint, UnitKey};
use crate::state::{Made, Seen, Slot, State};
use crate::trace::Held as Known;

mod moves;

/// A unit that the worker holds.
#[derive(Clone, Debug)]
struct Held {
    /// The live members.
    members: BTreeSet<Entity>,
    /// The references of the whole unit, and which object each meant.
    refs: Vec<(Entity, u64)>,
    /// The tokens among the members, and which object each is.
    tokens: Vec<(Entity, u64)>,
    /// Whether it is stashed, outside the namespace.
    aside: bool,
    /// Its approximate size in bytes.
    size: u64,
}

/// What the worker holds.
#[derive(Debug, Default)]
pub(crate) struct Live {
    held: HashMap<UnitKey, Held>,
    /// The unit of each entity in the namespace.
    at: HashMap<Entity, UnitKey>,
    /// The object that each token means.
    meant: HashMap<Entity, u64>,
    objects: u64,
    /// Stashed units, oldest first.
    aside: Vec<UnitKey>,
    /// What has to leave the namespace in any case.
    spoiled: BTreeSet<Entity>,
    /// The state that the whole namespace agreed with, and the position in its change log.
    agreed: Option<Seen>,
    /// What entered the namespace since.
    placed: Vec<Entity>,
    /// Whether a token means another object since.
    moved: bool,
    /// Whether the names may stand in another order than that of the state.
    disordered: bool,
    /// The source that the worker knows of each step, as it ran.
    sources: HashMap<Arc<str>, Arc<str>>,
    /// Its text since then, where only the layout differs.
    texts: HashMap<Arc<str>, Arc<str>>,
    /// What untracked operations may have left in the worker, after each step that had some.
    residues: Vec<Fingerprint>,
    /// Whether anything has left the namespace.
    used: bool,
}

/// The limit of all stashed units, in bytes.
const ASIDE: u64 = 256 << 20;

impl Live {
    /// Clears everything, for a new worker.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the worker held values that the present state does not have. Their memory may not be
    /// free again.
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// What untracked operations may have left in the worker.
    pub(crate) fn residue(&self) -> Option<Fingerprint> {
        self.residues.last().copied()
    }

    /// Whether untracked operations that led to this have run in the worker.
    pub(crate) fn passed(&self, residue: Fingerprint) -> bool {
        self.residues.contains(&residue)
    }

    /// A step with untracked operations ran.
    pub(crate) fn entered(&mut self, residue: Option<Fingerprint>) {
        self.residues.extend(residue);
    }

    /// Whether the names may stand in another order than that of the state.
    pub(crate) fn is_disordered(&self) -> bool {
        self.disordered
    }

    /// From here on they may.
    pub(crate) fn disorder(&mut self) {
        self.disordered = true;
    }

    /// Whether the namespace has the entity.
    pub(crate) fn has(&self, entity: &Entity) -> bool {
        self.at.contains_key(entity)
    }

    /// Whether the entity is live or stashed at the version of the slot.
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

    /// Records that the entity left the namespace.
    pub(crate) fn lose(&mut self, entity: &Entity) {
        let Some(key) = self.at.remove(entity) else { return };
        if let Some(held) = self.held.get_mut(&key) {
            held.members.remove(entity);
            if held.members.is_empty() {
                self.held.remove(&key);
            }
        }
    }

    /// Marks what a run left behind as unusable. It leaves with the next moves.
    pub(crate) fn spoil(&mut self, entities: impl IntoIterator<Item = Entity>) {
        for entity in entities {
            self.lose(&entity);
            if is_object(&entity) {
                // References to it are references to the spoiled object.
                let unused = self.new_object();
                self.mean(entity.clone(), unused);
            }
            self.spoiled.insert(entity);
        }
    }

    /// Records that the worker has the source of the step.
    pub(crate) fn knows_source(&mut self, step: &Arc<str>, source: &Arc<str>) {
        self.sources.insert(step.clone(), source.clone());
        self.texts.remove(step);
    }

    /// The sources that the worker does not have yet. Records that it has them.
    pub(crate) fn unknown_sources<'a>(
        &mut self,
        sources: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let unknown: Vec<_> = sources
            .filter(|(step, source)| self.sources.get(*step) != Some(*source))
            .map(|(step, source)| (step.clone(), source.clone()))
            .collect();
        for (step, source) in &unknown {
            self.knows_source(step, source);
        }
        unknown
    }

    /// Those of the texts that the worker shows with other lines. Records that it has them.
    pub(crate) fn unknown_texts<'a>(
        &mut self,
        texts: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let shown = |step: &Arc<str>| self.texts.get(step).or_else(|| self.sources.get(step));
        let unknown: Vec<_> = texts
            .filter(|(step, text)| shown(step).is_some_and(|shown| shown != *text))
            .map(|(step, text)| (step.clone(), text.clone()))
            .collect();
        self.texts.extend(unknown.iter().cloned());
        unknown
    }

    /// Whether the unit is live or stashed, and of which objects.
    pub(crate) fn knows(&self, made: &Made) -> Known {
        let Some(held) = self.held.get(&made.unit.key) else { return Known::No };
        let meant = |(token, object): &(Entity, u64)| self.meant.get(token) == Some(object);
        match self.usable(&made.unit.key, made).is_some() && held.tokens.iter().all(meant) {
            true => Known::AsMeant,
            false => Known::Else,
        }
    }

    /// Records what a successful step made. `made` has the names that the worker gave.
    pub(crate) fn ran(&mut self, ran: &Ran, made: &[Made]) {
        for (entity, wrote) in &ran.wrote {
            if *wrote == Wrote::Deleted {
                self.lose(entity);
            }
        }
        // Tokens that existed before still mean the same objects.
        let mut objects: Vec<Vec<(Entity, u64)>> = Vec::with_capacity(made.len());
        for made in made {
            let mut tokens = Vec::new();
            for member in &made.unit.members {
                let entity = &member.entity;
                if is_object(entity) {
                    let object = match self.meant.get(entity) {
                        Some(&known) if self.has(entity) => known,
                        // References to a module as imported have no number.
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

    /// Records units that failed to load.
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
