//! Taking a session up: its lease, its log, its letters.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::{UtcMillis, boot_millis};
use crate::id::{Seq, SessionId};
use crate::log::{Replay, ReplayError, Saved};
use crate::store::{
    Claimed, Holder, InboxSeq, Page, ReadFrom, ReadRequest, Released, Sent, SessionStore,
    StoreError,
};

use super::grip::Grip;
use super::keeper::Held;
use super::letters::{LetterBody, Unread, stop_key, unread};
use super::to_its_end;
use super::watch::Watch;

/// The waits between two tries to claim a session that is held.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// What to do about a session that another run holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBusy {
    /// Refuse: the error [says so](crate::RunError::is_busy). Answers are recorded all the same,
    /// and the other run goes on with them.
    #[default]
    Reject,
    /// Wait until the other run has settled.
    Wait,
    /// Ask the other run to stop at its next boundary, and wait until it has.
    Stop,
    /// Leave the input to the other run, which takes it as its next turn once this one has ended.
    Queue,
}

/// Why a session could not be taken up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A session that is held, and what its log says.
pub(crate) struct Opening {
    pub(super) grip: Grip,
    pub(super) watch: Arc<Watch>,
    pub(super) head: Seq,
    pub(super) since: u64,
    pub(super) ttl: Duration,
    /// What the log adds up to; `None` for a new session.
    pub(crate) saved: Option<Saved>,
    /// Whether that is what the caller had read before.
    pub(crate) known: bool,
    /// Letters that nobody has taken into the log.
    pub(crate) letters: Vec<Unread>,
    /// How many letters were looked at.
    pub(crate) mail: InboxSeq,
}

/// A session as it is read without a lease.
pub(crate) struct Read {
    pub(crate) saved: Saved,
    pub(crate) head: Seq,
    pub(crate) holder: Option<Holder>,
    /// How many letters the facts have counted.
    pub(crate) counted: InboxSeq,
    /// The first entry that is kept.
    pub(crate) first: Seq,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) set_aside: u64,
    since: u64,
}

impl Read {
    /// Whether this is all that a page of the session says, too. Only a session that asks tells itself
    /// from one that was begun anew under its id: no two sessions have a question's id.
    fn is_in(&self, page: &Page) -> bool {
        let asked: HashSet<_> = self.saved.open().map(|asked| &asked.interrupt.id).collect();
        !asked.is_empty()
            && asked.len() == page.interrupts.len()
            && page.interrupts.iter().all(|one| asked.contains(&one.id))
            && (page.first, page.head) == (self.first, self.head)
    }
}

