//! Units: entities that share objects, kept as one.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Entity, Print};

/// The key of one version of a unit, minted when a step made it and never used again.
pub type UnitKey = Arc<str>;

/// One version of a unit: entities that share a mutable object, so that they can only be put back
/// together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// Its key.
    pub key: UnitKey,
    /// Its members.
    pub members: Vec<Member>,
    /// For pairs of members (their indices) that share mutable objects: which ones. A pair of tokens
    /// is told both ways round, as the order of their names means nothing.
    #[serde(default)]
    pub share: Vec<(usize, usize, Print)>,
    /// What its members refer to outside it: tokens and modules.
    #[serde(default)]
    pub refs: Vec<Entity>,
    /// Why it can not be stored, if it can not.
    #[serde(default)]
    pub hole: Option<String>,
    /// How many bytes storing it takes.
    #[serde(default)]
    pub size: u64,
}

/// One entity in a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Which.
    pub entity: Entity,
    /// The print of its content, in which a reference is its index in `refs`.
    pub own: Print,
    /// What it refers to, in the order met: indices into the unit's `refs`.
    #[serde(default)]
    pub refs: Vec<usize>,
    /// Whether `own` says nothing of the content.
    #[serde(default)]
    pub opaque: bool,
    /// The global names that its code may load.
    #[serde(default)]
    pub loads: Vec<Arc<str>>,
}
