//! One session: its log, its inbox and its lease, and what may be done to them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use boot_time::Instant;

use crate::clock::UtcMillis;
use crate::id::{AgentId, Fence, InterruptId, Seq, SessionId};
use crate::store::{
    Appended, Batch, FormerHolder, Holder, InboxSeq, Lease, Message, OpenInterrupt, Page,
    ReadRequest, Sent, SessionSummary, StoreError, StoredMessage, Token, rules,
};

use super::log::Log;

#[derive(Default)]
pub(super) struct Session {
    pub(super) log: Log,
    /// `None` until the first entry is there. Apart, as few batches change it.
    pub(super) summary: Option<Box<SessionSummary>>,
    pub(super) interrupts: BTreeMap<InterruptId, OpenInterrupt>,
    messages: Vec<Message>,
    /// Where the message under a key is.
    keys: HashMap<String, usize>,
    lease: Option<Held>,
    /// The last message that a holder had read when it released the session.
    read: InboxSeq,
    /// Where the session stands in the index of those that may be due.
    pub(super) place: Option<(AgentId, UtcMillis)>,
    /// The last batch of each token, if it had no entries and so is not in the log.
    empty: Vec<Empty>,
    pub(super) created: UtcMillis,
    pub(super) updated: UtcMillis,
}

pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) token: Token,
    /// When the lease expires; `None` if that is beyond the range of the clock.
    pub(super) deadline: Option<Instant>,
}

struct Empty {
    token: Token,
    after: Seq,
    summary: Option<SessionSummary>,
    open: Vec<OpenInterrupt>,
    close: Vec<InterruptId>,
}

pub(super) fn deadline(ttl: Duration) -> Option<Instant> {
    Instant::now().checked_add(ttl)
}

impl Session {
    /// Whether anything was appended.
    pub(super) fn exists(&self) -> bool {
        self.summary.is_some()
    }

    /// Whether there is nothing to keep.
    pub(super) fn is_blank(&self) -> bool {
        !self.exists() && self.lease.is_none()
    }

    /// The last message.
    pub(super) fn inbox(&self) -> InboxSeq {
        InboxSeq(self.messages.len() as u64)
    }

    /// From when on the session is due, if its lease is free.
    pub(super) fn due_from(&self) -> Option<UtcMillis> {
        rules::due_from(self.summary.as_deref()?, self.read, self.inbox())
    }

    /// How long the lease still lasts; `None` if it is free.
    pub(super) fn held_for(&self) -> Option<Duration> {
        let held = self.lease.as_ref()?;
        let now = Instant::now();
        match held.deadline {
            Some(until) if rules::is_held(Some(until), now, true) => {
                until.checked_duration_since(now)
            }
            Some(_) => None,
            None => Some(Duration::MAX),
        }
    }

    pub(super) fn holder(&self) -> Option<Holder> {
        let left = u64::try_from(self.held_for()?.as_millis()).unwrap_or(u64::MAX);
        let until = UtcMillis(UtcMillis::now().0.saturating_add(left));
        self.lease.as_ref().map(|held| Holder::new(held.fence, until))
    }

    /// What is known of the last holder, once the lease is free.
    pub(super) fn former(&self) -> FormerHolder {
        if self.lease.is_some() { FormerHolder::Expired } else { FormerHolder::Released }
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.lease = Some(held);
    }

