//! Reading pages of a session.

use harness::store::{Page, ReadFrom, ReadRequest, StoreError, StoredEntry, rules};
use harness::{Seq, SessionId};

use super::index::{BatchRef, Flaw, Index};
use super::inner::Inner;
use super::record;
use super::session::{Session, State};

/// Whether a page begins before the snapshot that the index was started from.
fn is_older(index: &Index, from: ReadFrom) -> bool {
    let Some(base) = index.base else { return false };
    match from {
        ReadFrom::Seq(seq) => seq.0 <= base && seq.0.max(1) >= index.first,
        ReadFrom::Snapshot => false,
        ReadFrom::SnapshotBelow(seq) => {
            seq.0 >= index.first && index.snapshots.iter().all(|at| *at > seq.0)
        }
    }
}

impl Inner {
    pub(crate) fn read(
        &self,
        id: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let session = self.session(id);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        if request.from.is_some_and(|from| is_older(&state.index, from)) {
            session.read_all(&*self.disk, &mut state)?;
        }
        let index = &state.index;
        let (true, Some(summary), Some(created)) = (index.exists(), &index.summary, index.created)
        else {
            return Ok(None);
        };
        let (first, head) = (Seq(index.first), Seq(index.head));
        let mut page = Page::new(summary.clone(), head);
        if let Some(from) = request.from {
            let start = rules::first_entry(id, from, first, head, |at| index.snapshot_below(at))?;
            (page.entries, page.next) = self.entries(&session, &state, start.0, request.limit)?;
        }
        if let Some(after) = request.messages_after {
            let read = usize::try_from(after.0).unwrap_or(usize::MAX).min(index.messages.len());
            page.messages = index.messages[read..].to_vec();
        }
        page.first = first;
        page.inbox = index.inbox();
        page.interrupts = index.interrupts.values().cloned().collect();
        page.holder = self.holder(&session, &state)?;
        page.created = created;
        page.updated = index.updated;
        page.set_aside = index.torn;
        Ok(Some(page))
    }

    /// Entries from a seq on, and the start of the next page.
    fn entries(
        &self,
        session: &Session,
        state: &State,
        start: u64,
        limit: u64,
    ) -> Result<(Vec<StoredEntry>, Option<Seq>), StoreError> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let begin = state
            .index
            .batches
            .partition_point(|batch| batch.after + u64::from(batch.count) < start);
        for batch in &state.index.batches[begin..] {
            let found = self.batch(session, state, batch)?;
            let seqs = batch.after + 1..;
            let found: Vec<StoredEntry> = seqs
                .zip(found)
                .filter(|(seq, _)| *seq >= start)
                .map(|(seq, (bytes, _))| StoredEntry::new(Seq(seq), bytes))
                .collect();
            if found.is_empty() {
                continue;
            }
            let more: u64 = found.iter().map(|entry| entry.bytes.len() as u64).sum();
            if !entries.is_empty() && bytes + more > limit {
                return Ok((entries, Some(Seq(batch.after + 1))));
            }
            bytes += more;
            entries.extend(found);
        }
        Ok((entries, None))
    }

    /// The entries of a batch, as they are in the file now.
    pub(crate) fn batch(
        &self,
        session: &Session,
        state: &State,
        batch: &BatchRef,
    ) -> Result<Vec<(Vec<u8>, bool)>, StoreError> {
        let bytes = self.bytes(session, state, batch)?;
        let line = record::inner(&bytes);
        let damaged = || {
            super::error::flawed(
                &session.id,
                batch.after,
                Flaw::Damaged("a record no longer matches its checksum".into()),
            )
        };
        if !record::is_sound(line) {
            return Err(damaged());
        }
        record::entries(line).ok_or_else(damaged)
    }

    pub(crate) fn bytes(
        &self,
        session: &Session,
        state: &State,
        batch: &BatchRef,
    ) -> Result<Vec<u8>, StoreError> {
        let Some(file) = &state.file else { return Err(session.gone()) };
        let mut bytes = vec![0; batch.len as usize];
        let read = file
            .read_at(&mut bytes, batch.offset)
            .map_err(|error| session.failed("read", error))?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
