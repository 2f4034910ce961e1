//! Reports of sessions: what they say, and that nothing in a session becomes markup.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod hostile;
mod shown;
