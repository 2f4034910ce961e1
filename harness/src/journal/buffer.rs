//! Entries on their way into the store, and the state they come to.

use serde_json::Value;

use crate::id::InterruptId;
use crate::session::{Change, Entry, Snapshot, fold_change, open_in_store};
use crate::store::InboxSeq;

use super::pending::{Notice, Pending};
use super::{Broken, json_size, room};

/// A snapshot is worth its bytes once this much, and four times its own size, was written since the
/// last one.
const SNAPSHOT_BYTES: u64 = 64 * 1024;

/// What waits to be appended, and the JSON of the state that everything before comes to.
pub(super) struct Buffer {
    /// `None` if nothing waits.
    pub(super) pending: Option<Box<Pending>>,
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

impl Buffer {
    pub(super) fn new(state: Value, inbox: InboxSeq, since: u64) -> Self {
        Self {
            pending: None,
            state,
            inbox,
            flushed: true,
            since,
            measure_at: SNAPSHOT_BYTES,
            broken: None,
        }
    }

    /// What waits, and what comes to it.
    pub(super) fn pending(&mut self) -> &mut Pending {
        self.pending.get_or_insert_with(room::take)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.is_empty())
    }

    /// # Errors
    /// Why nothing more can be written.
    pub(super) fn check(&self) -> Result<(), Broken> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Nothing more is written from here on.
    pub(super) fn give_up(&mut self, broken: Broken) -> Broken {
        if let Some(pending) = &mut self.pending {
            pending.notices.clear();
        }
        self.broken.get_or_insert(broken).clone()
    }

    /// Adds an entry and folds it into the state. Notices belong to the last entry.
    pub(super) fn push(
        &mut self,
        mut entry: Entry,
        closed: Vec<InterruptId>,
    ) -> Result<(), Broken> {
        self.check()?;
        let pending = self.pending();
        let from = pending.bytes.len();
        if let Err(error) = entry.encode(&mut pending.bytes) {
            return Err(self.give_up(Broken::unsound(error)));
        }
        if let Change::Asked(asked) = &entry.change {
            pending.open.extend(asked.interrupts.iter().map(open_in_store));
        }
        pending.close.extend(closed);
        pending.at = entry.at;
        let bytes = pending.pushed(from, false);
        self.since += bytes;
        if let Err(error) = fold_change(&mut self.state, &mut entry.change) {
            return Err(self.give_up(Broken::unsound(error)));
        }
        Ok(())
    }

    /// Adds a snapshot. Says whether it was small enough to be added.
    pub(super) fn push_snapshot(&mut self, snapshot: Snapshot) -> Result<bool, Broken> {
        self.check()?;
        let entry = Entry::now(Change::Snapshot(Box::new(snapshot)));
        let pending = self.pending();
        let from = pending.bytes.len();
        if entry.encode(&mut pending.bytes).is_err() {
            // A session too large for one entry has no snapshots: its log is complete without.
            self.measure_at = u64::MAX;
            return Ok(false);
        }
        pending.at = entry.at;
        pending.pushed(from, true);
        self.since = 0;
        self.measure_at = SNAPSHOT_BYTES;
        Ok(true)
    }

    /// `make` takes the size of the last entry in bytes.
    pub(super) fn notify(&mut self, make: impl FnOnce(u64) -> Notice) {
        let pending = self.pending();
        let ends = &pending.ends;
        let end = |back: usize| ends.len().checked_sub(back).map_or(0, |at| ends[at].0);
        let notice = make((end(1) - end(2)) as u64);
        pending.notices.push((ends.len() as u64, notice));
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