    /// Whether the lease is that of the last claim, which was not released.
    pub(super) fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        rules::check_lease(lease, self.lease.as_ref().map(|held| held.token))
    }

    pub(super) fn renew(&mut self, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
        self.check(lease)?;
        if let Some(held) = &mut self.lease {
            held.deadline = deadline(ttl);
        }
        Ok(())
    }

    pub(super) fn release(&mut self, lease: &Lease, read: InboxSeq) -> Result<(), StoreError> {
        self.check(lease)?;
        self.lease = None;
        self.read = self.read.max(read);
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        lease: &Lease,
        batch: &Batch<'_>,
    ) -> Result<Appended, StoreError> {
        let head = self.exists().then(|| self.log.head());
        let repetition = self.has(lease.token, batch);
        let judged = rules::judge_append(&lease.session, batch.into(), head, repetition, || {
            self.check(lease)
        });
        if let rules::Append::Done(head) = judged? {
            return Ok(Appended::new(head, self.inbox()));
        }
        self.put(lease.token, batch);
        Ok(Appended::new(self.log.head(), self.inbox()))
    }

    /// Appends a batch that was judged.
    pub(super) fn put(&mut self, token: Token, batch: &Batch<'_>) {
        if !self.exists() {
            self.created = batch.at;
        }
        self.updated = batch.at;
        self.log.push(token, batch.entries);
        self.remember(token, batch);
        if let Some(summary) = batch.summary {
            match &mut self.summary {
                Some(own) => replace(own, summary),
                None => self.summary = Some(Box::new(summary.clone())),
            }
        }
        for interrupt in batch.open {
            self.interrupts.insert(interrupt.id.clone(), interrupt.clone());
        }
        for id in batch.close {
            self.interrupts.remove(id);
        }
    }

    /// Whether the batch was appended before.
    fn has(&self, token: Token, batch: &Batch<'_>) -> bool {
        if !batch.entries.is_empty() {
            // Nothing is after the head, where nearly every batch begins.
            return batch.after < self.log.head() && self.log.has(token, batch);
        }
        self.empty.iter().filter(|empty| empty.token == token).any(|empty| {
            let stored = Batch {
                after: empty.after,
                summary: empty.summary.as_ref(),
                open: &empty.open,
                close: &empty.close,
                ..Batch::default()
            };
            rules::is_repetition(batch, &stored)
        })
    }

    /// Keeps a batch without entries, to recognize its repetition.
    fn remember(&mut self, token: Token, batch: &Batch<'_>) {
        if self.empty.last().is_some_and(|empty| empty.token == token) {
            self.empty.pop();
        }
        if batch.entries.is_empty() {
            self.empty.push(Empty {
                token,
                after: batch.after,
                summary: batch.summary.cloned(),
                open: batch.open.to_vec(),
                close: batch.close.to_vec(),
            });
        }
    }

    pub(super) fn send(&mut self, messages: &[Message]) -> Sent {
        let stored = |key: &str| self.keys.get(key).and_then(|at| self.messages.get(*at));
        let open = |id: &InterruptId| self.interrupts.get(id);
        let new = match rules::judge_messages(messages, stored, open, UtcMillis::now()) {
            Ok(new) => new.into_iter().cloned().collect::<Vec<_>>(),
            Err(refused) => return refused,
        };
        self.deliver(new);
        Sent::Accepted(self.inbox())
    }

    /// Adds messages that were judged, but for those whose key is taken.
    pub(super) fn deliver(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            if !self.keys.contains_key(&message.key) {
                self.keys.insert(message.key.clone(), self.messages.len());
                self.messages.push(message);
            }
        }
    }

    pub(super) fn read(
        &self,
        id: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let Some(summary) = self.summary.as_deref() else {
            return Ok(None);
        };
        let (head, first) = (self.log.head(), self.log.first());
        let mut page = Page::new(summary.clone(), head);
        if let Some(from) = request.from {
            let snapshot = |at| self.log.snapshot(at);
            let begin = rules::first_entry(id, from, first, head, snapshot)?;
            (page.entries, page.next) = self.log.page(begin, request.limit);
        }
        if let Some(after) = request.messages_after {
            let read = usize::try_from(after.0).unwrap_or(usize::MAX);
            let messages = (1..).map(InboxSeq).zip(&self.messages).skip(read);
            page.messages =
                messages.map(|(seq, message)| StoredMessage::new(seq, message.clone())).collect();
        }
        page.first = first;
        page.inbox = self.inbox();
        page.interrupts = self.interrupts.values().cloned().collect();
        page.holder = self.holder();
        (page.created, page.updated) = (self.created, self.updated);
        Ok(Some(page))
    }

    pub(super) fn prune(&mut self, below: Seq) {
        self.log.prune(below);
        let first = self.log.first();
        // A batch after the log's first entry can still be sent again.
        self.empty.retain(|empty| empty.after.next() >= first);
    }
}

/// Copies a summary into the allocations of an older one.
fn replace(own: &mut SessionSummary, new: &SessionSummary) {
    let SessionSummary { agent, phase, step, due, inbox } = new;
    if own.agent != *agent {
        own.agent = agent.clone();
    }
    own.step.clone_from(step);
    (own.phase, own.due, own.inbox) = (*phase, *due, *inbox);
}
