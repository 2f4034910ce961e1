//! A lease in hand, before anything is written under it.

use std::sync::Arc;
use std::time::Duration;

use crate::id::Fence;
use crate::store::{InboxSeq, Lease, Released, SessionStore};

use super::keeper::{Held, Hold};
use super::to_its_end;
use super::watch::Watch;

/// A lease in hand. Dropped, it is given back: whoever asked for the session and went away does not
/// keep others from it until it expires.
pub(super) struct Grip {
    store: Arc<dyn SessionStore>,
    lease: Lease,
    /// Keeps the lease until it is dropped.
    hold: Option<Hold>,
    /// Somebody else sees to it.
    over: bool,
}

impl Grip {
    pub(super) fn new(store: Arc<dyn SessionStore>, lease: Lease) -> Self {
        Self { store, lease, hold: None, over: false }
    }

    /// Renews the lease from here on. The letters that came before are for the caller to look at.
    pub(super) fn keep(mut self, ttl: Duration, watch: &Arc<Watch>, run: Arc<dyn Held>) -> Self {
        let (store, watch, looked) = (Arc::clone(&self.store), Arc::clone(watch), watch.mail());
        self.hold = Some(Hold::keep(store, self.lease.clone(), ttl, watch, run, looked));
        self
    }

    /// Releases the lease. `read` is the last message that was read. The lease expires if this fails.
    pub(super) async fn give_back(mut self, read: InboxSeq) -> Option<Released> {
        self.over = true;
        self.hold.take();
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        let releasing = Box::pin(async move { store.release(&lease, read).await });
        to_its_end(releasing).await.ok()
    }

    pub(super) fn fence(&self) -> Fence {
        self.lease.fence
    }

    /// Somebody else gives it back.
    pub(super) fn hand_over(mut self) -> (Arc<dyn SessionStore>, Lease, Option<Hold>) {
        self.over = true;
        (Arc::clone(&self.store), self.lease.clone(), self.hold.take())
    }
}

impl Drop for Grip {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.hold.take();
        // Without a runtime the process is about to end.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        runtime.spawn(async move {
            let _ = store.release(&lease, InboxSeq(0)).await;
        });
    }
}