impl Opening {
    /// Claims a session and reads it, as `patience` says. What was `known` of it is not read again
    /// if it is still the same.
    pub(crate) async fn claim(
        store: &Arc<dyn SessionStore>,
        session: &SessionId,
        known: Option<Read>,
        ttl: Duration,
        patience: OnBusy,
        run: Arc<dyn Held>,
    ) -> Result<Self, OpenError> {
        let mut wait = FIRST_WAIT;
        let (since, grip, claimed) = loop {
            match claim(store, session, ttl).await {
                Ok(claimed) => break claimed,
                Err(StoreError::Busy { .. }) if matches!(patience, OnBusy::Wait | OnBusy::Stop) => {
                    if patience == OnBusy::Stop {
                        ask_to_stop(&**store, session).await?;
                    }
                    sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let watch = Arc::new(Watch::new(since, ttl, claimed.inbox));
        let mut opening = Self {
            grip: grip.keep(ttl, &watch, Arc::clone(&run)),
            watch,
            head: claimed.head,
            since: 0,
            ttl,
            saved: None,
            known: false,
            letters: Vec::new(),
            mail: claimed.inbox,
        };
        if claimed.head == Seq(0) {
            return Ok(opening);
        }
        match catch_up(&**store, session, known.filter(|known| known.head == claimed.head)).await {
            Ok(Some(CaughtUp { found, known, letters, mail })) => {
                opening.known = known;
                opening.head = found.head;
                opening.since = found.since;
                opening.saved = Some(found.saved);
                let stop = stop_key(opening.grip.fence());
                if letters.iter().any(|letter| letter.key == stop) {
                    run.stop();
                }
                (opening.letters, opening.mail) = (letters, mail);
                Ok(opening)
            }
            Ok(None) => Ok(opening),
            Err(error) => {
                opening.release().await;
                Err(error)
            }
        }
    }

    /// Gives the session back untouched. Says whether letters came meanwhile.
    pub(crate) async fn release(self) -> bool {
        self.grip.give_back(self.mail).await == Some(Released::MoreMessages)
    }
}

/// A session that is held, and its letters that nobody has taken.
struct CaughtUp {
    found: Read,
    /// Whether it is what the caller had read before.
    known: bool,
    letters: Vec<Unread>,
    mail: InboxSeq,
}

/// Reads a session that is held; what is `known` of it only if it is no more the same.
async fn catch_up(
    store: &dyn SessionStore,
    session: &SessionId,
    known: Option<Read>,
) -> Result<Option<CaughtUp>, OpenError> {
    if let Some(mut known) = known {
        let counted = known.counted;
        known.saved.mail = known.saved.mail.max(counted);
        let request = ReadRequest::messages_after(known.saved.mail);
        let page = store.read(session, request).await?;
        if let Some(page) = page.filter(|page| page.summary.inbox == counted && known.is_in(page)) {
            let (letters, mail) = (unread(page.messages), page.inbox);
            return Ok(Some(CaughtUp { found: known, known: true, letters, mail }));
        }
    }
    let Some(mut found) = read(store, session).await? else { return Ok(None) };
    // Letters that were passed over are in no entry.
    found.saved.mail = found.saved.mail.max(found.counted);
    let (letters, mail) = read_letters(store, session, found.saved.mail).await?;
    Ok(Some(CaughtUp { found, known: false, letters, mail }))
}

/// Claims a session. A claim that nobody waits for any more is given back.
async fn claim(
    store: &Arc<dyn SessionStore>,
    session: &SessionId,
    ttl: Duration,
) -> Result<(u64, Grip, Claimed), StoreError> {
    let (store, session) = (Arc::clone(store), session.clone());
    let claiming = Box::pin(async move {
        let since = boot_millis();
        let claimed = store.claim(&session, ttl).await?;
        Ok((since, Grip::new(store, claimed.lease.clone()), claimed))
    });
    to_its_end(claiming).await
}

/// The letters behind those that were taken, and how many were posted so far.
pub(crate) async fn read_letters(
    store: &dyn SessionStore,
    session: &SessionId,
    taken: InboxSeq,
) -> Result<(Vec<Unread>, InboxSeq), StoreError> {
    match store.read(session, ReadRequest::messages_after(taken)).await? {
        Some(page) => Ok((unread(page.messages), page.inbox)),
        None => Ok((Vec::new(), taken)),
    }
}

/// All letters of a session.
pub(crate) async fn letters(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Vec<Unread>, StoreError> {
    Ok(read_letters(store, session, InboxSeq(0)).await?.0)
}

/// Notes that an input was taken.
pub(crate) async fn note_taken(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
) -> Result<(), StoreError> {
    // It is noted already, or now.
    store.send(session, &[LetterBody::taken(key)]).await.map(|_| ())
}

/// Leaves a letter that asks the holder to stop, if there is one.
pub(crate) async fn ask_to_stop(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let page = look(store, session).await?;
    let Some(holder) = page.and_then(|page| page.holder) else { return Ok(false) };
    let posted = store.send(session, &[LetterBody::stop(holder.fence, None)]).await?;
    Ok(matches!(posted, Sent::Accepted(_)))
}

/// How a session stands, without entries and letters.
pub(crate) async fn look(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Option<Page>, StoreError> {
    store.read(session, ReadRequest::summary()).await
}

/// Reads a session from its last snapshot on. `None` if there is no such session.
pub(crate) async fn read(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Option<Read>, OpenError> {
    read_until(store, session, ReadFrom::Snapshot, None).await
}

/// Reads a session up to and with the entry at `last`, or to its head.
pub(crate) async fn read_until(
    store: &dyn SessionStore,
    session: &SessionId,
    from: ReadFrom,
    last: Option<Seq>,
) -> Result<Option<Read>, OpenError> {
    let mut from = from;
    let mut replay = Replay::default();
    loop {
        let Some(page) = store.read(session, ReadRequest::entries(from)).await? else {
            return Ok(None);
        };
        let mut over = false;
        for stored in page.entries {
            if last.is_some_and(|last| stored.seq > last) {
                over = true;
                break;
            }
            replay.take(stored.seq, &stored.bytes)?;
        }
        match page.next {
            Some(next) if !over => from = ReadFrom::Seq(next),
            _ => {
                let (head, since) = (replay.head(), replay.since().bytes);
                let saved = replay.finish()?;
                return Ok(Some(Read {
                    saved,
                    head,
                    since,
                    holder: page.holder,
                    counted: page.summary.inbox,
                    first: page.first,
                    created: page.created,
                    updated: page.updated,
                    set_aside: page.set_aside,
                }));
            }
        }
    }
}

/// What a session's log adds up to.
pub(crate) async fn read_saved(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Option<Saved>, OpenError> {
    Ok(read(store, session).await?.map(|read| read.saved))
}

/// Posts the expiry of questions whose time is over, so that it is decided whether an answer or the
/// clock came first.
pub(crate) async fn post_expired(
    store: &dyn SessionStore,
    session: &SessionId,
    saved: &Saved,
) -> Result<(), StoreError> {
    let now = UtcMillis::now();
    for question in &saved.questions {
        let due = question.interrupt.expires_at.is_some_and(|at| at <= now);
        if due && question.resolution.is_none() {
            // An answer that was first stays; it is found among the letters.
            store.send(session, &[LetterBody::expired(&question.interrupt.id)]).await?;
        }
    }
    Ok(())
}
