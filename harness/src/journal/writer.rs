//! Appending what waits, in order, until the store has acknowledged it.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::Seq;
use crate::store::{Appended, Batch, Lease, SessionStore, StoreError};

use super::pending::Pending;
use super::status::LeaseStatus;
use super::{Broken, Shared, room};

/// The waits before the same bytes are sent again to a store that failed.
const RESENDS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// The one writer of a session. It assigns the seqs: one append is under way at a time.
pub(super) struct Writer {
    pub(super) lease: Lease,
    /// The last entry in the store.
    pub(super) head: Seq,
    /// The batch that is sent.
    batch: Option<Box<Pending>>,
}

impl Writer {
    pub(super) fn new(lease: Lease, head: Seq) -> Self {
        Self { lease, head, batch: None }
    }

    /// Appends what waits, or only makes durable what is in the store.
    pub(super) async fn send(&mut self, shared: &Shared, flush: bool) -> Result<(), Broken> {
        if self.batch.as_ref().is_some_and(|batch| !batch.is_empty()) {
            // The runtime of its sender has shut down. The store may have it: it is sent again as it is.
            Box::pin(self.send_batch(shared, flush)).await?;
        }
        {
            let mut buffer = shared.buffer();
            buffer.check()?;
            if buffer.is_empty() && (buffer.flushed || !flush) {
                return Ok(());
            }
            self.batch = buffer.pending.take();
        }
        self.send_batch(shared, flush).await
    }

    async fn send_batch(&mut self, shared: &Shared, flush: bool) -> Result<(), Broken> {
        let (one, several);
        let sent = self.batch.get_or_insert_with(room::take);
        let entries = match sent.only_entry() {
            // Most batches have one.
            Some(entry) => {
                one = [entry];
                &one[..]
            }
            None => {
                several = sent.entries();
                &several[..]
            }
        };
        let batch = Batch {
            after: self.head,
            // The last entry was made just now: the clock need not be read again.
            at: if entries.is_empty() { UtcMillis::now() } else { sent.at },
            entries,
            summary: sent.summary.as_ref(),
            open: &sent.open,
            close: &sent.close,
            flush,
        };
        let appended = match shared.store.append(&self.lease, batch).await {
            Ok(appended) => Ok(appended),
            Err(error) => {
                let resent = resend(&*shared.store, &self.lease, &shared.status, batch, error);
                Box::pin(resent).await
            }
        };
        let sent = self.batch.take();
        let appended = match appended {
            Ok(appended) => appended,
            Err(broken) => return Err(shared.buffer().give_up(broken)),
        };
        let before = std::mem::replace(&mut self.head, appended.head);
        shared.note_inbox(appended.inbox);
        if let Some(mut sent) = sent {
            for (entry, notice) in sent.notices.drain(..) {
                notice(Seq(before.0 + entry));
            }
            room::give(sent);
        }
        shared.buffer().flushed = flush;
        Ok(())
    }
}

/// Sends the same bytes again, for as long as the store may recover.
async fn resend(
    store: &dyn SessionStore,
    lease: &Lease,
    status: &LeaseStatus,
    batch: Batch<'_>,
    mut error: StoreError,
) -> Result<Appended, Broken> {
    for wait in RESENDS {
        if !matches!(error, StoreError::Unavailable { .. }) || status.may_be_lost() {
            break;
        }
        tracing::warn!(session = %lease.session, %error, "sending an append again");
        tokio::time::sleep(wait).await;
        match store.append(lease, batch).await {
            Ok(appended) => return Ok(appended),
            Err(again) => error = again,
        }
    }
    Err(match error {
        StoreError::Fenced { .. } | StoreError::Gone { .. } => Broken::LeaseLost,
        error => Broken::Store(Arc::new(error)),
    })
}
