//! A lease that was claimed, before anything is written under it.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::boot_millis;
use crate::id::{Fence, SessionId};
use crate::store::{Claimed, DueRequest, InboxSeq, Lease, Released, SessionStore, StoreError};

use super::renewer::{LeaseObserver, Renewal};
use super::status::LeaseStatus;
use super::undropped::{in_background_again, undropped, undropped_again};

/// A lease that was claimed. Dropped, it is released: a run that is dropped before it begins does
/// not keep other runs from its session until the lease expires.
pub(crate) struct LeaseGuard {
    store: Arc<dyn SessionStore>,
    lease: Lease,
    ttl: Duration,
    status: Arc<LeaseStatus>,
    /// Keeps the lease until it is dropped.
    renewal: Option<Renewal>,
    /// The lease is released elsewhere.
    disarmed: bool,
}

impl LeaseGuard {
    /// Claims a session. A claim whose caller is dropped meanwhile is released.
    pub(crate) async fn claim(
        store: &Arc<dyn SessionStore>,
        session: &SessionId,
        ttl: Duration,
    ) -> Result<(Self, Claimed), StoreError> {
        let (store, session) = (Arc::clone(store), session.clone());
        undropped(async move {
            let since = boot_millis();
            let claimed = store.claim(&session, ttl).await?;
            Ok((Self::of(&store, &claimed, ttl, since), claimed))
        })
        .await
    }

    /// Claims sessions that are due. The claims of a caller that is dropped meanwhile are released.
    pub(crate) async fn claim_due(
        store: &Arc<dyn SessionStore>,
        request: DueRequest,
        ttl: Duration,
    ) -> Result<(Vec<(Self, Claimed)>, Vec<(SessionId, StoreError)>), StoreError> {
        let store = Arc::clone(store);
        undropped(async move {
            let since = boot_millis();
            let due = store.claim_due(&request, ttl).await?;
            let guarded = due.claimed.into_iter();
            let guarded = guarded.map(|it| (Self::of(&store, &it, ttl, since), it));
            Ok((guarded.collect(), due.failed))
        })
        .await
    }

    /// Renews the lease from here on. The caller reads the messages that came before.
    pub(crate) fn keep(&mut self, run: Arc<dyn LeaseObserver>) {
        let (store, status) = (Arc::clone(&self.store), Arc::clone(&self.status));
        let (lease, checked) = (self.lease.clone(), self.status.inbox());
        self.renewal = Some(Renewal::start(store, lease, self.ttl, status, run, checked));
    }

    /// Releases the lease. `read` is the last message that the caller has read.
    pub(crate) async fn release(mut self, read: InboxSeq) -> Released {
        self.disarmed = true;
        self.renewal = None;
        release(&self.store, &self.lease, read).await
    }

    /// Guards a lease that was claimed `since`, in milliseconds by the clock of leases.
    pub(crate) fn of(
        store: &Arc<dyn SessionStore>,
        claimed: &Claimed,
        ttl: Duration,
        since: u64,
    ) -> Self {
        let status = Arc::new(LeaseStatus::new(since, ttl, claimed.inbox));
        let (store, lease) = (Arc::clone(store), claimed.lease.clone());
        Self { store, lease, ttl, status, renewal: None, disarmed: false }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.lease.session
    }

    pub(crate) fn fence(&self) -> Fence {
        self.lease.fence
    }

    /// Hands the lease to a journal, which releases it.
    pub(super) fn into_parts(mut self) -> Parts {
        self.disarmed = true;
        Parts {
            store: Arc::clone(&self.store),
            lease: self.lease.clone(),
            ttl: self.ttl,
            status: Arc::clone(&self.status),
            renewal: self.renewal.take(),
        }
    }
}

/// What a journal needs of a lease.
pub(super) struct Parts {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) lease: Lease,
    pub(super) ttl: Duration,
    pub(super) status: Arc<LeaseStatus>,
    pub(super) renewal: Option<Renewal>,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if self.disarmed {
            return;
        }
        self.renewal = None;
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        in_background_again(move || {
            let (store, lease) = (Arc::clone(&store), lease.clone());
            async move {
                let _ = store.release(&lease, InboxSeq(0)).await;
            }
        });
    }
}

/// Releases a lease: also if the caller is dropped, and if its runtime shuts down. A lease whose release
/// fails expires.
pub(super) async fn release(
    store: &Arc<dyn SessionStore>,
    lease: &Lease,
    read: InboxSeq,
) -> Released {
    let (store, lease) = (Arc::clone(store), lease.clone());
    let released = undropped_again(move || {
        let (store, lease) = (Arc::clone(&store), lease.clone());
        async move { store.release(&lease, read).await }
    });
    released.await.unwrap_or(Released::Idle)
}
