//! One session: what its log, its letters and its holder are, and what may be done to them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use boot_time::Instant;

use crate::clock::UtcMillis;
use crate::id::{Fence, InterruptId, Seq, SessionId};
use crate::store::{
    Appended, Batch, Facts, From, Holder, Lease, Letter, Mail, OpenQuestion, Page, Posted,
    StoreError, StoredLetter, Token,
};

use super::log::Log;

#[derive(Default)]
pub(super) struct Session {
    pub(super) log: Log,
    /// `None` until the first entry is there.
    pub(super) facts: Option<Facts>,
    pub(super) questions: BTreeMap<InterruptId, OpenQuestion>,
    letters: Vec<Letter>,
    /// Where the letter under a key is.
    keys: HashMap<String, usize>,
    lease: Option<Held>,
    /// The last batch of each token, where it had no entries and so left no trace in the log.
    empty: Vec<Empty>,
    pub(super) created: UtcMillis,
    pub(super) updated: UtcMillis,
}

pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) token: Token,
    /// When the lease expires; `None` if that is farther away than the clock reaches.
    pub(super) deadline: Option<Instant>,
}

struct Empty {
    token: Token,
    after: Seq,
    facts: Option<Facts>,
    ask: Vec<OpenQuestion>,
    close: Vec<InterruptId>,
}

pub(super) fn deadline(ttl: Duration) -> Option<Instant> {
    Instant::now().checked_add(ttl)
}

impl Session {
    /// Whether anything was appended.
    pub(super) fn exists(&self) -> bool {
        self.facts.is_some()
    }

    /// Whether there is nothing to keep.
    pub(super) fn is_blank(&self) -> bool {
        !self.exists() && self.lease.is_none()
    }

    pub(super) fn mail(&self) -> Mail {
        Mail(self.letters.len() as u64)
    }

    /// For how long the session is still held.
    pub(super) fn held_for(&self) -> Option<Duration> {
        let held = self.lease.as_ref()?;
        match held.deadline {
            Some(deadline) => {
                deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            }
            None => Some(Duration::MAX),
        }
    }

    pub(super) fn holder(&self) -> Option<Holder> {
        let left = u64::try_from(self.held_for()?.as_millis()).unwrap_or(u64::MAX);
        let until = UtcMillis(UtcMillis::now().0.saturating_add(left));
        self.lease.as_ref().map(|held| Holder { fence: held.fence, until })
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.lease = Some(held);
    }

