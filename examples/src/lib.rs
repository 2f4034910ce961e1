//! What the examples that keep sessions share: where the store is, the log of a session in words,
//! text that is safe to print, and an agent.

mod history;
mod store;
pub mod support;
mod text;

pub use history::{describe, last_question, log, moment};
pub use store::{OpenStore, default_dir, open, quoted};
pub use text::shown;
