//! Queries: what ran, why, and its effects. Every answer displays as sentences.
mod at;
mod credit;
mod effect;
mod producer;
mod stale;

pub use at::RanAt;
pub use credit::Credit;
pub use effect::{Effect, Touched};
pub use producer::{Chain, Link};

use std::fmt;

use crate::model::Entity;
use crate::program::VersionId;

/// The subject of a query: a version of a step, or a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A version of a step or an input.
    Version(VersionId),
    /// A name, a file, the environment.
    Entity(Entity),
}

impl From<VersionId> for Subject {
    fn from(version: VersionId) -> Self {
        Self::Version(version)
    }
}

impl From<Entity> for Subject {
    fn from(entity: Entity) -> Self {
        Self::Entity(entity)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Entity(entity) => crate::model::List(std::slice::from_ref(entity)).fmt(f),
        }
    }
}
