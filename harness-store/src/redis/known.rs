//! What this store was acknowledged, so that a server that has lost it is found out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use harness::Seq;
use harness::store::{Lease, StoreError, Token};

/// The last acknowledged entry under each lease.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    heads: HashMap<Token, Head>,
    /// How many leases there may be before those that have expired are looked for.
    most: usize,
}

#[derive(Debug)]
struct Head {
    acknowledged: Seq,
    /// `None` if that is beyond the range of the clock.
    until: Option<Instant>,
}

impl Known {
    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A lease was claimed or renewed.
    pub(crate) fn held(&self, lease: &Lease, head: Option<Seq>, ttl: Duration) {
        let now = Instant::now();
        self.with(|inner| {
            let new = Head { acknowledged: Seq(0), until: None };
            let known = inner.heads.entry(lease.token).or_insert(new);
            known.acknowledged = known.acknowledged.max(head.unwrap_or_default());
            known.until = now.checked_add(ttl);
            if inner.heads.len() > inner.most.max(1_024) {
                // What was acknowledged under a lease that is not renewed may be forgotten.
                inner.heads.retain(|_, head| head.until.is_none_or(|until| now < until));
                inner.most = 2 * inner.heads.len();
            }
        });
    }

    pub(crate) fn acknowledged(&self, lease: &Lease, head: Seq) {
        self.with(|inner| {
            if let Some(known) = inner.heads.get_mut(&lease.token) {
                known.acknowledged = known.acknowledged.max(head);
            }
        });
    }

    pub(crate) fn forget(&self, lease: &Lease) {
        self.with(|inner| inner.heads.remove(&lease.token));
    }

    /// What a refused call means. The server counts the claims of all sessions, so it has lost
    /// something if it has counted fewer than there were; and it has lost entries if the lease is held
    /// and its log ends before what was acknowledged.
    pub(crate) fn explain(
        &self,
        lease: &Lease,
        last_fence: u64,
        head: Option<Seq>,
        error: StoreError,
    ) -> StoreError {
        let acknowledged = self.with(|inner| {
            inner.heads.get(&lease.token).map(|known| known.acknowledged).unwrap_or_default()
        });
        let is_behind = matches!(error, StoreError::Conflict { head, .. } if head < acknowledged);
        if is_behind || last_fence < lease.fence.0 {
            let session = lease.session.clone();
            let head = head.unwrap_or_default();
            return StoreError::LostWrites { session, acknowledged, head };
        }
        error
    }
}
