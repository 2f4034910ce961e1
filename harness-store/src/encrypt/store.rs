//! The store around another one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    NewEntry, Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError, Token,
};
use harness::{Seq, SessionId, UtcMillis};

use super::cipher::{DecryptError, Place};
use super::key::Keys;

/// How many leases are remembered at once. Another one costs its next append a read.
const LEASES: usize = 10_000;

/// A store that encrypts what another store keeps: the entries of logs, and the messages of inboxes
/// with their digests. The cipher is XChaCha20-Poly1305.
///
/// ```
/// use harness_store::{Encrypted, Key, Keys, MemoryStore};
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Chat { said: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Answer }
///
/// # fn agent(harness: Harness<(), Chat>) -> Result<harness::Agent<(), Chat>, harness_store::KeyError> {
/// let keys = Keys::new(Key::new("2026-11", [7; 32])?); // best read from where secrets are kept
/// let store = Encrypted::new(MemoryStore::new(), keys);
/// let agent = harness.agent("chat", ()).store(store);
/// # Ok(agent) }
/// ```
///
/// Each entry and message is bound to its place: the session, when it was created, and the number of
/// the entry or the key of the message. Bytes that were changed, or moved from another place or from a
/// removed session of the same id, are [`StoreError::Corrupt`]. Bytes whose key is not at hand are
/// [`StoreError::MissingKey`] or [`StoreError::WrongKey`].
///
/// What the other store needs to find and to order sessions stays readable: the ids of sessions, agents
/// and interrupts, the names of steps, phases, times, the keys of messages (which contain the ids that
/// programs give to inputs), the ids of keys, and how long everything is. Keep secrets out of ids. Someone
/// who may write to the other store can still remove sessions, the last entries of a log and
/// messages, or restore an older copy of a whole session.
///
/// Entries grow by 50 bytes and the id of the key. The first append of a lease to a session that exists
/// costs one more read. The limits of batches and pages count encrypted bytes. A store that holds
/// sessions that are not encrypted cannot be used so.
#[derive(Clone)]
pub struct Encrypted<S> {
    store: S,
    keys: Keys,
    /// When the session of a lease was created: an append must know it.
    created: Arc<Mutex<HashMap<Token, UtcMillis>>>,
}

impl<S> Encrypted<S> {
    /// Encrypts what `store` keeps.
    pub fn new(store: S, keys: Keys) -> Self {
        Self { store, keys, created: Arc::default() }
    }

    /// The store inside, which gives and takes encrypted bytes.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn created(&self) -> MutexGuard<'_, HashMap<Token, UtcMillis>> {
        // An insert that panicked has not changed a value.
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, lease: &Lease, created: UtcMillis) {
        let mut known = self.created();
        if known.len() >= LEASES {
            known.clear();
        }
        known.insert(lease.token, created);
    }

    fn forget(&self, lease: &Lease) {
        self.created().remove(&lease.token);
    }

    fn encrypt_message(&self, to: &SessionId, message: &Message) -> Message {
        let place = message_place(to, message);
        // The digest of another key is compared through what is encrypted here.
        let digest = message.digest.as_bytes();
        let length = (digest.len() as u64).to_le_bytes();
        let body = self.keys.encrypt(&place, &[&length, digest, &message.body].concat());
        let digest = self.keys.digest(&place, &message.digest);
        Message { digest, body, ..message.clone() }
    }

    fn decrypt_message(
        &self,
        of: &SessionId,
        after: Seq,
        encrypted: &Message,
    ) -> Result<Message, StoreError> {
        let what = || format!("the message `{}`", encrypted.key);
        let decrypted = self.keys.decrypt(&message_place(of, encrypted), &encrypted.body);
        let decrypted = decrypted.map_err(|error| store_error(error, of, after, what))?;
        let (digest, body) = decrypted
            .split_first_chunk()
            .and_then(|(length, rest)| {
                rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
            })
            .and_then(|(digest, body)| Some((String::from_utf8(digest.to_vec()).ok()?, body)))
            .ok_or_else(|| store_error(DecryptError::Damaged, of, after, what))?;
        Ok(Message { digest, body: body.to_vec(), ..encrypted.clone() })
    }
}

impl<S: SessionStore> Encrypted<S> {
    /// When the session was created to which a batch is to be appended.
    async fn created_for(&self, lease: &Lease, batch: &Batch<'_>) -> Result<UtcMillis, StoreError> {
        let known = self.created().get(&lease.token).copied();
        if let Some(created) = known {
            return Ok(created);
        }
        if batch.after == Seq(0) {
            return Ok(batch.at);
        }
        // Another session of this id needs another claim, after which this lease appends nothing. So
        // what is read here is right for every append that succeeds.
        let page = self.store.read(&lease.session, ReadRequest::summary()).await?;
        let created = page.map(|page| page.created).unwrap_or_default();
        self.remember(lease, created);
        Ok(created)
    }
}

