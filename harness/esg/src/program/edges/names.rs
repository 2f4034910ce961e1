//! Channels by number.
use std::collections::HashMap;
use std::sync::Arc;

use crate::model::Entity;

/// The number of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(u32);

impl Name {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every channel that any step has named, with its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Global names by themselves, all others in their text form: Python names have no colon.
    numbers: HashMap<Arc<str>, Name>,
    entities: Vec<Entity>,
}

impl Names {
    pub(super) fn of_name(&mut self, name: &str) -> Name {
        match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let name: Arc<str> = name.into();
                self.add(name.clone(), Entity::Name(name))
            }
        }
    }

    pub(super) fn of_entity(&mut self, entity: &Entity) -> Name {
        if let Some(name) = entity.as_name() {
            return self.of_name(name);
        }
        let text = entity.to_string();
        match self.numbers.get(text.as_str()) {
            Some(number) => *number,
            None => self.add(text.into(), entity.clone()),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Name> {
        self.numbers.get(name).copied()
    }

    pub(super) fn entity(&self, name: Name) -> &Entity {
        self.entities.get(name.index()).unwrap_or(&Entity::Everything)
    }

    pub(super) fn len(&self) -> usize {
        self.entities.len()
    }

    fn add(&mut self, key: Arc<str>, entity: Entity) -> Name {
        let name = Name(u32::try_from(self.entities.len()).unwrap_or(u32::MAX));
        self.numbers.insert(key, name);
        self.entities.push(entity);
        name
    }
}
