//! What the examples that keep sessions share: where the store is, the log of a session in words,
//! and text that is safe to print.

mod history;
mod store;
mod text;

pub use history::{describe, last_question, log, moment};
pub use store::{OpenStore, default_dir, open, quoted};
pub use text::shown;
