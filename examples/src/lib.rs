//! What the example programs share.

pub mod repair;
