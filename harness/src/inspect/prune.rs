//! Pruning the logs of many sessions.

use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::store::{Filter, Phase, ReadRequest, Remove};

use super::error::store_error;
use super::{Sessions, SessionsError};

/// The rows of a page of the list of sessions.
const ROWS: u32 = 256;

/// Which logs are pruned, and how much of them stays.
///
/// ```
/// use std::time::Duration;
///
/// use harness::inspect::{Filter, Phase, PrunePolicy};
///
/// // Of each session that has ended and that nothing was written to for a week: all but the last
/// // snapshot and what follows it.
/// let policy = PrunePolicy::new(Filter::sessions().phase(Phase::Ended))
///     .idle_for(Duration::from_secs(7 * 24 * 3600));
/// // Of each session: at least the last 1,000 entries stay.
/// let policy = PrunePolicy::new(Filter::sessions()).keep_entries(1_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunePolicy {
    filter: Filter,
    idle: Duration,
    entries: u64,
}

impl PrunePolicy {
    /// Prunes the sessions that `filter` admits, each up to its last snapshot.
    #[must_use]
    pub fn new(filter: Filter) -> Self {
        Self { filter: Filter { interrupts: false, ..filter }, idle: Duration::ZERO, entries: 1 }
    }

    /// Only sessions that nothing was written to for this time, by the clocks of their writers.
    #[must_use]
    pub fn idle_for(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Keeps at least this many entries of each session.
    #[must_use]
    pub fn keep_entries(mut self, entries: u64) -> Self {
        self.entries = entries.max(1);
        self
    }
}

/// What [`Sessions::prune_all`] did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PruneReport {
    /// The sessions whose logs are shorter now.
    pub pruned: u64,
    /// The entries that were removed.
    pub entries: u64,
    /// The sessions whose logs had nothing to remove.
    pub unchanged: u64,
    /// The sessions that a run holds or has left in the middle of a step. They were skipped.
    pub busy: Vec<SessionId>,
    /// The sessions that were skipped because they are damaged.
    pub failed: Vec<(SessionId, SessionsError)>,
}

/// What became of one session.
enum Pruned {
    Removed(u64),
    Unchanged,
}

impl Sessions {
    /// Removes the beginnings of the logs of all sessions that the policy admits, page by page. At
    /// most the entries before the last snapshot of a session are removed, so that it can still be
    /// resumed; a log without a snapshot stays whole. Sessions that are at work are skipped and
    /// reported, and no run of them notices.
    ///
    /// Later reads of removed entries [are refused](SessionsError::is_pruned).
    ///
    /// ```
    /// # use harness::store::MemoryStore;
    /// use harness::Sessions;
    /// use harness::inspect::{Filter, PrunePolicy};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let sessions = Sessions::new(MemoryStore::new());
    /// let report = sessions.prune_all(&PrunePolicy::new(Filter::sessions())).await?;
    /// println!("{} entries removed, {} sessions were at work", report.entries, report.busy.len());
    /// # Ok::<(), harness::inspect::SessionsError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store failed. What was removed before stays removed.
    pub async fn prune_all(&self, policy: &PrunePolicy) -> Result<PruneReport, SessionsError> {
        let (mut report, mut after) = (PruneReport::default(), None::<Vec<u8>>);
        loop {
            let page = self.list(&policy.filter, after.as_deref(), ROWS).await?;
            for row in page.rows {
                let idle = UtcMillis::now().0.saturating_sub(row.updated.0);
                if u128::from(idle) < policy.idle.as_millis() {
                    report.unchanged += 1;
                    continue;
                }
                // A claim would hide from the next run that the last one has crashed.
                if row.phase == Phase::Running {
                    report.busy.push(row.session);
                    continue;
                }
                let below = Seq((row.head.0 + 1).saturating_sub(policy.entries));
                match self.prune_below(&row.session, below).await {
                    Ok(Pruned::Removed(entries)) => {
                        report.pruned += 1;
                        report.entries += entries;
                    }
                    Ok(Pruned::Unchanged) => report.unchanged += 1,
                    Err(error) if error.is_not_found() => {}
                    Err(error) if error.is_busy() => report.busy.push(row.session),
                    Err(error) if error.is_of_one_session() => {
                        report.failed.push((row.session, error));
                    }
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(report),
            }
        }
    }

    async fn prune_below(&self, session: &SessionId, below: Seq) -> Result<Pruned, SessionsError> {
        let before = self.page(session, ReadRequest::summary()).await?.first;
        if before >= below {
            return Ok(Pruned::Unchanged);
        }
        let lease = self.claim(session).await?;
        let removed = self.store.remove(&lease, Remove::Below(below)).await;
        self.release(&lease).await;
        removed.map_err(store_error)?;
        let first = self.page(session, ReadRequest::summary()).await?.first;
        Ok(match first.0.saturating_sub(before.0) {
            0 => Pruned::Unchanged,
            entries => Pruned::Removed(entries),
        })
    }
}
