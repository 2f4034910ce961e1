//! Sessions in files, for the programs that keep theirs: where they are kept, and what their logs
//! say to a person.

mod log;
mod place;
mod story;

pub use log::{last_question, log};
pub use place::{Place, default_dir, open, quoted};
pub use story::{moment, tell};
