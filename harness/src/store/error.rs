//! Why a store did not do what it was asked.

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};

/// Why a store did not do what it was asked. Nothing has changed, unless the error says that it
/// does not know.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else holds the session.
    #[error("session `{session}` is held by another run (its lease expires at {until})")]
    Busy {
        /// The session.
        session: SessionId,
        /// When the lease expires, if it is not renewed.
        until: UtcMillis,
    },
    /// The log does not end where the writer thinks.
    #[error("the log of session `{session}` ends at {head}, not at {after}")]
    Conflict {
        /// The session.
        session: SessionId,
        /// Where the writer wanted to append.
        after: Seq,
        /// Where the log ends.
        head: Seq,
    },
    /// The lease is no longer held: another claim has come since, or it was released.
    #[error("the lease of session `{session}` was taken by another run")]
    Fenced {
        /// The session.
        session: SessionId,
    },
    /// The session does not exist, or was removed.
    #[error("there is no session `{session}` in the store (it was removed, or never written)")]
    Gone {
        /// The session.
        session: SessionId,
    },
    /// The entries asked for were pruned.
    #[error("session `{session}` is kept from entry {first} on; those before were pruned")]
    Pruned {
        /// The session.
        session: SessionId,
        /// The first entry that is kept.
        first: Seq,
    },
    /// What is stored is not what was written.
    #[error(
        "the log of session `{session}` is damaged behind entry {after}: {what} (nothing was \
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
        "session `{session}` was written up to entry {acknowledged}, but the store has lost all \
         behind entry {head}"
    )]
    LostWrites {
        /// The session.
        session: SessionId,
        /// The last entry that the store had acknowledged.
        acknowledged: Seq,
        /// The last entry it has.
        head: Seq,
    },
    /// There is no room left.
    #[error("the store is full: {0}")]
    Full(String),
    /// A batch or a letter is larger than the store takes.
    #[error("{bytes} bytes are more than the {limit} that the store takes at once")]
    TooLarge {
        /// How many bytes were given.
        bytes: u64,
        /// How many are taken.
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
    /// The store cannot be used at all as it is set up.
    #[error("the store cannot be used: {0}")]
    Unsuitable(String),
    /// The store did not answer, or failed.
    #[error("the store failed: {what}")]
    Unavailable {
        /// What went wrong.
        what: String,
        /// Whether it may have been done all the same.
        ambiguous: bool,
        /// The error below.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    /// A failure after which it is certain that nothing was done.
    pub fn unavailable(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { what: what.into(), ambiguous: false, source: Some(source.into()) }
    }

    /// Whether it may have been done all the same.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Unavailable { ambiguous: true, .. })
    }
}
