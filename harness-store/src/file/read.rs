//! Reading pages of a session.

use harness::store::{From, Mail, Page, StoreError, StoredEntry};
use harness::{Seq, SessionId};

use super::index::{BatchRef, Flaw, Index};
use super::record;
use super::session::{Session, State};
use super::store::Inner;

/// Whether a page begins before the snapshot that the index was started from.
fn is_older(index: &Index, from: From) -> bool {
    let Some(base) = index.base else { return false };
    match from {
        From::Seq(seq) => seq.0 <= base && seq.0.max(1) >= index.first,
        From::Snapshot => false,
        From::SnapshotBelow(seq) => {
            seq.0 >= index.first && index.snapshots.iter().all(|at| *at > seq.0)
        }
    }
}

impl Inner {
    pub(crate) fn read(
        &self,
        id: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        let session = self.session(id);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        if is_older(&state.index, from) {
            session.read_all(&*self.disk, &mut state)?;
        }
        let index = &state.index;
        let (true, Some(facts), Some(created)) = (index.exists(), &index.facts, index.created)
        else {
            return Ok(None);
        };
        let start = match from {
            From::Seq(seq) => seq.0.max(1),
            From::Snapshot => index.snapshot_below(u64::MAX).0,
            From::SnapshotBelow(seq) if seq.0 < index.first => seq.0.max(1),
            From::SnapshotBelow(seq) => index.snapshot_below(seq.0).0,
        };
        if start < index.first {
            return Err(StoreError::Pruned { session: id.clone(), first: Seq(index.first) });
        }
        let (entries, next) = self.entries(&session, &state, start, limit)?;
        let holder = self.holder(&session, &state)?;
        let known = usize::try_from(mail.0).unwrap_or(usize::MAX).min(index.letters.len());
        let page = Page {
            entries,
            next,
            first: Seq(index.first),
            head: Seq(index.head),
            letters: index.letters[known..].to_vec(),
            mail: index.mail(),
            facts: facts.clone(),
            questions: index.questions.values().cloned().collect(),
            holder,
            created,
            updated: index.updated,
            set_aside: index.torn,
        };
        state.just_read = None;
        Ok(Some(page))
    }

    /// Entries from a seq on, and where to go on.
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
                .map(|(seq, (bytes, _))| StoredEntry { seq: Seq(seq), bytes })
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

    /// The entries of a batch, as they are in the file now, or were when it was opened just now.
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
        let begin = usize::try_from(batch.offset).unwrap_or(usize::MAX);
        let read = begin..begin.saturating_add(batch.len as usize);
        if let Some(bytes) = state.just_read.as_deref().and_then(|bytes| bytes.get(read)) {
            return Ok(bytes.to_vec());
        }
        let mut bytes = vec![0; batch.len as usize];
        let read = file
            .read_at(&mut bytes, batch.offset)
            .map_err(|error| session.failed("read", error))?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
