//! What is known of a lease without asking the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::boot_millis;
use crate::store::InboxSeq;

use super::keeper::Ward;

/// What a run knows of its lease without asking the store: until when it surely holds, and how many
/// letters have come.
#[derive(Debug)]
pub(crate) struct Watch {
    /// In milliseconds of a clock that goes on while the machine is suspended.
    deadline: AtomicU64,
    lost: AtomicBool,
    mail: AtomicU64,
    /// Wakes whoever reads letters.
    pub(super) news: Notify,
    /// What has to begin first, so that somebody does.
    ward: Mutex<Weak<Ward>>,
}

impl Watch {
    /// A lease that was asked for at `since`.
    pub(crate) fn new(since: u64, ttl: Duration, mail: InboxSeq) -> Self {
        Self {
            deadline: AtomicU64::new(since.saturating_add(millis(ttl))),
            lost: AtomicBool::new(false),
            mail: AtomicU64::new(mail.0),
            news: Notify::new(),
            ward: Mutex::default(),
        }
    }

    /// The lease was renewed, by a request sent at `since`.
    pub(crate) fn renewed(&self, since: u64, ttl: Duration) {
        self.deadline.store(since.saturating_add(millis(ttl)), Ordering::Release);
    }

    /// The lease was taken anew.
    pub(crate) fn held(&self, since: u64, ttl: Duration) {
        self.renewed(since, ttl);
        self.lost.store(false, Ordering::Release);
    }

    /// Somebody else has it.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the lease may be somebody else's by now.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) || boot_millis() >= self.deadline.load(Ordering::Acquire)
    }

    /// Whether the lease is known to be somebody else's, or nobody's.
    pub(crate) fn is_over(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// How many letters are known to have come.
    #[inline]
    pub(crate) fn mail(&self) -> InboxSeq {
        InboxSeq(self.mail.load(Ordering::Acquire))
    }

    /// So many letters have come.
    #[inline]
    pub(crate) fn has_mail(&self, mail: InboxSeq) {
        if mail.0 > self.mail.load(Ordering::Relaxed) {
            self.mail.fetch_max(mail.0, Ordering::AcqRel);
            self.news.notify_one();
            let ward = self.ward.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
            if let Some(ward) = ward {
                ward.begin();
            }
        }
    }

    /// From here on, whoever keeps the lease is told when letters have come.
    pub(super) fn tell_of_news(&self, ward: &Arc<Ward>) {
        *self.ward.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(ward);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
