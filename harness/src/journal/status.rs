//! What is known of a lease without asking the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::clock::boot_millis;
use crate::store::InboxSeq;

/// What a run knows of its lease without asking the store: until when it holds for certain, and the
/// last message of the inbox.
#[derive(Debug)]
pub(crate) struct LeaseStatus {
    /// In milliseconds of a clock that runs while the machine is suspended.
    deadline: AtomicU64,
    lost: AtomicBool,
    inbox: AtomicU64,
    grown: Notify,
}

impl LeaseStatus {
    /// A lease that was claimed by a request sent at `since`.
    pub(crate) fn new(since: u64, ttl: Duration, inbox: InboxSeq) -> Self {
        Self {
            deadline: AtomicU64::new(since.saturating_add(millis(ttl))),
            lost: AtomicBool::new(false),
            inbox: AtomicU64::new(inbox.0),
            grown: Notify::new(),
        }
    }

    /// The lease was renewed, by a request sent at `since`.
    pub(crate) fn renewed(&self, since: u64, ttl: Duration) {
        self.deadline.store(since.saturating_add(millis(ttl)), Ordering::Release);
    }

    /// The lease was claimed again.
    pub(crate) fn claimed(&self, since: u64, ttl: Duration) {
        self.renewed(since, ttl);
        self.lost.store(false, Ordering::Release);
    }

    /// The lease was released, or another claim has come.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether another run may hold the session by now.
    pub(crate) fn may_be_lost(&self) -> bool {
        self.is_lost() || boot_millis() >= self.deadline.load(Ordering::Acquire)
    }

    /// How long renewals may fail, the first of which is sent at `since`, before the lease counts as
    /// lost: until it expires. One that comes late, because the process or its machine stood still, has
    /// as much time: its connection may be as old, and only the store knows whether another run has
    /// claimed the session.
    pub(crate) fn patience(&self, since: u64, ttl: Duration) -> u64 {
        let deadline = self.deadline.load(Ordering::Acquire);
        if since < deadline { deadline } else { since.saturating_add(millis(ttl)) }
    }

    /// Whether the lease is known to be lost: nothing brings it back.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The last message that is known to be in the inbox.
    pub(crate) fn inbox(&self) -> InboxSeq {
        InboxSeq(self.inbox.load(Ordering::Acquire))
    }

    /// Resolves once messages come that were not in the inbox when it was made.
    pub(crate) fn inbox_grown(&self) -> Notified<'_> {
        self.grown.notified()
    }

    /// Messages up to this one are in the inbox.
    pub(crate) fn note_inbox(&self, inbox: InboxSeq) {
        if self.inbox.fetch_max(inbox.0, Ordering::AcqRel) < inbox.0 {
            self.grown.notify_waiters();
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
