//! Why a call of a store failed.

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};

/// Why a call of a store failed. Nothing has changed, unless the error [is
/// ambiguous](Self::is_ambiguous).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the session.
    #[error("session `{session:#}` is held by another run (its lease expires at {until})")]
    Busy {
        /// The session.
        session: SessionId,
        /// When the lease expires, if it is not renewed.
        until: UtcMillis,
    },
    /// The log does not end where the writer assumes.
    #[error("the log of session `{session:#}` ends at {head}, not at {after}")]
    Conflict {
        /// The session.
        session: SessionId,
        /// The head that the writer assumes.
        after: Seq,
        /// The head of the log.
        head: Seq,
    },
    /// The lease is no longer held: another claim has come since, or it was
    /// released.
    #[error(
        "the lease of session `{session:#}` is lost (another run has claimed it, or it was released)"
    )]
    Fenced {
        /// The session.
        session: SessionId,
    },
    /// The session does not exist, or was removed.
    #[error("no session `{session:#}` in the store (it was removed, or never written)")]
    Gone {
        /// The session.
        session: SessionId,
    },
    /// The entries asked for were pruned.
    #[error("entries of session `{session:#}` below {first} were pruned")]
    Pruned {
        /// The session.
        session: SessionId,
        /// The first entry that is kept.
        first: Seq,
    },
    /// The stored bytes are not the written bytes.
    #[error(
        "the log of session `{session:#}` is damaged after entry {after}: {what} (nothing was \
         changed; restore it from a backup)"
    )]
    Corrupt {
        /// The session.
        session: SessionId,
        /// The last entry that is sound.
        after: Seq,
        /// What is wrong.
        what: String,
    },
    /// Entries that were acknowledged are missing.
    #[error(
        "the store has lost entries of session `{session:#}`: {acknowledged} were acknowledged, and \
         {head} are there"
    )]
    LostWrites {
        /// The session.
        session: SessionId,
        /// The last entry that the store had acknowledged.
        acknowledged: Seq,
        /// The last entry it has.
        head: Seq,
    },
    /// What is stored is encrypted with a key that the store was not given.
    #[error(
        "session `{session:#}` is encrypted with the key `{key}`, which the store was not given (give \
         it to read what it has encrypted)"
    )]
    MissingKey {
        /// The session.
        session: SessionId,
        /// The id of the key.
        key: String,
    },
    /// What is stored is encrypted with another key than the one given under its id.
    #[error(
        "session `{session:#}` is encrypted with another key than the one given as `{key}` (the id \
         is the same, the secret differs)"
    )]
    WrongKey {
        /// The session.
        session: SessionId,
        /// The id of the keys.
        key: String,
    },
    /// No room is left.
    #[error("the store is full: {0}")]
    Full(String),
    /// A batch or a message is larger than the store accepts.
    #[error("{bytes} bytes exceed the limit of {limit} bytes at once")]
    TooLarge {
        /// The bytes given.
        bytes: u64,
        /// The most bytes accepted.
        limit: u64,
    },
    /// The store was written by a newer version.
    #[error("the store has format {found}; this version reads up to {known} (upgrade `harness`)")]
    NewerFormat {
        /// The format found.
        found: u32,
        /// The newest format known.
        known: u32,
    },
    /// The store cannot be used as it is set up.
    #[error("the store cannot be used: {0}")]
    Unsuitable(String),
    /// The store did not answer, or failed.
    #[error("the store failed: {what}")]
    Unavailable {
        /// What failed.
        what: String,
        /// Whether the call may have had its effect.
        ambiguous: bool,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    /// A failure that certainly had no effect.
    pub fn unavailable(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { what: what.into(), ambiguous: false, source: Some(source.into()) }
    }

    /// Whether the call may have had its effect.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Unavailable { ambiguous: true, .. })
    }
}
