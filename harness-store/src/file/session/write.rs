//! Writing to the log of a session, and finding what was written.

use harness::store::{Lease, StoreError};

use super::{Session, State};
use crate::file::disk::{Disk, Mode};
use crate::file::error::unsure;
use crate::file::record::{self, Prepared, Record};

impl Session {
    /// Writes one record and reads all up to it. Says whether nothing has come between what was
    /// read before and this record; if not, it is for the index to say whether the record holds.
    /// What is known to stand in the line, its `own` record, need not be read from it.
    pub(crate) fn write(
        &self,
        disk: &dyn Disk,
        state: &mut State,
        line: &[u8],
        own: Option<Record<'_>>,
    ) -> Result<bool, StoreError> {
        if state.read_only {
            // Reports why it cannot be written. The next try reads what was written meanwhile.
            disk.open(&self.paths.log, Mode::Append)
                .map_err(|error| self.failed("write to", error))?;
            state.forget();
        }
        self.drop_ahead(disk, state)?;
        let Some(file) = state.file.clone() else { return Err(self.gone()) };
        let written = file.write(line).map_err(|error| self.failed("write to", error))?;
        if written < line.len() {
            // The rest is not appended: another record may have come in between.
            return Err(StoreError::Full(format!(
                "only {written} of {} bytes of a record could be written to `{}` (make room and \
                 try again)",
                line.len(),
                self.paths.log.display()
            )));
        }
        let after = |error| {
            unsure(
                format!("failed to find a written record in `{}`", self.paths.log.display()),
                Some(error),
            )
        };
        let stat = file.stat().map_err(after)?;
        let alone = stat.links > 0
            && state.index.moved.is_none()
            && state.len == state.index.end
            && stat.len == state.len + line.len() as u64;
        if !alone {
            // The record is written, whatever keeps it from being read.
            return match self.refresh(disk, state) {
                Err(StoreError::Unavailable { what, source, .. }) => {
                    Err(StoreError::Unavailable { what, ambiguous: true, source })
                }
                done => done.map(|()| false),
            };
        }
        let read = match own {
            Some(own) => {
                debug_assert_eq!(record::parse(record::inner(line)).as_ref(), Some(&own));
                state.index.take(own, line)
            }
            None => state.index.advance(line).map(drop),
        };
        match read {
            Ok(()) => {
                state.len = stat.len;
                Ok(true)
            }
            Err(flaw) => {
                let error = self.flawed(&state.index, flaw);
                state.forget();
                Err(error)
            }
        }
    }

    /// Whether this lease is that of the last claim, as far as the log says.
    pub(crate) fn holds(&self, state: &State, lease: &Lease) -> Result<(), StoreError> {
        if !state.index.begun() {
            return Err(self.gone());
        }
        match &state.index.claim {
            Some(claim) if claim.fence == lease.fence.0 && claim.token == lease.token => Ok(()),
            _ => Err(self.fenced()),
        }
    }

    /// Whether a batch is in the log already, written under this lease.
    pub(crate) fn find(
        &self,
        state: &State,
        lease: &Lease,
        batch: &Prepared,
    ) -> Result<bool, StoreError> {
        let index = &state.index;
        if index.batches.last().is_none_or(|last| last.after < batch.outline.after.0)
            || !index.claims.contains(&(lease.fence.0, lease.token))
        {
            return Ok(false);
        }
        let Some(file) = &state.file else { return Ok(false) };
        let start = index.batches.partition_point(|known| known.after < batch.outline.after.0);
        let after =
            index.batches[start..].iter().take_while(|known| known.after == batch.outline.after.0);
        let mut own = after.filter(|known| known.fence == lease.fence.0);
        // One without entries does not move the head, so that many may stand at one place and the
        // same one twice: only the last of them may be one that is sent again.
        let found = if batch.outline.entries == 0 {
            own.last().filter(|known| known.count == 0)
        } else {
            own.find(|known| known.count > 0)
        };
        if let Some(known) = found {
            let mut bytes = vec![0; known.len as usize];
            file.read_at(&mut bytes, known.offset).map_err(|error| self.failed("read", error))?;
            return Ok(batch.is(record::inner(&bytes)));
        }
        Ok(false)
    }
}
