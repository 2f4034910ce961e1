//! Units: entities that share objects and are stored as one.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Entity, Fingerprint};

/// The key of one version of a unit. A step creates it; it is never reused.
pub type UnitKey = Arc<str>;

/// One version of a unit: entities that share a mutable object, so they are stored and restored
/// together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The key.
    pub key: UnitKey,
    /// The members.
    pub members: Vec<Member>,
    /// Pairs of members (by index) that share mutable objects, each with a fingerprint of what they
    /// share. A pair of tokens appears in both orders, because the order of their names has no
    /// meaning.
    #[serde(default)]
    pub share: Vec<(usize, usize, Fingerprint)>,
    /// What the members refer to outside the unit: tokens and modules.
    #[serde(default)]
    pub refs: Vec<Entity>,
    /// Why the unit cannot be serialized, if it cannot.
    #[serde(default, rename = "hole")]
    pub unserializable: Option<String>,
    /// The size of the stored form in bytes; of an unserializable unit, about what it would be.
    #[serde(default)]
    pub size: u64,
}

/// One entity in a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The entity.
    pub entity: Entity,
    /// The fingerprint of its content. A reference counts as its index in `refs`.
    pub own: Fingerprint,
    /// What it refers to, in traversal order: indices into the unit's `refs`.
    #[serde(default)]
    pub refs: Vec<usize>,
    /// Whether `own` does not depend on the content.
    #[serde(default)]
    pub opaque: bool,
    /// Whether it is an iterator, which every use changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub iterates: bool,
    /// The global names that its code may load.
    #[serde(default)]
    pub loads: Vec<Arc<str>>,
}
