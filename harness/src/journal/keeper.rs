//! Renews leases, on a thread of its own: a step that blocks every thread of the program's runtime
//! does not lose its session.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::clock::boot_millis;
use crate::store::{InboxSeq, Lease, ReadRequest, SessionStore, StoreError};

use super::letters::stop_key;
use super::watch::Watch;

/// The keeper; none if the machine gives no thread. Leases then live as long as one claim.
static KEEPER: LazyLock<Option<Keeper>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let keeper = Keeper {
        runtime: runtime.handle().clone(),
        wards: Mutex::default(),
        sooner: Notify::new(),
    };
    std::thread::Builder::new()
        .name("harness-leases".into())
        .spawn(move || runtime.block_on(begin_in_time()))
        .ok()?;
    Some(keeper)
});

/// Has the thread do something, if there is one.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Some(keeper) = &*KEEPER {
        drop(keeper.runtime.spawn(work));
    }
}

struct Keeper {
    runtime: Handle,
    wards: Mutex<Wards>,
    /// Wakes the thread: something begins before what it waits for.
    sooner: Notify,
}

/// Leases that nothing is done about yet.
#[derive(Default)]
struct Wards {
    waiting: Vec<(Instant, Weak<Ward>)>,
    /// When the thread looks at them.
    wakes: Option<Instant>,
    /// How many may be waiting before those are dropped that are over.
    room: usize,
}

/// A lease that is kept. Most are given back before they have to be renewed, and to wake a thread
/// takes as long as a small step: so the thread learns of a lease only when there is something to be
/// done about it.
#[derive(Debug)]
pub(super) struct Ward(Mutex<Care>);

#[derive(Debug)]
enum Care {
    Later(Box<Keep>),
    Begun(AbortHandle),
    Over,
}

impl Ward {
    fn care(&self) -> MutexGuard<'_, Care> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread see to the lease from here on.
    pub(super) fn begin(&self) {
        let mut care = self.care();
        if let (Care::Later(_), Some(keeper)) = (&*care, &*KEEPER)
            && let Care::Later(keep) = std::mem::replace(&mut *care, Care::Over)
        {
            *care = Care::Begun(keeper.runtime.spawn(keep.go_on()).abort_handle());
        }
    }
}

impl Keeper {
    /// Has a lease seen to from a moment on.
    fn begin_at(&self, at: Instant, ward: &Arc<Ward>) {
        let mut wards = self.wards.lock().unwrap_or_else(PoisonError::into_inner);
        if wards.waiting.len() >= wards.room {
            wards.waiting.retain(|(_, ward)| ward.strong_count() > 0);
            wards.room = 2 * wards.waiting.len() + 64;
        }
        wards.waiting.push((at, Arc::downgrade(ward)));
        if wards.wakes.is_none_or(|wakes| at < wakes) {
            wards.wakes = Some(at);
            drop(wards);
            self.sooner.notify_one();
        }
    }

    /// Begins what is due, and says when the next is.
    fn begin_due(&self) -> Option<Instant> {
        let mut wards = self.wards.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        wards.waiting.retain(|(at, ward)| {
            let Some(ward) = ward.upgrade() else { return false };
            let later = *at > now;
            if !later {
                ward.begin();
            }
            later
        });
        wards.wakes = wards.waiting.iter().map(|(at, _)| *at).min();
        wards.wakes
    }
}

async fn begin_in_time() {
    let Some(keeper) = &*KEEPER else { return };
    loop {
        match keeper.begin_due() {
            Some(next) => tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = keeper.sooner.notified() => {}
            },
            None => keeper.sooner.notified().await,
        }
    }
}

/// What the keeper does when it learns something.
pub(crate) trait Held: Send + Sync + 'static {
    /// Somebody asks the run to stop at the next boundary.
    fn stop(&self);

    /// The lease is lost: nothing more may be done.
    fn lost(&self);
}

/// Keeps a lease until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<Ward>>);

impl Hold {
    /// Keeps a lease, and looks at letters behind those that somebody else has `looked` at.
    pub(crate) fn keep(
        store: Arc<dyn SessionStore>,
        lease: Lease,
        ttl: Duration,
        watch: Arc<Watch>,
        run: Arc<dyn Held>,
        looked: InboxSeq,
    ) -> Self {
        let Some(keeper) = &*KEEPER else { return Self(None) };
        let renew = Instant::now() + ttl / 3;
        let keep = Keep { store, lease, ttl, watch: Arc::clone(&watch), run, looked, renew };
        let ward = Arc::new(Ward(Mutex::new(Care::Later(Box::new(keep)))));
        watch.tell_of_news(&ward);
        if watch.mail() > looked {
            ward.begin();
        } else {
            keeper.begin_at(renew, &ward);
        }
        Self(Some(ward))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(ward) = self.0.take() else { return };
        // What it holds may be the last of its store.
        let care = std::mem::replace(&mut *ward.care(), Care::Over);
        if let Care::Begun(task) = care {
            task.abort();
        }
    }
}

/// How a lease is kept.
struct Keep {
    store: Arc<dyn SessionStore>,
    lease: Lease,
    ttl: Duration,
    watch: Arc<Watch>,
    run: Arc<dyn Held>,
    looked: InboxSeq,
    /// When it is renewed for the first time.
    renew: Instant,
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Keep {
    async fn go_on(self: Box<Self>) {
        let Self { store, lease, ttl, watch, run, mut looked, renew } = *self;
        let mut next = renew;
        loop {
            if watch.mail() > looked {
                match stop_asked(&*store, &lease, looked).await {
                    Ok((stop, mail)) => {
                        looked = mail;
                        if stop {
                            run.stop();
                        }
                    }
                    Err(error) => tracing::debug!(%error, "letters could not be read"),
                }
            }
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = watch.news.notified() => continue,
            }
            let since = boot_millis();
            match store.renew(&lease, ttl).await {
                Ok(mail) => {
                    watch.renewed(since, ttl);
                    watch.has_mail(mail);
                    next = Instant::now() + ttl / 3;
                }
                Err(StoreError::Fenced { .. } | StoreError::Gone { .. }) => break,
                Err(error) => {
                    tracing::warn!(session = %lease.session, %error, "a lease was not renewed");
                    if watch.is_lost() {
                        break;
                    }
                    next = Instant::now() + ttl / 10;
                }
            }
        }
        watch.lose();
        run.lost();
    }
}

/// Whether a letter asks this holder to stop, and how many letters were looked at.
async fn stop_asked(
    store: &dyn SessionStore,
    lease: &Lease,
    looked: InboxSeq,
) -> Result<(bool, InboxSeq), StoreError> {
    let page = store.read(&lease.session, ReadRequest::messages_after(looked)).await?;
    let Some(page) = page else { return Ok((false, looked)) };
    let key = stop_key(lease.fence);
    Ok((page.messages.iter().any(|stored| stored.message.key == key), page.inbox))
}
