//! Renews leases, on a thread of its own: a step that blocks every thread of the program's runtime
//! does not lose its session.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::clock::boot_millis;
use crate::inbox::{read_inbox_after, stop_key};
use crate::store::{InboxSeq, Lease, SessionStore, StoreError};

use super::status::LeaseStatus;

/// The thread; `None` if the machine has none to give. Leases then last as long as one claim.
static RENEWER: LazyLock<Option<Renewer>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let renewer =
        Renewer { runtime: runtime.handle().clone(), due: Mutex::default(), sooner: Notify::new() };
    std::thread::Builder::new()
        .name("harness-leases".into())
        .spawn(move || runtime.block_on(renew_when_due()))
        .ok()?;
    Some(renewer)
});

/// Runs `work` on the thread, if there is one. It has a runtime of its own, which lasts as long as the
/// process.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Some(renewer) = &*RENEWER {
        drop(renewer.runtime.spawn(work));
    }
}

struct Renewer {
    runtime: Handle,
    due: Mutex<Due>,
    /// Wakes the thread: a lease is due before the one it waits for.
    sooner: Notify,
}

/// The leases that are kept, each with the time of its next renewal. Most are released before that:
/// they never wake the thread.
#[derive(Default)]
struct Due {
    leases: Vec<(Instant, Weak<KeptLease>)>,
    /// When the thread wakes.
    wakes: Option<Instant>,
    /// At how many leases those that were released are dropped.
    sweep_at: usize,
}

impl Renewer {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew_at(&self, at: Instant, lease: &Arc<KeptLease>) {
        let mut due = self.due();
        if due.leases.len() >= due.sweep_at {
            due.leases.retain(|(_, lease)| lease.strong_count() > 0);
            due.sweep_at = 2 * due.leases.len() + 64;
        }
        due.leases.push((at, Arc::downgrade(lease)));
        if due.wakes.is_none_or(|wakes| at < wakes) {
            due.wakes = Some(at);
            self.sooner.notify_one();
        }
    }

    /// Starts the renewals that are due. Returns when the next one is.
    fn renew_due(&self) -> Option<Instant> {
        let mut due = self.due();
        let now = Instant::now();
        due.leases.retain(|(at, lease)| {
            let Some(lease) = lease.upgrade() else { return false };
            let later = *at > now;
            if !later {
                self.runtime.spawn(lease.renew());
            }
            later
        });
        due.wakes = due.leases.iter().map(|(at, _)| *at).min();
        due.wakes
    }
}

async fn renew_when_due() {
    let Some(renewer) = &*RENEWER else { return };
    loop {
        match renewer.renew_due() {
            Some(next) => tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = renewer.sooner.notified() => {}
            },
            None => renewer.sooner.notified().await,
        }
    }
}

/// What a run does when the renewer notices something.
pub(crate) trait LeaseObserver: Send + Sync + 'static {
    /// Another process asks the run to stop at the next boundary.
    fn stop(&self);

    /// The lease is lost: the run must not act any more.
    fn lost(&self);
}

/// Keeps a lease until it is dropped.
pub(crate) struct Renewal(Arc<KeptLease>);

/// A lease that is kept.
struct KeptLease {
    store: Arc<dyn SessionStore>,
    lease: Lease,
    ttl: Duration,
    status: Arc<LeaseStatus>,
    run: Arc<dyn LeaseObserver>,
    /// The last message that was checked for a stop request.
    checked: AtomicU64,
    /// While renewals fail: when the lease counts as lost. 0 while they do not.
    failing_until: AtomicU64,
    /// The guard was dropped: what a renewal under way finds concerns the run no more.
    over: AtomicBool,
}

impl Renewal {
    /// Keeps a lease. Messages up to `checked` were checked for a stop request.
    pub(crate) fn start(
        store: Arc<dyn SessionStore>,
        lease: Lease,
        ttl: Duration,
        status: Arc<LeaseStatus>,
        run: Arc<dyn LeaseObserver>,
        checked: InboxSeq,
    ) -> Self {
        let kept = Arc::new(KeptLease {
            store,
            lease,
            ttl,
            status,
            run,
            checked: AtomicU64::new(checked.0),
            failing_until: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        if let Some(renewer) = &*RENEWER {
            renewer.renew_at(Instant::now() + ttl / 3, &kept);
        }
        let renewal = Self(kept);
        renewal.check_inbox();
        renewal
    }

    /// Looks for a stop request if the inbox has messages that were not checked.
    pub(super) fn check_inbox(&self) {
        if self.0.has_unchecked()
            && let Some(renewer) = &*RENEWER
        {
            renewer.runtime.spawn(Arc::clone(&self.0).check_for_stop());
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl KeptLease {
    fn has_unchecked(&self) -> bool {
        self.status.inbox().0 > self.checked.load(Ordering::Acquire)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn check_for_stop(self: Arc<Self>) {
        let checked = InboxSeq(self.checked.load(Ordering::Acquire));
        match read_inbox_after(&*self.store, &self.lease.session, checked).await {
            Ok((messages, last)) => {
                self.checked.fetch_max(last.0, Ordering::AcqRel);
                let key = stop_key(self.lease.fence);
                if messages.iter().any(|message| message.key == key) && !self.is_over() {
                    self.run.stop();
                }
            }
            Err(error) => tracing::debug!(%error, "failed to read the inbox"),
        }
    }

    async fn renew(self: Arc<Self>) {
        if self.is_over() {
            return;
        }
        let since = boot_millis();
        let patience = match self.failing_until.load(Ordering::Acquire) {
            0 => self.status.patience(since, self.ttl),
            until => until,
        };
        let renewed = self.store.renew(&self.lease, self.ttl).await;
        if self.is_over() {
            return;
        }
        let next = match renewed {
            Ok(inbox) => {
                self.failing_until.store(0, Ordering::Release);
                self.status.renewed(since, self.ttl);
                self.status.note_inbox(inbox);
                self.ttl / 3
            }
            Err(StoreError::Fenced { .. } | StoreError::Gone { .. }) => {
                self.status.lose();
                self.run.lost();
                return;
            }
            Err(error) => {
                let session = &self.lease.session;
                tracing::warn!(%session, %error, "failed to renew a lease");
                if boot_millis() >= patience {
                    self.run.lost();
                    self.status.lose();
                    return;
                }
                self.failing_until.store(patience, Ordering::Release);
                self.ttl / 10
            }
        };
        if let Some(renewer) = &*RENEWER {
            renewer.renew_at(Instant::now() + next, &self);
        }
        if self.has_unchecked() {
            self.check_for_stop().await;
        }
    }
}

#[cfg(test)]
mod tests;
