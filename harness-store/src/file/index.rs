//! The fold of a log: its records are applied in the order of the file.
//!
//! That order alone decides what holds. Of two claims with one fence the first wins; a batch is
//! void unless its fence is that of the last claim before it and it continues the head; messages are
//! void unless all their keys were free and their interrupts open. So every reader comes to the same
//! result, whatever process wrote the records and whenever it reads them.

mod line;
mod start;

use std::collections::{BTreeMap, HashMap};

use harness::id::Fence;
use harness::store::{
    InboxSeq, Message, OpenInterrupt, Sent, SessionSummary, StoredMessage, Token, rules,
};
use harness::{InterruptId, Seq, UtcMillis};
use serde::{Deserialize, Serialize};

use super::record::{self, BatchRecord, ClaimRecord, Header, Origin, Record};
use super::start::Start;
use line::{Line, next_line};

/// Where a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchRef {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) fence: u64,
    pub(crate) after: u64,
    pub(crate) count: u32,
}

/// Why the log cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It is not what was written.
    Damaged(String),
    /// It was written by a newer version.
    Newer(u32),
    /// It holds another session, whose id has the same hash.
    Other,
}

/// A place in a log that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) epoch: String,
    #[serde(default)]
    pub(crate) rewritten: u64,
    pub(crate) offset: u64,
    /// The checksum of all bytes before it.
    pub(crate) sum: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// How far the file was read: the end of its last whole record.
    pub(crate) end: u64,
    /// The checksum of all up to there.
    pub(crate) sum: crc32fast::Hasher,
    pub(crate) header: Option<Header>,
    pub(crate) claim: Option<ClaimRecord>,
    pub(crate) first: u64,
    pub(crate) head: u64,
    pub(crate) created: Option<UtcMillis>,
    pub(crate) updated: UtcMillis,
    pub(crate) summary: Option<SessionSummary>,
    pub(crate) interrupts: BTreeMap<InterruptId, OpenInterrupt>,
    pub(crate) batches: Vec<BatchRef>,
    pub(crate) snapshots: Vec<u64>,
    pub(crate) messages: Vec<StoredMessage>,
    pub(super) keys: HashMap<String, usize>,
    /// The last message that a holder had read when it released the session.
    pub(crate) read: u64,
    /// The session was removed, and none made in its place since.
    pub(crate) removed: bool,
    /// The file in which the log continues.
    pub(crate) moved: Option<String>,
    /// Bytes of torn records between whole ones.
    pub(crate) torn: u64,
    /// What is known of a part that is missing since the last claim.
    pub(super) gap: Gap,
    /// The fences and tokens of all claims.
    pub(crate) claims: Vec<(u64, Token)>,
    /// The name of the file was durable when some batch was written to it. One that a rewritten log
    /// has taken over says so of the file before.
    pub(crate) named: bool,
    /// Part of what was written is missing, so that batches after it have lost their beginning.
    pub(super) lossy: bool,
    /// Where the next reader may start.
    pub(crate) start: Option<Start>,
    /// The head up to which the entries were left out, as this was started from a snapshot. What is
    /// said of batches, snapshots and claims then lacks what came before.
    pub(crate) base: Option<u64>,
    /// The place of a store that came here as a copy. A copy of a log in which the store before was
    /// to continue it may be incomplete, so that only those that were made here count.
    pub(crate) place: Option<String>,
    /// What the log must have been at some place.
    pub(crate) expected: Option<Mark>,
}

impl Index {
    /// Whether there is a session that can be claimed, written or not.
    pub(crate) fn begun(&self) -> bool {
        self.header.is_some() && !self.removed
    }

    /// Whether there is a session that can be read.
    pub(crate) fn exists(&self) -> bool {
        self.begun() && self.summary.is_some() && self.created.is_some()
    }

    pub(crate) fn fence(&self) -> u64 {
        self.claim.as_ref().map_or(0, |claim| claim.fence)
    }

    pub(crate) fn inbox(&self) -> InboxSeq {
        InboxSeq(self.messages.len() as u64)
    }

    /// From when on the session is due, if its lease is free.
    pub(crate) fn due_from(&self) -> Option<UtcMillis> {
        let summary = self.summary.as_ref().filter(|_| self.exists())?;
        rules::due_from(summary, InboxSeq(self.read), self.inbox())
    }

    pub(crate) fn epoch(&self) -> (&str, u64) {
        self.header.as_ref().map_or(("", 0), |header| (&header.epoch, header.rewritten))
    }

