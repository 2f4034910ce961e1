//! The log of a session as the run that holds it writes it.
//!
//! Everything a run appends goes through one [`Writer`], which assigns the seqs. An append that
//! was begun is never dropped: where the store has to wait, it goes on as a task of its own. A
//! store that failed without saying whether it had appended is given the same bytes again, which
//! it takes for the same batch. So no step is committed twice, and none is lost.
//!
//! Each entry is applied to the writer's own fold of the log before it is appended: what cannot be
//! replayed is never written.

mod answers;
mod end;
mod grip;
mod keeper;
mod letters;
mod open;
mod walk;
mod watch;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use crate::clock::boot_millis;
use crate::log::{Entry, Saved};
use crate::state::Schema;
use crate::store::{InboxSeq, Lease, ReadRequest, Released, SessionStore, StoreError};

pub(crate) use answers::{Refused, Valid, post_all, validate};
use end::to_its_end;
pub(crate) use keeper::{Held, Hold};
pub(crate) use letters::{InputLetter, LetterBody, Unread, input_key, question_key, taken_key};
pub use open::OnBusy;
pub(crate) use open::{
    OpenError, Opening, Read, ask_to_stop, letters, look, note_taken, post_expired, read,
    read_letters, read_saved,
};
pub(crate) use walk::{Place, walk};
pub(crate) use watch::Watch;
pub(crate) use writer::{Broken, Receipt, Tell, When};
use writer::{LaidUp, Writer};

/// When commits are made durable. Whatever the mode: before an effect acts, when questions are
/// asked, before a step acts on an answer and when a run settles, all that led there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Each commit, before the next step begins.
    #[default]
    Step,
    /// Within 100 milliseconds: a crash repeats at most the steps of that time.
    Relaxed,
    /// When the run settles: a crash repeats all steps since it began, or since it last acted
    /// outside.
    Settle,
}

/// Writes the log of one session for as long as one run holds it.
pub(crate) struct Journal {
    writer: Arc<AsyncMutex<Writer>>,
    watch: Arc<Watch>,
    /// Keeps the lease until it is dropped.
    hold: Mutex<Option<Hold>>,
    store: Arc<dyn SessionStore>,
    lease: Mutex<Lease>,
    ttl: Duration,
    /// The lease was given back.
    released: AtomicBool,
}

impl Journal {
    /// Begins to write behind `opening`, which has claimed and read the session.
    pub(crate) fn new(opening: Opening, saved: Saved, durability: Durability) -> Self {
        let Opening { grip, watch, head, since, ttl, .. } = opening;
        let (store, lease, hold) = grip.hand_over();
        let writer =
            Writer::new(Arc::clone(&store), lease.clone(), Arc::clone(&watch), saved, head, since);
        Self {
            writer: Arc::new(AsyncMutex::new(writer.durability(durability))),
            watch,
            hold: Mutex::new(hold),
            store,
            lease: Mutex::new(lease),
            ttl,
            released: AtomicBool::new(false),
        }
    }

    /// Begins to write a new session. `opened` goes before the first entry that is written.
    pub(crate) fn open(
        opening: Opening,
        opened: Entry,
        durability: Durability,
    ) -> Result<Self, Broken> {
        let mut bytes = Vec::new();
        opened.encode(&mut bytes).map_err(|error| Broken::Unsound(error.to_string()))?;
        let saved = Saved::begin(opened).map_err(|error| Broken::Unsound(error.to_string()))?;
        let mut journal = Self::new(opening, saved, durability);
        if let Some(writer) = Arc::get_mut(&mut journal.writer) {
            writer.get_mut().lay_first(bytes);
        }
        Ok(journal)
    }

    /// Whether the lease is lost, or about to be.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Whether the lease is known to be lost: then nothing brings it back.
    pub(crate) fn is_over(&self) -> bool {
        self.watch.is_over()
    }

    /// Whether the lease holds. One that was not renewed in time, because the process or its
    /// machine stood still, is renewed here, unless somebody else has taken it.
    pub(crate) async fn holds(&self) -> bool {
        if !self.watch.is_lost() {
            return true;
        }
        if self.watch.is_over() {
            return false;
        }
        let since = boot_millis();
        let Ok(mail) = self.store.renew(&self.lease(), self.ttl).await else { return false };
        self.watch.renewed(since, self.ttl);
        self.watch.has_mail(mail);
        !self.watch.is_lost()
    }

