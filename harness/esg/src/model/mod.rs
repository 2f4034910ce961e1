//! What a program's state consists of: entities, the units they live in, and prints of both.
mod entity;
mod list;
mod print;
mod unit;

pub use entity::{Entity, EntityError};
pub(crate) use list::List;
pub use print::Print;
pub use unit::{Member, Unit, UnitKey};
