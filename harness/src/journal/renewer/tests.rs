//! Renewals that fail, in time and late.

use std::sync::atomic::AtomicU32;

use async_trait::async_trait;

use super::*;
use crate::id::{Fence, SessionId};
use crate::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, Listing, Message, Page, ReadRequest,
    Released, Remove, Sent, Token,
};

/// A store whose first renewals fail.
struct Failing {
    left: AtomicU32,
}

fn failed<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable { what: "a test says so".into(), ambiguous: false, source: None })
}

#[async_trait]
impl SessionStore for Failing {
    async fn claim(&self, _: &SessionId, _: Duration) -> Result<Claimed, StoreError> {
        failed()
    }

    async fn claim_due(&self, _: &DueRequest, _: Duration) -> Result<DueSessions, StoreError> {
        failed()
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<InboxSeq, StoreError> {
        let less = |left: u32| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => failed(),
            Err(_) => Ok(InboxSeq(0)),
        }
    }

    async fn release(&self, _: &Lease, _: InboxSeq) -> Result<Released, StoreError> {
        failed()
    }

    async fn append(&self, _: &Lease, _: Batch<'_>) -> Result<Appended, StoreError> {
        failed()
    }

    async fn send(&self, _: &SessionId, _: &[Message]) -> Result<Sent, StoreError> {
        failed()
    }

    async fn read(&self, _: &SessionId, _: ReadRequest) -> Result<Option<Page>, StoreError> {
        failed()
    }

    async fn list(&self, _: &Filter, _: Option<&[u8]>, _: u32) -> Result<Listing, StoreError> {
        failed()
    }

    async fn remove(&self, _: &Lease, _: Remove) -> Result<(), StoreError> {
        failed()
    }
}

#[derive(Default)]
struct Run {
    lost: AtomicBool,
}

impl LeaseObserver for Run {
    fn stop(&self) {}

    fn lost(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }
}

/// Renews a lease of a minute that was claimed `ago`, until that succeeds or the lease is lost.
/// Says whether it is lost.
async fn is_lost(failures: u32, ago: Duration) -> bool {
    const TTL: Duration = Duration::from_secs(60);
    let since = boot_millis().saturating_sub(ago.as_millis() as u64);
    let status = Arc::new(LeaseStatus::new(since, TTL, InboxSeq(0)));
    let run = Arc::new(Run::default());
    let session = SessionId::new("s").unwrap();
    let kept = Arc::new(KeptLease {
        store: Arc::new(Failing { left: AtomicU32::new(failures) }),
        lease: Lease::new(session, Fence(1), Token::random()),
        ttl: TTL,
        status: Arc::clone(&status),
        run: Arc::clone(&run) as _,
        checked: AtomicU64::new(0),
        failing_until: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    for _ in 0..=failures {
        if !status.is_lost() {
            Arc::clone(&kept).renew().await;
        }
    }
    assert_eq!(status.is_lost(), run.lost.load(Ordering::SeqCst));
    assert!(status.is_lost() || !status.may_be_lost());
    status.is_lost()
}

#[tokio::test]
async fn a_renewal_that_comes_late_may_fail_before_it_succeeds() {
    for ago in [Duration::ZERO, Duration::from_secs(59), Duration::from_secs(3_600)] {
        for failures in [0, 1, 3] {
            assert!(!is_lost(failures, ago).await, "{failures} failures, claimed {ago:?} ago");
        }
    }
}

#[test]
fn renewals_may_fail_until_the_lease_expires_or_as_long_again() {
    let ttl = Duration::from_millis(100);
    let status = LeaseStatus::new(1_000, ttl, InboxSeq(0));
    assert_eq!(status.patience(1_030, ttl), 1_100, "in time");
    assert_eq!(status.patience(5_000, ttl), 5_100, "late");
}
