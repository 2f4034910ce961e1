//! Reports of sessions: what they say, and that nothing in a session becomes markup.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[cfg(all(feature = "code", feature = "testing"))]
mod coded;
mod hostile;
mod shown;
