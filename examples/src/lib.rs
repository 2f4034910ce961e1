//! What the example programs share.

pub mod measure;
pub mod repair;
