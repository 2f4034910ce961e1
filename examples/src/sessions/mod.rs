//! Sessions in files, for the programs that keep theirs: where they are kept, and what their logs
//! say to a person.

mod log;
mod place;
mod story;

pub use log::{Log, ReadError, last_question, read};
pub use place::{Place, default_dir, open};
pub use story::{moment, tell};