    /// Whether the lease is that of the last claim, which was not released.
    pub(super) fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        match &self.lease {
            Some(held) if held.token == lease.token => Ok(()),
            _ => Err(StoreError::Fenced { session: lease.session.clone() }),
        }
    }

    pub(super) fn renew(&mut self, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
        self.check(lease)?;
        if ttl.is_zero() {
            self.lease = None;
        } else if let Some(held) = &mut self.lease {
            held.deadline = deadline(ttl);
        }
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        lease: &Lease,
        batch: &Batch<'_>,
    ) -> Result<Appended, StoreError> {
        let head = self.log.head();
        if let Some(head) = self.appended(lease.token, batch) {
            return Ok(Appended { head, mail: self.mail() });
        }
        self.check(lease)?;
        if batch.after != head {
            let session = lease.session.clone();
            return Err(StoreError::Conflict { session, after: batch.after, head });
        }
        let changes = batch.facts.is_some() || !batch.ask.is_empty() || !batch.close.is_empty();
        if batch.entries.is_empty() && !changes {
            return Ok(Appended { head, mail: self.mail() });
        }
        if !self.exists() {
            if batch.entries.is_empty() || batch.facts.is_none() {
                return Err(StoreError::Unavailable {
                    what: format!(
                        "the first batch of session `{}` must have an entry and facts",
                        lease.session
                    ),
                    ambiguous: false,
                    source: None,
                });
            }
            self.created = batch.at;
        }
        self.updated = batch.at;
        self.log.push(lease.token, batch.entries);
        self.remember(lease.token, batch);
        if let Some(facts) = batch.facts {
            match &mut self.facts {
                Some(own) => replace(own, facts),
                None => self.facts = Some(facts.clone()),
            }
        }
        for question in batch.ask {
            self.questions.insert(question.id.clone(), question.clone());
        }
        for id in batch.close {
            self.questions.remove(id);
        }
        Ok(Appended { head: self.log.head(), mail: self.mail() })
    }

    /// The head behind the batch, if it was appended already.
    fn appended(&self, token: Token, batch: &Batch<'_>) -> Option<Seq> {
        if !batch.entries.is_empty() {
            // Nothing is behind the head, and that is where nearly every batch wants to be.
            return (batch.after < self.log.head()
                && self.log.has(token, batch.after, batch.entries))
            .then(|| Seq(batch.after.0 + batch.entries.len() as u64));
        }
        let same = |empty: &Empty| {
            empty.token == token
                && empty.after == batch.after
                && empty.facts.as_ref() == batch.facts
                && empty.ask == batch.ask
                && empty.close == batch.close
        };
        self.empty.iter().any(same).then_some(batch.after)
    }

    /// Keeps the batch if it has no entries: only so can it be told apart from one that is new.
    fn remember(&mut self, token: Token, batch: &Batch<'_>) {
        if self.empty.last().is_some_and(|empty| empty.token == token) {
            self.empty.pop();
        }
        if batch.entries.is_empty() {
            self.empty.push(Empty {
                token,
                after: batch.after,
                facts: batch.facts.cloned(),
                ask: batch.ask.to_vec(),
                close: batch.close.to_vec(),
            });
        }
    }

    pub(super) fn post(&mut self, letters: &[Letter]) -> Posted {
        let mut new: Vec<&Letter> = Vec::new();
        let mut own: HashMap<&str, &Letter> = HashMap::new();
        for letter in letters {
            let kept = self.keys.get(&letter.key).and_then(|at| self.letters.get(*at));
            match kept.or_else(|| own.get(letter.key.as_str()).copied()) {
                Some(first) if first.digest == letter.digest => {}
                Some(first) => {
                    return Posted::Taken { key: letter.key.clone(), first: first.clone() };
                }
                None => {
                    own.insert(&letter.key, letter);
                    new.push(letter);
                }
            }
        }
        let now = UtcMillis::now();
        if let Some(late) = new.iter().find(|letter| !self.takes(letter, now)) {
            return Posted::TooLate { key: late.key.clone() };
        }
        for letter in new {
            self.keys.insert(letter.key.clone(), self.letters.len());
            self.letters.push(letter.clone());
        }
        Posted::Here(self.mail())
    }

    /// Whether the question of a letter waits for it.
    fn takes(&self, letter: &Letter, now: UtcMillis) -> bool {
        let Some(id) = &letter.question else {
            return true;
        };
        self.questions.get(id).is_some_and(|question| {
            let expired = question.expires.is_some_and(|expires| expires <= now);
            expired == letter.expiry
        })
    }

    pub(super) fn read(
        &self,
        id: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        let Some(facts) = &self.facts else {
            return Ok(None);
        };
        let (head, first) = (self.log.head(), self.log.first());
        let begin = match from {
            From::Seq(seq) | From::SnapshotBelow(seq) if seq < first && first > Seq(1) => {
                return Err(StoreError::Pruned { session: id.clone(), first });
            }
            From::Seq(seq) => seq,
            From::Snapshot => self.log.snapshot(head).unwrap_or(first),
            From::SnapshotBelow(seq) => self.log.snapshot(seq).unwrap_or(first),
        };
        let (entries, next) = self.log.page(begin, limit);
        let letters = (1..).map(Mail).zip(&self.letters);
        let seen = usize::try_from(mail.0).unwrap_or(usize::MAX);
        Ok(Some(Page {
            entries,
            next,
            first,
            head,
            letters: letters
                .skip(seen)
                .map(|(mail, letter)| StoredLetter { mail, letter: letter.clone() })
                .collect(),
            mail: self.mail(),
            facts: facts.clone(),
            questions: self.questions.values().cloned().collect(),
            holder: self.holder(),
            created: self.created,
            updated: self.updated,
            set_aside: 0,
        }))
    }

    pub(super) fn prune(&mut self, below: Seq) {
        self.log.prune(below);
        let first = self.log.first();
        // Those behind the log's first entry can still be sent again.
        self.empty.retain(|empty| empty.after.next() >= first);
    }
}

/// Copies facts into the room of older ones.
fn replace(own: &mut Facts, facts: &Facts) {
    let Facts { agent, phase, step, due, mail } = facts;
    if own.agent != *agent {
        own.agent = agent.clone();
    }
    own.step.clone_from(step);
    (own.phase, own.due, own.mail) = (*phase, *due, *mail);
}
