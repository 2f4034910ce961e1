//! Where sessions are kept: the [`SessionStore`] trait and what its methods speak of.
//!
//! A session is an append-only log of opaque entries, numbered from 1 without gaps. One holder at a
//! time may append to it: whoever has its [`Lease`]. Everybody else posts [`Letter`]s, which the
//! holder reads. Beside the bytes a store keeps few indexed facts, so that sessions and open
//! questions can be listed without reading any log.
//!
//! A store decides nothing about loops: it never decodes an entry. What it promises is stated at
//! each method.

mod batch;
mod error;
mod facts;
mod lease;
mod letter;
mod list;
mod memory;
mod page;

use std::time::Duration;

use async_trait::async_trait;

pub use batch::{Appended, Batch, NewEntry, Remove};
pub use error::StoreError;
pub use facts::{Facts, Guarantees, OpenQuestion, Phase};
pub use lease::{Claim, Claimed, Lease, Token};
pub use letter::{Letter, Mail, Posted};
pub use list::{Filter, Listing, Row};
pub use memory::MemoryStore;
pub use page::{From, Holder, Page, StoredEntry, StoredLetter};

use crate::id::SessionId;

/// Keeps sessions: their logs, leases, letters and facts.
///
/// All methods may be called from any number of tasks and, where the store is shared, processes.
/// Dropping the future of a method leaves the session as if it had not been called or as if it had
/// returned, never in between.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// What this store survives and how much it takes at once.
    fn guarantees(&self) -> Guarantees;

    /// Takes the lease of a session, for `ttl`.
    ///
    /// [`Claim::One`] names the session; one that does not exist yet can be claimed, and exists
    /// once an entry is appended to it: until then it is not read, listed or posted to, and only its
    /// lease is kept. The lease is free if there is none, if the last one was
    /// released, has expired, or its holder is known to be dead. Each claim gets a fence above all
    /// earlier ones of the session, and a token of its own.
    ///
    /// [`Claim::Due`] takes any session that needs somebody, waits for one if need be, and gives
    /// `None` if none turned up. See there for which are due.
    ///
    /// A session whose log is damaged, or was written by a newer version, keeps [`Claim::Due`] from no
    /// other.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the one session is held; [`StoreError::Corrupt`] if what is stored of
    /// it is not what was appended, [`StoreError::NewerFormat`] if a newer version has written it:
    /// then nothing is written to it.
    async fn claim(&self, what: Claim<'_>, ttl: Duration) -> Result<Option<Claimed>, StoreError>;

    /// Holds a lease for `ttl` from now on, and says how many letters were posted so far. A `ttl`
    /// of zero releases the lease. A lease that has expired and was not taken by anybody else can
    /// still be renewed.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if somebody else has taken the lease since, or it was released;
    /// [`StoreError::Gone`] if the session was removed.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError>;

    /// Adds the batch to the log of the lease's session: its entries, facts and changes of open
    /// questions, all of it or nothing.
    ///
    /// - *Compare and append*: `batch.after` must be the head of the log.
    /// - *Fenced*: the lease's token must be that of the last claim. Expiry does not matter.
    /// - *Idempotent*: a batch that is in the log already, under the same token, after the same
    ///   seq and with the same entries, is reported as appended again, with the seq of its own last
    ///   entry as head, and changes nothing. This is checked before anything else, the fence
    ///   included. A batch without entries leaves no seq behind: it is known again by its facts and
    ///   questions, as long as it is the last batch of its token. What was pruned or removed is not
    ///   known again.
    /// - *Durable*: on return with `batch.flush`, this batch and all before it survive what the
    ///   store's [`guarantees`](SessionStore::guarantees) name. Without `flush` they survive the
    ///   end of this process.
    ///
    /// A batch may have no entries: it then changes facts and questions, and flushes. Only the batch
    /// that makes a session must have both an entry and facts.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the head, [`StoreError::Fenced`] (looked for before a
    /// conflict), [`StoreError::Gone`],
    /// [`StoreError::TooLarge`] and [`StoreError::Full`] if nothing was appended;
    /// [`StoreError::Unavailable`] says whether that is certain.
    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError>;

    /// Leaves letters for whoever holds the session, or will. Needs no lease. Letters are kept by
    /// key: the first under a key stays, and all of `letters` are posted or none.
    ///
    /// A letter whose key is taken by one with the same digest counts as posted already; by one
    /// with another digest, nothing is posted and the answer is [`Posted::Taken`]. That holds
    /// between the letters of one call too. A new letter that answers a question which is not open
    /// (by the facts), or has expired (by the store's clock), makes the answer
    /// [`Posted::TooLate`]; so does one that says that a question [has expired](Letter::expiry)
    /// which is not open or has not expired. `Taken` is looked for first, over all letters. No
    /// letters at all are posted at once.
    /// A posted letter survives what the store's guarantees name.
    ///
    /// # Errors
    /// [`StoreError::Gone`] if there is no such session. To one that is damaged, or of a newer format,
    /// nothing is posted, as [`claim`](Self::claim) says.
    async fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError>;

    /// Reads a session: entries from a place on, and the letters after a mark. `None` if the
    /// session does not exist. Needs no lease.
    ///
    /// A page begins exactly where it is told, be it inside a batch, and ends where a batch ends: it
    /// holds the rest of one batch if there is any left, then as many batches as fit into `limit`
    /// bytes of entries; [`Page::next`] says where to go on. Letters are not paged. What
    /// was appended or posted before the call began is seen.
    ///
    /// # Errors
    /// [`StoreError::Pruned`] if `from` lies below the first entry kept;
    /// [`StoreError::Corrupt`] if what is stored is not what was appended;
    /// [`StoreError::NewerFormat`] if a newer version has written it.
    async fn read(
        &self,
        session: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError>;

    /// Lists sessions, or open questions, in the order of their [keys](Row::key), from behind the
    /// row whose key is `after`, which need not exist any more, and at most `limit` of them (at
    /// least 1 is meant). [`Listing::next`] is the key of the page's last row.
    ///
    /// Sessions that come and go while pages are read are seen or not; all others are seen once.
    ///
    /// A session whose log is damaged hides no other.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] and [`StoreError::Corrupt`], as the store may.
    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError>;

    /// Removes the entries of a session below a seq, or the whole session with its letters and its
    /// lease.
    ///
    /// Entries are removed only below the last snapshot, whatever the seq says; without a snapshot,
    /// none. A removed session can be made anew under the same id, without letters, questions and
    /// facts; the lease of the old one does not hold the new one.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if the lease is no longer held; [`StoreError::Gone`] if the session
    /// was removed.
    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError>;
}
