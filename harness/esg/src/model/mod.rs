//! The parts of a program's state: entities, the units that hold them, and their fingerprints.
mod entity;
mod fingerprint;
mod list;
mod unit;

pub use entity::{Entity, EntityError};
pub use fingerprint::Fingerprint;
pub(crate) use list::List;
pub use unit::{Member, Unit, UnitKey};
