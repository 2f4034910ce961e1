//! Reading a session from its store.

use std::collections::HashSet;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::session::{Recorded, Replay, ReplayError};
use crate::store::{Holder, InboxSeq, Page, ReadFrom, ReadRequest, SessionStore, StoreError};

/// Why a session could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A session as it is read without a lease.
pub(crate) struct Read {
    pub(crate) recorded: Recorded,
    pub(crate) head: Seq,
    pub(crate) holder: Option<Holder>,
    /// The inbox messages that the summary counts as read.
    pub(crate) counted: InboxSeq,
    /// The first entry that is kept.
    pub(crate) first: Seq,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) set_aside: u64,
    /// The bytes since the last snapshot.
    pub(crate) since: u64,
}

impl Read {
    /// The inbox messages that were applied or passed over.
    pub(crate) fn inbox(&self) -> InboxSeq {
        self.recorded.session.inbox.max(self.counted)
    }

    /// Whether a page shows the same session. Only one that has interrupts is recognized: no two
    /// sessions share the id of an interrupt.
    pub(crate) fn is_in(&self, page: &Page) -> bool {
        let open: HashSet<_> = self.recorded.session.open_interrupts().map(|it| &it.id).collect();
        !open.is_empty()
            && open.len() == page.interrupts.len()
            && page.interrupts.iter().all(|one| open.contains(&one.id))
            && (page.first, page.head) == (self.first, self.head)
    }
}

/// Reads a session from its last snapshot on. `None` if there is no such session.
///
/// # Errors
/// The store failed, or the log does not replay.
pub(crate) async fn read(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Option<Read>, ReadError> {
    let mut from = ReadFrom::Snapshot;
    let mut replay = Replay::default();
    loop {
        let Some(page) = store.read(session, ReadRequest::entries(from)).await? else {
            return Ok(None);
        };
        for stored in page.entries {
            replay.push(stored.seq, &stored.bytes)?;
        }
        if let Some(next) = page.next {
            from = ReadFrom::Seq(next);
            continue;
        }
        let (head, since) = (replay.head(), replay.since().bytes);
        return Ok(Some(Read {
            recorded: replay.finish()?,
            head,
            since,
            holder: page.holder,
            counted: page.summary.inbox,
            first: page.first,
            created: page.created,
            updated: page.updated,
            set_aside: page.set_aside,
        }));
    }
}