    /// Reads what follows [`Index::end`] in the file. An incomplete record at its end stays unread,
    /// and so does everything after a record that names the file in which the log continues. Returns how many bytes are
    /// left unread.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Flaw> {
        let mut place = 0;
        while place < bytes.len() && self.moved.is_none() {
            let Some((used, line)) = next_line(&bytes[place..])? else { break };
            let whole = &bytes[place..place + used];
            place += used;
            match line {
                Line::Sound(line) => {
                    let record = record::parse(line).ok_or_else(|| {
                        Flaw::Damaged(format!("no known record at byte {}", self.end))
                    })?;
                    self.take(record, whole)?;
                }
                Line::Torn => {
                    self.set_aside(whole);
                    self.compare()?;
                }
                Line::Gap => {
                    self.set_aside(whole);
                    self.end_gap()?;
                }
            }
        }
        Ok(bytes.len() - place)
    }

    /// Takes a record that follows [`Index::end`] in the file, and which these bytes hold.
    pub(crate) fn take(&mut self, record: Record<'_>, bytes: &[u8]) -> Result<(), Flaw> {
        let (start, sum) = (self.end, self.sum.clone());
        self.pass(bytes);
        let mut here = None;
        if record.has_snapshot() && self.gap == Gap::None && !self.lossy {
            here = self.start_before(sum, start, bytes);
        }
        self.apply(record, start, bytes.len())?;
        if here.is_some() && self.batches.last().is_some_and(|it| it.offset == start) {
            self.start = here;
        }
        self.compare()
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.end += bytes.len() as u64;
    }

    /// Passes bytes that are no record.
    pub(crate) fn set_aside(&mut self, bytes: &[u8]) {
        self.pass(bytes);
        self.torn += bytes.len() as u64;
    }

    /// What was set aside last was written and never reached the disk.
    pub(crate) fn end_gap(&mut self) -> Result<(), Flaw> {
        self.gap = Gap::Open;
        self.lossy = true;
        self.compare()
    }

    /// Whether the log is still what it was when it was known to be whole.
    fn compare(&mut self) -> Result<(), Flaw> {
        let Some(mark) = &self.expected else { return Ok(()) };
        if self.epoch() != (&*mark.epoch, mark.rewritten) {
            return Ok(());
        }
        if self.end == mark.offset && self.sum.clone().finalize() == mark.sum {
            self.expected = None;
        } else if self.end >= mark.offset {
            return Err(Flaw::Damaged(format!(
                "the first {} bytes of its log are not what was acknowledged",
                mark.offset
            )));
        }
        Ok(())
    }

    /// Whether all of the log was read that was acknowledged.
    pub(crate) fn complete(&self) -> Result<(), Flaw> {
        match &self.expected {
            // A mark that belongs to an earlier life says nothing of this one.
            Some(mark)
                if self.header.is_none() || self.epoch() == (&*mark.epoch, mark.rewritten) =>
            {
                Err(Flaw::Damaged(format!(
                    "{} bytes of its log were acknowledged, and {} are there",
                    mark.offset, self.end
                )))
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, record: Record<'_>, start: u64, len: usize) -> Result<(), Flaw> {
        if let Record::Header(version, header) = record {
            return match header {
                None => Err(Flaw::Newer(version)),
                Some(header) if !self.begun() => {
                    *self = Self {
                        end: self.end,
                        sum: self.sum.clone(),
                        expected: self.expected.take(),
                        place: self.place.take(),
                        header: Some(header),
                        first: 1,
                        ..Self::default()
                    };
                    Ok(())
                }
                Some(_) => Ok(()),
            };
        }
        // Written by a process that had not seen the removal of the session.
        if !self.begun() {
            return match self.header {
                None if self.end == len as u64 => {
                    Err(Flaw::Damaged("its log has no beginning".into()))
                }
                _ => Ok(()),
            };
        }
        match record {
            Record::Header(..) => {}
            Record::Claim(claim) => {
                let last = self.claim.as_ref().map(|last| Fence(last.fence));
                if rules::claim_wins(Fence(claim.fence), last) {
                    self.claims.push((claim.fence, claim.token));
                    if claim.owner == 0 {
                        self.read = self.read.max(claim.until);
                    }
                    self.claim = Some(claim);
                    self.gap = Gap::None;
                }
            }
            Record::Batch(batch) => self.batch(&batch, start, len)?,
            Record::Messages { at, messages, kept } => {
                // As a whole or not at all, in the order of the log.
                let new = self.judge(&messages, UtcMillis(at));
                if kept || new.is_ok_and(|new| !new.is_empty()) {
                    self.send(messages);
                }
            }
            Record::Origin(origin) => self.origin(*origin),
            Record::Removed { fence } if fence == self.fence() => self.removed = true,
            // The copy holds all before this record only if nothing has come between.
            Record::Moved { offset, name } if offset == start && self.is_made_here(&name) => {
                self.moved = Some(name);
            }
            Record::Removed { .. } | Record::Moved { .. } => {}
        }
        Ok(())
    }

    fn is_made_here(&self, copy: &str) -> bool {
        self.place.as_ref().is_none_or(|place| copy.contains(&**place))
    }

    fn origin(&mut self, origin: Origin) {
        self.first = origin.first;
        self.head = origin.first.saturating_sub(1);
        self.created = Some(origin.created);
        self.updated = origin.updated;
        self.summary = Some(origin.summary);
        self.interrupts = origin
            .interrupts
            .into_iter()
            .map(|interrupt| (interrupt.id.clone(), interrupt))
            .collect();
    }

    fn batch(&mut self, batch: &BatchRecord<'_>, start: u64, len: usize) -> Result<(), Flaw> {
        if batch.fence < self.fence() || batch.after < self.head {
            return Ok(());
        }
        match self.gap {
            // The batch before this one is after the gap, and both were durable when this one
            // was written. One batch alone does not say so: messages, which nothing counts, may have
            // come just before it.
            Gap::Witnessed if batch.synced => {
                return Err(Flaw::Damaged(format!(
                    "what was durable before byte {start} is missing"
                )));
            }
            Gap::Open => self.gap = Gap::Witnessed,
            Gap::None | Gap::Witnessed => {}
        }
        if batch.fence > self.fence() || batch.after > self.head {
            // Its claim, or the batch before it, never reached the disk and was not
            // acknowledged; unless this record says that both were durable.
            if self.lossy && !batch.synced {
                self.torn += len as u64;
                return Ok(());
            }
            return Err(Flaw::Damaged(format!("a record is missing before byte {start}")));
        }
        if batch.synced {
            self.lossy = false;
            self.named |= self.epoch().1 == 0;
        }
        let count = batch.meta.as_ref().map_or(1, |meta| meta.lengths.len());
        self.batches.push(BatchRef {
            offset: start,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            fence: batch.fence,
            after: batch.after,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        });
        let base = self.header.as_ref().map_or(0, |header| header.at);
        self.updated = UtcMillis(base.saturating_add_signed(batch.at));
        self.created.get_or_insert(self.updated);
        if let Some(meta) = &batch.meta {
            for (place, length) in (self.head + 1..).zip(&meta.lengths) {
                if *length < 0 {
                    self.snapshots.push(place);
                }
            }
            if let Some(summary) = &meta.summary {
                self.summary = Some(summary.clone());
            }
            for interrupt in &meta.open {
                self.interrupts.insert(interrupt.id.clone(), interrupt.clone());
            }
            for id in &meta.close {
                self.interrupts.remove(id);
            }
        }
        self.head += count as u64;
        Ok(())
    }

    pub(crate) fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            if !self.keys.contains_key(&message.key) {
                self.keys.insert(message.key.clone(), self.messages.len());
                let seq = InboxSeq(self.messages.len() as u64 + 1);
                self.messages.push(StoredMessage::new(seq, message));
            }
        }
    }

    /// The messages that a send adds now, or its answer.
    pub(crate) fn judge<'a>(
        &'a self,
        messages: &'a [Message],
        now: UtcMillis,
    ) -> Result<Vec<&'a Message>, Sent> {
        let stored = |key: &str| self.keys.get(key).map(|at| &self.messages[*at].message);
        rules::judge_messages(messages, stored, |id| self.interrupts.get(id), now)
    }

    /// The last snapshot at or below a seq.
    pub(crate) fn snapshot_below(&self, seq: Seq) -> Option<Seq> {
        let snapshot = self.snapshots.iter().rev().find(|at| **at <= seq.0 && **at >= self.first);
        snapshot.copied().map(Seq)
    }
}

/// Whether something was written since the last claim that is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gap {
    #[default]
    None,
    Open,
    /// And the holder wrote a batch behind it.
    Witnessed,
}
