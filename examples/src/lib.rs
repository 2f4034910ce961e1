//! What the example programs share.

pub mod approval;
pub mod esg;
pub mod measure;
pub mod pipeline;
pub mod repair;
pub mod repair_loop;
pub mod sessions;
