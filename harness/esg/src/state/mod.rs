//! The state between two steps: which version of which unit each entity is at.
//!
//! A state is pure bookkeeping: it holds no values, only the prints of them that the worker
//! computed, so that the prints of any part of it can be computed without a worker.
mod group;
mod joint;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use joint::Looked;

use serde::{Deserialize, Serialize};

use super::blobs::Stored;
use super::model::{Entity, Member, Unit, UnitKey};

/// A version of a unit, as a step made it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    /// What it consists of.
    pub(crate) unit: Unit,
    /// Where its stored form is; absent for a hole.
    pub(crate) stored: Option<Stored>,
}

/// Where an entity is.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The unit it is in.
    pub(crate) made: Arc<Made>,
    /// Which member it is.
    pub(crate) at: usize,
    /// The step that last bound, changed or made it.
    pub(crate) by: Arc<str>,
}

impl Slot {
    pub(crate) fn key(&self) -> &UnitKey {
        &self.made.unit.key
    }

    pub(crate) fn member(&self) -> &Member {
        &self.made.unit.members[self.at]
    }

    /// What it refers to, in the order of its traversal.
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
    /// Which step removed what is absent.
    gone: HashMap<Entity, Arc<str>>,
    /// The paths in scratch, for listings.
    files: BTreeMap<Arc<str>, ()>,
    /// What is neither a name nor the object of a token.
    around: BTreeSet<Entity>,
    /// What was put or removed, in order.
    log: Vec<Entity>,
    id: Id,
}

/// Tells states apart: a copy is another state.
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

/// How far somebody has followed a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    id: u64,
    upto: usize,
}

impl State {
    pub(crate) fn slot(&self, entity: &Entity) -> Option<&Slot> {
        self.slots.get(entity)
    }

    /// The step whose doing it is that the entity is as it is.
    pub(crate) fn by(&self, entity: &Entity) -> Option<&Arc<str>> {
        self.slots.get(entity).map(|slot| &slot.by).or_else(|| self.gone.get(entity))
    }

    pub(crate) fn entities(&self) -> impl Iterator<Item = (&Entity, &Slot)> {
        self.slots.iter()
    }

    /// What is neither a name nor the object of a token: files, modules, the process.
    pub(crate) fn around(&self) -> impl Iterator<Item = (&Entity, &Slot)> {
        self.around.iter().filter_map(|entity| Some((entity, self.slots.get(entity)?)))
    }

    /// How far one has followed who knows all of the state as it is now.
    pub(crate) fn seen(&self) -> Seen {
        Seen { id: self.id.0, upto: self.log.len() }
    }

    /// What may have changed since; `None` if it was another state.
    pub(crate) fn since(&self, seen: Seen) -> Option<&[Entity]> {
        (seen.id == self.id.0).then(|| self.log.get(seen.upto..).unwrap_or_default())
    }

    /// What is at a path in scratch.
    pub(crate) fn file_kind(&self, entity: &Entity) -> FileKind {
        let Some(slot) = self.slots.get(entity) else { return FileKind::Nothing };
        // The first byte of a stored file says what it is; directories and links are small.
        match &slot.made.stored {
            Some(Stored::Inline(bytes)) if bytes.first() == Some(&b'd') => FileKind::Directory,
            Some(Stored::Inline(bytes)) if bytes.first() == Some(&b'l') => FileKind::Link,
            _ => FileKind::File,
        }
    }

    pub(crate) fn put(&mut self, entity: Entity, slot: Slot) {
        if let Entity::File(path) = &entity {
            self.files.insert(path.clone(), ());
        }
        if !matches!(entity, Entity::Name(_) | Entity::Token(_)) {
            self.around.insert(entity.clone());
        }
        self.log.push(entity.clone());
        self.gone.remove(&entity);
        self.slots.insert(entity, slot);
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

    /// Says that the entity is as it is because of `by`.
    pub(crate) fn credit(&mut self, entity: &Entity, by: &Arc<str>) {
        if let Some(slot) = self.slots.get_mut(entity) {
            slot.by = by.clone();
        }
    }
}