fn entry_place(session: &SessionId, created: UtcMillis, seq: Seq) -> Place {
    let parts: [&[u8]; 3] =
        [session.as_str().as_bytes(), &created.0.to_le_bytes(), &seq.0.to_le_bytes()];
    Place::new("entry", &parts)
}

/// A sender cannot know when the session was created that will have the message. The ids of interrupts,
/// which are in the keys of answers, differ between sessions of the same id.
fn message_place(session: &SessionId, message: &Message) -> Place {
    let Message { key, interrupt, expiry, .. } = message;
    let interrupt = interrupt.as_ref().map_or("", |id| id.as_str());
    let parts: [&[u8]; 4] = [
        session.as_str().as_bytes(),
        key.as_bytes(),
        interrupt.as_bytes(),
        &[u8::from(*expiry), u8::from(message.interrupt.is_some())],
    ];
    Place::new("message", &parts)
}

fn store_error(
    error: DecryptError,
    session: &SessionId,
    after: Seq,
    place: impl Fn() -> String,
) -> StoreError {
    let session = session.clone();
    let corrupt = |what: &str| format!("{} {what}", place());
    match error {
        DecryptError::Missing(key) => StoreError::MissingKey { session, key },
        DecryptError::Wrong(key) => StoreError::WrongKey { session, key },
        DecryptError::Plain => {
            StoreError::Corrupt { session, after, what: corrupt("is not encrypted") }
        }
        DecryptError::Damaged => {
            let what = corrupt("was changed, or belongs to another place");
            StoreError::Corrupt { session, after, what }
        }
    }
}

#[async_trait]
impl<S: SessionStore> SessionStore for Encrypted<S> {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.store.claim(session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.store.claim_due(request, ttl).await
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        self.store.wait_due(agents, timeout).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.store.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.forget(lease);
        self.store.release(lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        if batch.entries.is_empty() {
            return self.store.append(lease, batch).await;
        }
        let created = self.created_for(lease, &batch).await?;
        let encrypted: Vec<Vec<u8>> = (1..)
            .zip(batch.entries)
            .map(|(nth, entry)| {
                // What is beyond the last seq is refused by the store inside.
                let seq = Seq(batch.after.0.saturating_add(nth));
                self.keys.encrypt(&entry_place(&lease.session, created, seq), entry.bytes)
            })
            .collect();
        let entries: Vec<NewEntry<'_>> = encrypted
            .iter()
            .zip(batch.entries)
            .map(|(bytes, entry)| NewEntry { bytes, ..*entry })
            .collect();
        let appended = self.store.append(lease, Batch { entries: &entries, ..batch }).await?;
        if batch.after == Seq(0) {
            self.remember(lease, created);
        }
        Ok(appended)
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let mut encrypted: Vec<Message> =
            messages.iter().map(|message| self.encrypt_message(to, message)).collect();
        loop {
            let (key, first) = match self.store.send(to, &encrypted).await? {
                Sent::Taken { key, first } => (key, first),
                sent => return Ok(sent),
            };
            let decrypted = self.decrypt_message(to, Seq(0), &first)?;
            // One with the same digest counts as sent. Under another key it looks different.
            let mut again = false;
            for (message, encrypted) in messages.iter().zip(&mut encrypted) {
                if message.key == key
                    && message.digest == decrypted.digest
                    && encrypted.digest != first.digest
                {
                    encrypted.digest.clone_from(&first.digest);
                    again = true;
                }
            }
            if !again {
                return Ok(Sent::Taken { key, first: decrypted });
            }
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let Some(mut page) = self.store.read(session, request).await? else {
            return Ok(None);
        };
        for entry in &mut page.entries {
            let place = entry_place(session, page.created, entry.seq);
            let what = || format!("entry {}", entry.seq);
            let after = Seq(entry.seq.0.saturating_sub(1));
            entry.bytes = self
                .keys
                .decrypt(&place, &entry.bytes)
                .map_err(|error| store_error(error, session, after, what))?;
        }
        for stored in &mut page.messages {
            stored.message = self.decrypt_message(session, page.head, &stored.message)?;
        }
        Ok(Some(page))
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.store.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.store.remove(lease, what).await
    }
}

/// The ids of the keys, and the store inside.
impl<S: fmt::Debug> fmt::Debug for Encrypted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted")
            .field("store", &self.store)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
