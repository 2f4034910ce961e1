//! Reading the log of a session.

use harness::log::{Entry, EntryError, EntryKind};
use harness::store::{From, Holder, Mail, SessionStore, StoreError};
use harness::{Seq, SessionId};

/// How many bytes of entries are read at once.
const PAGE: u64 = 1 << 20;

/// The log of a session, as far as it is kept.
#[derive(Debug)]
pub struct Log {
    /// The entries, oldest first.
    pub entries: Vec<(Seq, Entry)>,
    /// Whoever holds the session.
    pub holder: Option<Holder>,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry is none.
    #[error("entry {seq}: {source}")]
    Entry {
        /// Which.
        seq: Seq,
        /// Why.
        source: EntryError,
    },
}

/// Reads the log of a session; `None` if there is no such session.
///
/// # Errors
/// A store that fails, and an entry that does not decode.
pub async fn read(store: &dyn SessionStore, id: &SessionId) -> Result<Option<Log>, ReadError> {
    let mut entries = Vec::new();
    let mut from = From::Seq(Seq(0));
    loop {
        let Some(page) = store.read(id, from, Mail(u64::MAX), PAGE).await? else {
            return Ok(None);
        };
        for stored in &page.entries {
            let entry = Entry::decode(&stored.bytes)
                .map_err(|source| ReadError::Entry { seq: stored.seq, source })?;
            entries.push((stored.seq, entry));
        }
        match page.next {
            Some(next) => from = From::Seq(next),
            None => return Ok(Some(Log { entries, holder: page.holder })),
        }
    }
}

/// The last question that the session asked, answered or not.
#[must_use]
pub fn last_question(log: &Log) -> Option<&harness::Interrupt> {
    log.entries.iter().rev().find_map(|(_, entry)| match &entry.kind {
        EntryKind::Asked(asked) => asked.questions.last(),
        _ => None,
    })
}
