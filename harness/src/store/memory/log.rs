//! The entries of one session.

use crate::id::Seq;
use crate::store::{Batch, NewEntry, StoredEntry, Token, rules};

/// The least bytes of a block. Those of a long log are larger.
const SMALL_BLOCK: usize = 2 << 10;
const LARGE_BLOCK: usize = 64 << 10;

/// Entries end to end, so that a small one costs its bytes and a few numbers; in blocks, so that none
/// moves as the log grows.
#[derive(Default)]
pub(super) struct Log {
    /// The bytes of the entries that are kept, but for the last ones. No entry is in two blocks.
    full: Vec<Block>,
    /// The block that entries go into. In place, as is the last writer: where many sessions are at work, each look
    /// elsewhere is a cache miss.
    last: Block,
    /// How many bytes of entries were pruned.
    begins: usize,
    /// Where each kept entry ends.
    ends: Vec<End>,
    /// How many entries were pruned.
    pruned: u64,
    /// Which token wrote from which seq on.
    writers: Vec<(u64, Token)>,
    /// The last one of them.
    writer: Option<Token>,
    /// The seqs of the entries at which a reader can start.
    snapshots: Vec<u64>,
}

struct End {
    /// Pruned bytes included.
    at: usize,
    /// Its batch ends, too.
    of_batch: bool,
}

#[derive(Default)]
struct Block {
    /// Where it begins, pruned bytes included.
    begins: usize,
    /// Never more than it has room for.
    bytes: Vec<u8>,
}

impl Block {
    fn ends(&self) -> usize {
        self.begins + self.bytes.len()
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.capacity() - self.bytes.len() >= bytes
    }
}

impl Log {
    pub(super) fn head(&self) -> Seq {
        Seq(self.pruned + self.ends.len() as u64)
    }

    pub(super) fn first(&self) -> Seq {
        Seq(self.pruned + 1)
    }

    /// Begins an empty log after entries that were pruned.
    pub(super) fn begin_after(&mut self, pruned: Seq) {
        self.pruned = pruned.0;
    }

    pub(super) fn push(&mut self, token: Token, entries: &[NewEntry<'_>]) {
        if entries.is_empty() {
            return;
        }
        let mut seq = self.head().0;
        if self.writer != Some(token) {
            self.writers.push((seq + 1, token));
            self.writer = Some(token);
        }
        let last = seq + entries.len() as u64;
        for entry in entries {
            seq += 1;
            let block = self.block_for(entry.bytes.len());
            block.bytes.extend_from_slice(entry.bytes);
            let at = block.ends();
            self.ends.push(End { at, of_batch: seq == last });
            if entry.snapshot {
                self.snapshots.push(seq);
            }
        }
    }

    /// The block that the next entry goes into.
    fn block_for(&mut self, bytes: usize) -> &mut Block {
        if !self.last.has_room(bytes) {
            let begins = self.ends.last().map_or(self.begins, |end| end.at);
            let room = ((self.full.len() + 1) * SMALL_BLOCK / 4).clamp(SMALL_BLOCK, LARGE_BLOCK);
            let next = Block { begins, bytes: Vec::with_capacity(room.max(bytes)) };
            let full = std::mem::replace(&mut self.last, next);
            if !full.bytes.is_empty() {
                self.full.push(full);
            }
        }
        &mut self.last
    }

    /// Whether the log has this batch, written under this token.
    pub(super) fn has(&self, token: Token, batch: &Batch<'_>) -> bool {
        let Batch { after, entries, .. } = *batch;
        let Some(last) = after.0.checked_add(entries.len() as u64) else {
            return false;
        };
        if entries.is_empty() || last > self.head().0 {
            return false;
        }
        let begins = after.0 == 0 || self.is_end(after.0) || after.0 == self.pruned;
        let writer = self.writers.partition_point(|(from, _)| *from <= after.0 + 1);
        let is_one_batch = after.0 >= self.pruned
            && begins
            && self.is_end(last)
            && !(after.0 + 1..last).any(|seq| self.is_end(seq));
        let is_its = writer
            .checked_sub(1)
            .and_then(|at| self.writers.get(at))
            .is_some_and(|(_, by)| *by == token);
        if !is_one_batch || !is_its {
            return false;
        }
        let stored: Vec<NewEntry<'_>> = (after.0 + 1..=last)
            .filter_map(|seq| {
                let snapshot = self.snapshots.binary_search(&seq).is_ok();
                Some(NewEntry { bytes: self.entry(seq)?, snapshot })
            })
            .collect();
        rules::is_repetition(batch, &Batch { after, entries: &stored, ..Batch::default() })
    }

    fn place(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.pruned + 1)?).ok()
    }

    /// Whether a batch ends with this entry.
    fn is_end(&self, seq: u64) -> bool {
        self.place(seq).and_then(|at| self.ends.get(at)).is_some_and(|end| end.of_batch)
    }

    fn entry(&self, seq: u64) -> Option<&[u8]> {
        let at = self.place(seq)?;
        let begin = match at.checked_sub(1) {
            Some(before) => self.ends.get(before)?.at,
            None => self.begins,
        };
        let end = self.ends.get(at)?.at;
        if begin == end {
            return Some(&[]);
        }
        let block = if begin >= self.last.begins {
            &self.last
        } else {
            let after = self.full.partition_point(|block| block.begins <= begin);
            self.full.get(after.checked_sub(1)?)?
        };
        block.bytes.get(begin - block.begins..end - block.begins)
    }

    /// The last snapshot at or below a seq.
    pub(super) fn snapshot(&self, at: Seq) -> Option<Seq> {
        let after = self.snapshots.partition_point(|seq| *seq <= at.0);
        self.snapshots.get(after.checked_sub(1)?).copied().map(Seq)
    }

    /// Entries from `from` on to the end of a batch: at least one batch, then as many as fit into
    /// `limit` bytes; and the start of the next page.
    pub(super) fn page(&self, from: Seq, limit: u64) -> (Vec<StoredEntry>, Option<Seq>) {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut seq = from.0.max(self.pruned + 1);
        let head = self.head().0;
        while let Some(end) = (seq..=head).find(|seq| self.is_end(*seq)) {
            let found = || (seq..=end).filter_map(|seq| Some((seq, self.entry(seq)?)));
            let size: usize = found().map(|(_, entry)| entry.len()).sum();
            bytes += size as u64;
            if !entries.is_empty() && bytes > limit {
                return (entries, Some(Seq(seq)));
            }
            entries.extend(found().map(|(seq, entry)| StoredEntry::new(Seq(seq), entry)));
            seq = end + 1;
        }
        (entries, None)
    }

    /// Removes the entries below a seq, as far as the last snapshot.
    pub(super) fn prune(&mut self, below: Seq) {
        let snapshot = self.snapshots.last().copied().map(Seq);
        let Some(Seq(first)) = rules::first_kept(below, self.first(), snapshot) else {
            return;
        };
        let count = first - self.first().0;
        let Ok(count) = usize::try_from(count) else {
            return;
        };
        let cut = count.checked_sub(1).and_then(|at| self.ends.get(at));
        self.begins = cut.map_or(self.begins, |cut| cut.at);
        self.ends.drain(..count);
        // A block goes with its last entry.
        let begins = self.begins;
        self.full.retain(|block| block.ends() > begins);
        self.pruned = first - 1;
        self.snapshots.retain(|seq| *seq >= first);
        // The writer of the first entry that is kept began at or before it.
        let writers = self.writers.partition_point(|(from, _)| *from <= first);
        self.writers.drain(..writers.saturating_sub(1));
    }
}
