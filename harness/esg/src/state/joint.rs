//! The joint fingerprint of a part of the state: its content, its references, and what it shares.
//!
//! The given entities are visited in order, then what they refer to, breadth first. Each visited
//! entity gets the number of its visit. References are hashed as these numbers, so the fingerprint
//! does not depend on the names of tokens, and two names of one class differ from two equal
//! classes. The digest of what they share follows for each pair of visited members of one unit.
use std::collections::HashMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{FileKind, State};
use crate::model::{Entity, Fingerprint};

/// The joint fingerprint of a part of the state, and the entities visited for it, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Joint {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) visited: Vec<Entity>,
}

/// The current content of read-only entities.
pub(crate) trait Looked {
    /// The content of an entity outside the state: a file elsewhere, a distribution.
    fn outside(&self, entity: &Entity) -> Option<String>;
}

impl State {
    /// The joint fingerprint of `entities`, which must be sorted.
    pub(crate) fn joint<'a>(
        &self,
        entities: impl IntoIterator<Item = &'a Entity>,
        looked: &dyn Looked,
    ) -> Joint {
        let mut visited: Vec<Entity> = Vec::new();
        let mut number: HashMap<Entity, u32> = HashMap::new();
        let mut all = Vec::new();
        for entity in entities {
            if *entity == Entity::Everything {
                // A program may also read the order of all names.
                all = self.names();
                for name in &all {
                    visit(name, &mut visited, &mut number);
                }
            } else {
                visit(entity, &mut visited, &mut number);
            }
        }
        let asked = visited.len();
        let mut hasher = blake3::Hasher::new();
        for name in all {
            hasher.update(&number[&name].to_le_bytes());
        }
        let mut at = 0;
        while at < visited.len() {
            let entity = visited[at].clone();
            // The name of a token has no meaning. The names asked for do.
            if at < asked && !matches!(entity, Entity::Token(_)) {
                field(&mut hasher, entity.to_string().as_bytes());
            } else if let Entity::Module(name) = &entity {
                field(&mut hasher, name.as_bytes());
            }
            match self.slots.get(&entity) {
                Some(slot) => {
                    hasher.update(b"=");
                    hasher.update(slot.member().own.bytes());
                    for reference in slot.refs() {
                        let number = visit(reference, &mut visited, &mut number);
                        hasher.update(b">");
                        hasher.update(&number.to_le_bytes());
                    }
                }
                None => self.absent(&entity, looked, &mut hasher),
            }
            at += 1;
        }
        self.shares(&visited, &number, &mut hasher);
        Joint { fingerprint: Fingerprint::new(*hasher.finalize().as_bytes()), visited }
    }

    fn absent(&self, entity: &Entity, looked: &dyn Looked, hasher: &mut blake3::Hasher) {
        match entity {
            Entity::Listing(folder) => {
                hasher.update(b"d");
                for (path, kind) in self.listing(folder) {
                    field(hasher, path.as_bytes());
                    hasher.update(&[kind as u8]);
                }
            }
            Entity::External(_) | Entity::Package(_) => match looked.outside(entity) {
                Some(text) => {
                    hasher.update(b"x");
                    field(hasher, text.as_bytes());
                }
                None => {
                    hasher.update(b"-");
                }
            },
            _ => {
                hasher.update(b"-");
            }
        }
    }

    /// The names in a scratch directory, each with its kind.
    fn listing<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, FileKind)> {
        let prefix = match folder {
            "" | "." => String::new(),
            folder => format!("{}/", folder.trim_end_matches('/')),
        };
        let from = prefix.clone();
        let bounds = (Bound::Included(from.as_str()), Bound::Unbounded);
        self.files
            .range::<str, (Bound<&str>, Bound<&str>)>(bounds)
            .map_while(move |(path, ())| Some((path.strip_prefix(prefix.as_str())?, path)))
            .filter(|(rest, _)| !rest.is_empty() && !rest.contains('/'))
            .map(|(rest, path)| (rest, self.file_kind(&Entity::File(path.clone()))))
    }

    fn shares(
        &self,
        visited: &[Entity],
        number: &HashMap<Entity, u32>,
        hasher: &mut blake3::Hasher,
    ) {
        // The pairs of a unit are read once, and only where two of its members were visited: units have
        // many pairs.
        let mut units: HashMap<_, (_, Vec<_>)> = HashMap::new();
        for entity in visited {
            let Some(slot) = self.slots.get(entity) else { continue };
            if !slot.made.unit.share.is_empty() {
                let (_, members) = units.entry(slot.key()).or_insert((&slot.made.unit, Vec::new()));
                members.push((slot.at, number[entity]));
            }
        }
        let mut pairs = Vec::new();
        for (unit, members) in units.into_values().filter(|(_, members)| members.len() > 1) {
            let mut number_of = vec![None; unit.members.len()];
            for (at, number) in members {
                number_of[at] = Some(number);
            }
            for &(one, other, digest) in &unit.share {
                let number = |at: usize| number_of.get(at).copied().flatten();
                if let (Some(from), Some(to)) = (number(one), number(other)) {
                    pairs.push((from, to, digest));
                }
            }
        }
        pairs.sort_unstable();
        for (from, to, digest) in pairs {
            hasher.update(b"&");
            hasher.update(&from.to_le_bytes());
            hasher.update(&to.to_le_bytes());
            hasher.update(digest.bytes());
        }
    }
}

fn visit(entity: &Entity, visited: &mut Vec<Entity>, number: &mut HashMap<Entity, u32>) -> u32 {
    if let Some(&known) = number.get(entity) {
        return known;
    }
    let new = u32::try_from(visited.len()).unwrap_or(u32::MAX);
    number.insert(entity.clone(), new);
    visited.push(entity.clone());
    new
}

fn field(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}
