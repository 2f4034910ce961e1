//! Entries on their way into the store, and the state they come to.

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq};
use crate::session::{Change, Entry, Snapshot, fold_change, open_in_store};
use crate::store::{InboxSeq, NewEntry, OpenInterrupt, SessionSummary};

use super::{Broken, json_size};

/// A snapshot is worth its bytes once this much, and four times its own size, was written since the
/// last one.
const SNAPSHOT_BYTES: u64 = 64 * 1024;

/// The bytes of the first entries of a session, as a rule.
const ROOM: usize = 1024;

/// Runs once an entry is in the store, as durable as it must be. Takes the entry's seq.
pub(crate) type Notice = Box<dyn FnOnce(Seq) + Send>;

/// What waits to be appended, and the JSON of the state that everything before comes to.
pub(super) struct Buffer {
    pub(super) pending: Box<Pending>,
    /// The JSON projection of the state, pending entries included.
    pub(super) state: Value,
    /// The inbox messages that were read or passed over.
    pub(super) inbox: InboxSeq,
    /// Everything in the store is durable.
    pub(super) flushed: bool,
    /// Bytes since the last snapshot.
    since: u64,
    /// At how many bytes the size of a snapshot is measured again.
    measure_at: u64,
    broken: Option<Broken>,
}

/// Entries to append in one batch, and what goes with them.
#[derive(Default)]
pub(super) struct Pending {
    /// The entries, one behind the other.
    bytes: Vec<u8>,
    /// Where each of them ends, and whether it is a snapshot.
    ends: Vec<(usize, bool)>,
    /// When the last of them was made.
    pub(super) at: UtcMillis,
    pub(super) open: Vec<OpenInterrupt>,
    pub(super) close: Vec<InterruptId>,
    pub(super) summary: Option<SessionSummary>,
    /// What to run after the append, each with the number of its entry in the batch, from 1.
    pub(super) notices: Vec<(u64, Notice)>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.summary.is_none()
    }

    /// Whether it has one entry, so that its time begins.
    pub(super) fn has_one_entry(&self) -> bool {
        self.ends.len() == 1
    }

    /// The bytes of its entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The entry, if there is only one.
    pub(super) fn only_entry(&self) -> Option<NewEntry<'_>> {
        match self.ends[..] {
            [(_, snapshot)] => Some(NewEntry { bytes: &self.bytes, snapshot }),
            _ => None,
        }
    }

    /// The entries as a store takes them.
    pub(super) fn entries(&self) -> Vec<NewEntry<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (end, snapshot))| NewEntry {
                bytes: &self.bytes[start..*end],
                snapshot: *snapshot,
            })
            .collect()
    }

    /// Opens interrupts, also those that an entry of the same batch has closed.
    pub(super) fn reopen(&mut self, open: impl Iterator<Item = OpenInterrupt>) {
        let before = self.open.len();
        self.open.extend(open);
        let again = &self.open[before..];
        self.close.retain(|id| !again.iter().any(|open| open.id == *id));
    }

    /// Empties it, keeping its room.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.open.clear();
        self.close.clear();
        self.summary = None;
        self.notices.clear();
    }
}

impl Buffer {
    pub(super) fn new(state: Value, inbox: InboxSeq, since: u64) -> Self {
        Self {
            pending: Box::default(),
            state,
            inbox,
            flushed: true,
            since,
            measure_at: SNAPSHOT_BYTES,
            broken: None,
        }
    }

    /// # Errors
    /// Why nothing more can be written.
    pub(super) fn check(&self) -> Result<(), Broken> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Nothing more is written from here on.
    pub(super) fn give_up(&mut self, broken: Broken) -> Broken {
        self.pending.notices.clear();
        self.broken.get_or_insert(broken).clone()
    }

    /// Adds an entry and folds it into the state. Notices belong to the last entry.
    pub(super) fn push(
        &mut self,
        mut entry: Entry,
        closed: Vec<InterruptId>,
    ) -> Result<(), Broken> {
        self.check()?;
        let from = self.pending.bytes.len();
        if self.pending.bytes.capacity() == 0 {
            self.pending.bytes.reserve(ROOM);
        }
        if let Err(error) = entry.encode(&mut self.pending.bytes) {
            return Err(self.give_up(Broken::unsound(error)));
        }
        if let Change::Asked(asked) = &entry.change {
            self.pending.open.extend(asked.interrupts.iter().map(open_in_store));
        }
        self.pending.close.extend(closed);
        self.pending.at = entry.at;
        if let Err(error) = fold_change(&mut self.state, &mut entry.change) {
            return Err(self.give_up(Broken::unsound(error)));
        }
        self.pushed(from, false);
        Ok(())
    }

    /// Adds a snapshot. Says whether it was small enough to be added.
    pub(super) fn push_snapshot(&mut self, snapshot: Snapshot) -> Result<bool, Broken> {
        self.check()?;
        let entry = Entry::now(Change::Snapshot(Box::new(snapshot)));
        let from = self.pending.bytes.len();
        if entry.encode(&mut self.pending.bytes).is_err() {
            // A session too large for one entry has no snapshots: its log is complete without.
            self.measure_at = u64::MAX;
            return Ok(false);
        }
        self.pending.at = entry.at;
        self.pushed(from, true);
        self.since = 0;
        self.measure_at = SNAPSHOT_BYTES;
        Ok(true)
    }

    fn pushed(&mut self, from: usize, snapshot: bool) {
        let end = self.pending.bytes.len();
        self.since += (end - from) as u64;
        self.pending.ends.push((end, snapshot));
    }

    /// `make` takes the size of the last entry in bytes.
    pub(super) fn notify(&mut self, make: impl FnOnce(u64) -> Notice) {
        let ends = &self.pending.ends;
        let end = |back: usize| ends.len().checked_sub(back).map_or(0, |at| ends[at].0);
        let notice = make((end(1) - end(2)) as u64);
        self.pending.notices.push((ends.len() as u64, notice));
    }

    /// Whether enough was written for the size of a snapshot to be measured.
    pub(super) fn is_size_due(&self) -> bool {
        self.since >= self.measure_at
    }

    /// Whether enough was written since the last snapshot for another one to be worth its bytes:
    /// 64 KiB and four times its size, `session` being that of all but the state. A state that grows
    /// with what is written never gets one: its log is no longer than itself.
    pub(super) fn is_snapshot_due(&mut self, session: u64) -> bool {
        self.measure_at = SNAPSHOT_BYTES + 4 * (json_size(&self.state) + session);
        self.since >= self.measure_at
    }
}
