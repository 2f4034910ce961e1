//! The state between two steps: the version of the unit that holds each entity.
//!
//! A state holds no values, only the fingerprints that the worker computed. So the fingerprint of
//! any part of it can be computed without a worker.
mod group;
mod joint;
mod past;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use joint::{Joint, Looked};
pub(crate) use past::Past;

use serde::{Deserialize, Serialize};

use super::blobs::StoredValue;
use super::model::{Entity, Member, Unit, UnitKey};

/// A version of a unit, as a step made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The unit.
    pub(crate) unit: Unit,
    /// Where its serialized form is; `None` if it is unserializable.
    pub(crate) stored: Option<StoredValue>,
}

/// Where an entity is.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The unit it is in.
    pub(crate) made: Arc<Made>,
    /// The index of the member.
    pub(crate) at: usize,
    /// The step that last bound, changed or made it.
    pub(crate) by: Arc<str>,
    /// Its place in the order in which names came to be.
    turn: u64,
}

impl Slot {
    pub(crate) fn key(&self) -> &UnitKey {
        &self.made.unit.key
    }

    pub(crate) fn member(&self) -> &Member {
        &self.made.unit.members[self.at]
    }

    /// What it refers to, in traversal order.
    pub(crate) fn refs(&self) -> impl Iterator<Item = &Entity> {
        self.member().refs.iter().filter_map(|&index| self.made.unit.refs.get(index))
    }
}

/// What is at a path in scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKind {
    Nothing,
    File,
    Directory,
    Link,
}

/// The state before or after a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    slots: HashMap<Entity, Slot>,
    /// The step that removed each absent entity.
    gone: HashMap<Entity, Arc<str>>,
    /// The paths in scratch, for listings.
    files: BTreeMap<Arc<str>, ()>,
    /// Entities that are neither names nor tokens.
    around: BTreeSet<Entity>,
    /// The entities put or removed, in order.
    log: Vec<Entity>,
    /// The turn of the next name.
    turns: u64,
    id: Id,
    past: Past,
}

/// Identifies a state. A copy is another state.
#[derive(Debug)]
struct Id(u64);

impl Default for Id {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Id {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A position in the change log of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    id: u64,
    upto: usize,
}

impl State {
    /// What ran so far.
    pub(crate) fn past(&self) -> Past {
        self.past
    }

    /// Corrects what ran so far.
    pub(crate) fn set_past(&mut self, past: Past) {
        self.past = past;
    }

    pub(crate) fn slot(&self, entity: &Entity) -> Option<&Slot> {
        self.slots.get(entity)
    }

    /// The step that last determined the entity.
    pub(crate) fn by(&self, entity: &Entity) -> Option<&Arc<str>> {
        self.slots.get(entity).map(|slot| &slot.by).or_else(|| self.gone.get(entity))
    }

    pub(crate) fn entities(&self) -> impl Iterator<Item = (&Entity, &Slot)> {
        self.slots.iter()
    }

    /// The entities that are neither names nor tokens: files, modules, the process.
    pub(crate) fn around(&self) -> impl Iterator<Item = (&Entity, &Slot)> {
        self.around.iter().filter_map(|entity| Some((entity, self.slots.get(entity)?)))
    }

    /// The files, and the state of the process that no import determines: what is there after a run
    /// without a look into the namespace. What cannot be stored is made again where a step needs it.
    pub(crate) fn world(&self) -> BTreeSet<Entity> {
        let world = self.around().filter(|(entity, slot)| match entity {
            Entity::File(_) => true,
            Entity::Process(name) => {
                !name.starts_with("import/") && slot.made.unit.unserializable.is_none()
            }
            _ => false,
        });
        world.map(|(entity, _)| entity.clone()).collect()
    }

    /// The position of a reader that knows all of the state as it is now.
    pub(crate) fn seen(&self) -> Seen {
        Seen { id: self.id.0, upto: self.log.len() }
    }

    /// The entities that may have changed since; `None` if `seen` belongs to another state.
    pub(crate) fn since(&self, seen: Seen) -> Option<&[Entity]> {
        (seen.id == self.id.0).then(|| self.log.get(seen.upto..).unwrap_or_default())
    }

    /// What is at a path in scratch.
    pub(crate) fn file_kind(&self, entity: &Entity) -> FileKind {
        let Some(slot) = self.slots.get(entity) else { return FileKind::Nothing };
        // The first byte of a stored file is its kind. Directories and links are small.
        match &slot.made.stored {
            Some(StoredValue::Inline(bytes)) if bytes.first() == Some(&b'd') => FileKind::Directory,
            Some(StoredValue::Inline(bytes)) if bytes.first() == Some(&b'l') => FileKind::Link,
            _ => FileKind::File,
        }
    }

    /// Puts the member of a unit. A name that exists keeps its place in the order of names.
    pub(crate) fn put(&mut self, made: &Arc<Made>, at: usize, by: &Arc<str>) {
        let entity = made.unit.members[at].entity.clone();
        if let Entity::File(path) = &entity {
            self.files.insert(path.clone(), ());
        }
        if !matches!(entity, Entity::Name(_) | Entity::Token(_)) {
            self.around.insert(entity.clone());
        }
        self.log.push(entity.clone());
        self.gone.remove(&entity);
        let turn = self.slots.get(&entity).map_or(self.turns, |slot| slot.turn);
        self.turns += 1;
        self.slots.insert(entity, Slot { made: made.clone(), at, by: by.clone(), turn });
    }

    /// Makes these names the last ones, in this order.
    pub(crate) fn place_last(&mut self, names: &[Entity]) {
        for name in names {
            if let Some(slot) = self.slots.get_mut(name) {
                slot.turn = self.turns;
                self.turns += 1;
            }
        }
    }

    /// The names, in the order in which they came to be: that in which a program finds them in its namespace.
    pub(crate) fn names(&self) -> Vec<Entity> {
        let names = self.slots.iter().filter(|(entity, _)| matches!(entity, Entity::Name(_)));
        let mut names: Vec<_> = names.map(|(entity, slot)| (slot.turn, entity)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, entity)| entity.clone()).collect()
    }

    pub(crate) fn remove(&mut self, entity: &Entity, by: &Arc<str>) {
        if let Entity::File(path) = entity {
            self.files.remove(path);
        }
        self.around.remove(entity);
        self.log.push(entity.clone());
        self.slots.remove(entity);
        self.gone.insert(entity.clone(), by.clone());
    }

    /// Records `by` as the step that last determined the entity.
    pub(crate) fn credit(&mut self, entity: &Entity, by: &Arc<str>) {
        if let Some(slot) = self.slots.get_mut(entity) {
            slot.by = by.clone();
        }
    }
}