    fn lease(&self) -> Lease {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends entries, all or none, when `when` says, and tells of it afterwards.
    pub(crate) async fn write(
        &self,
        mut entries: Entries,
        when: When,
        mut tells: Vec<Tell>,
    ) -> Result<Receipt, Broken> {
        self.write_from(&mut entries, when, &mut tells).await
    }

    /// The same, leaving the caller the room that the entries were in.
    pub(crate) async fn write_from(
        &self,
        entries: &mut Entries,
        when: When,
        tells: &mut Vec<Tell>,
    ) -> Result<Receipt, Broken> {
        // Nobody else writes but now and then.
        let mut writer = match Arc::clone(&self.writer).try_lock_owned() {
            Ok(writer) => writer,
            Err(_) => Arc::clone(&self.writer).lock_owned().await,
        };
        // From here on nothing waits but what goes on as a task of its own.
        match writer.lay_up(entries.drain(..), when, tells)? {
            LaidUp::Now { flush } => {
                let sending = Box::pin(async move {
                    writer.send(flush).await?;
                    Ok(Receipt { snapshot_due: writer.is_snapshot_due() })
                });
                to_its_end(sending).await
            }
            LaidUp::Later { first } => {
                let receipt = Receipt { snapshot_due: writer.is_snapshot_due() };
                if first {
                    writer::flush_soon(writer);
                }
                Ok(receipt)
            }
        }
    }

    /// Makes everything written so far durable.
    pub(crate) async fn flush(&self) -> Result<(), Broken> {
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        if writer.is_flushed() {
            return writer.check();
        }
        let flushing = Box::pin(async move { writer.send(true).await });
        to_its_end(flushing).await
    }

    /// Appends a snapshot. `live` is the state as it is in memory: if the log does not add up to
    /// it, the field that differs is told and nothing more is written.
    pub(crate) async fn snapshot(&self, live: Value, schema: &Schema) -> Result<(), Broken> {
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        if let Some(field) = schema.difference(&live, &writer.saved().state) {
            let field = field.to_owned();
            return Err(writer.give_up(Broken::NotReplayable { field }));
        }
        let writing = Box::pin(async move { writer.write_snapshot().await });
        to_its_end(writing).await
    }

    /// Looks at what the log adds up to, everything buffered included.
    pub(crate) async fn saved<T>(&self, look: impl FnOnce(&Saved) -> T) -> T {
        look(self.writer.lock().await.saved())
    }

    /// Nothing more is written: what waits in the buffer is lost.
    pub(crate) async fn give_up(&self) {
        self.writer.lock().await.give_up(Broken::LeaseLost);
    }

    /// What the store holds: the fold of the log up to its head, read anew. `None` if it cannot be
    /// read.
    pub(crate) async fn stored(&self) -> Option<Saved> {
        read_saved(&*self.store, &self.lease().session).await.ok().flatten()
    }

    /// Letters nobody has taken into the log yet, if there may be any.
    pub(crate) async fn unread(&self) -> Result<Vec<Unread>, Broken> {
        let taken = self.writer.lock().await.saved().mail;
        if self.watch.mail() <= taken {
            return Ok(Vec::new());
        }
        let session = self.lease().session;
        let page = self.store.read(&session, ReadRequest::messages_after(taken));
        match page.await {
            Ok(Some(page)) => Ok(letters::unread(page.messages)),
            Ok(None) => Err(Broken::LeaseLost),
            Err(error) => Err(Broken::Store(Arc::new(error))),
        }
    }

    /// All letters that were ever posted.
    pub(crate) async fn letters(&self) -> Result<Vec<Unread>, StoreError> {
        letters(&*self.store, &self.lease().session).await
    }

    /// Notes that an input was taken, before another takes its place: from then on nothing else
    /// says so.
    pub(crate) async fn note_taken(&self, key: &str) -> Result<(), StoreError> {
        note_taken(&*self.store, &self.lease().session, key).await
    }

    /// Notes how far the letters were looked through, so that they are not looked at again.
    pub(crate) async fn passed_over(&self, mail: InboxSeq) {
        self.writer.lock().await.pass_over(mail);
    }

    /// Gives the lease back. Says whether letters came meanwhile that nobody has looked at.
    pub(crate) async fn release(&self) -> bool {
        self.released.store(true, Ordering::SeqCst);
        let taken = {
            let mut writer = self.writer.lock().await;
            // What was passed over is counted; nothing depends on it.
            let _ = writer.send(false).await;
            writer.saved().mail
        };
        self.hold.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.watch.lose();
        let (store, lease) = (Arc::clone(&self.store), self.lease());
        let releasing = Box::pin(async move { store.release(&lease, taken).await });
        // If this fails, the lease expires.
        to_its_end(releasing).await.is_ok_and(|released| released == Released::MoreMessages)
    }

    /// Takes the session again that was just released, unless somebody else was faster.
    pub(crate) async fn reclaim(&self, run: Arc<dyn Held>) -> bool {
        let mut writer = self.writer.lock().await;
        let session = self.lease().session;
        let page = look(&*self.store, &session).await;
        // Held only to find that somebody else has gone on with it, it would be refused to whoever
        // answers in that moment, and nobody would go on. What is left is the moment between this
        // look and the claim.
        if page.is_ok_and(|page| page.is_none_or(|page| page.head != writer.head())) {
            return false;
        }
        let since = boot_millis();
        let Ok(claimed) = self.store.claim(&session, self.ttl).await else {
            return false;
        };
        if claimed.head != writer.head() {
            // Somebody else went on with it meanwhile, and has settled.
            let _ = self.store.release(&claimed.lease, InboxSeq(0)).await;
            return false;
        }
        writer.hold(claimed.lease.clone());
        self.watch.held(since, self.ttl);
        self.watch.has_mail(claimed.inbox);
        let hold = Hold::keep(
            Arc::clone(&self.store),
            claimed.lease.clone(),
            self.ttl,
            Arc::clone(&self.watch),
            run,
            InboxSeq(0),
        );
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = claimed.lease;
        self.released.store(false, Ordering::SeqCst);
        true
    }
}

impl Drop for Journal {
    /// A run that is dropped before its first step gives the session back, too, once an append that
    /// was begun is through.
    fn drop(&mut self) {
        if self.released.load(Ordering::SeqCst) {
            return;
        }
        self.hold.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without a runtime the process is about to end.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (store, lease) = (Arc::clone(&self.store), self.lease());
        let writer = Arc::clone(&self.writer);
        runtime.spawn(async move {
            let _over = writer.lock().await;
            let _ = store.release(&lease, InboxSeq(0)).await;
        });
    }
}

/// One entry, most often, or several.
pub(crate) type Entries = Vec<Entry>;
