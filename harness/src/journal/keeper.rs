//! Renews leases, on a thread of its own: a step that blocks every thread of the program's runtime
//! does not lose its session.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;

use crate::clock::boot_millis;
use crate::id::Seq;
use crate::store::{From, Lease, Mail, SessionStore, StoreError};

use super::letters::stop_key;
use super::watch::Watch;

/// The keeper's runtime; none if the machine gives no thread. Leases then live as long as one claim.
static RUNTIME: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("harness-leases".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .ok()?;
    Some(handle)
});

/// What the keeper does when it learns something.
pub(crate) trait Held: Send + Sync + 'static {
    /// Somebody asks the run to stop at the next boundary.
    fn stop(&self);

    /// The lease is lost: nothing more may be done.
    fn lost(&self);
}

/// Keeps a lease until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold(Option<AbortHandle>);

impl Hold {
    /// Keeps a lease, and looks at letters behind those that somebody else has `looked` at.
    pub(crate) fn keep(
        store: Arc<dyn SessionStore>,
        lease: Lease,
        ttl: Duration,
        watch: Arc<Watch>,
        run: Arc<dyn Held>,
        looked: Mail,
    ) -> Self {
        let kept = RUNTIME.as_ref().map(|runtime| {
            runtime.spawn(keep(store, lease, ttl, watch, run, looked)).abort_handle()
        });
        Self(kept)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

async fn keep(
    store: Arc<dyn SessionStore>,
    lease: Lease,
    ttl: Duration,
    watch: Arc<Watch>,
    run: Arc<dyn Held>,
    mut looked: Mail,
) {
    let mut wait = ttl / 3;
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
            () = tokio::time::sleep(wait) => {}
            () = watch.news.notified() => continue,
        }
        let since = boot_millis();
        match store.renew(&lease, ttl).await {
            Ok(mail) => {
                watch.renewed(since, ttl);
                watch.has_mail(mail);
                wait = ttl / 3;
            }
            Err(StoreError::Fenced { .. } | StoreError::Gone { .. }) => break,
            Err(error) => {
                tracing::warn!(session = %lease.session, %error, "a lease was not renewed");
                if watch.is_lost() {
                    break;
                }
                wait = ttl / 10;
            }
        }
    }
    watch.lose();
    run.lost();
}

/// Whether a letter asks this holder to stop, and how many letters were looked at.
async fn stop_asked(
    store: &dyn SessionStore,
    lease: &Lease,
    looked: Mail,
) -> Result<(bool, Mail), StoreError> {
    let page = store.read(&lease.session, From::Seq(Seq(u64::MAX)), looked, 0).await?;
    let Some(page) = page else { return Ok((false, looked)) };
    let key = stop_key(lease.fence);
    Ok((page.letters.iter().any(|letter| letter.letter.key == key), page.mail))
}
