//! Checkpoints that say more than their logs hold, as the copy of a store in use has them.

use harness::store::StoreError;

use super::{Session, State};
use crate::file::checkpoint::Checkpoint;
use crate::file::disk::Disk;
use crate::file::error::failed;
use crate::file::index::Index;

impl Session {
    /// The beginning of the fold of its log.
    pub(super) fn index(&self) -> Index {
        let place = self.place.copied.then(|| self.place.name.clone());
        Index { place, ..Index::default() }
    }

    pub(super) fn is_foreign(&self, checkpoint: &Checkpoint) -> bool {
        self.place.is_foreign(checkpoint.place.as_deref())
    }

    pub(super) fn report_ahead(&self, state: &mut State, ahead: &Checkpoint) {
        tracing::warn!(
            session = %self.id,
            entries = ahead.head.saturating_sub(state.index.head),
            bytes = ahead.mark.offset.saturating_sub(state.index.end),
            "the store is a copy that was made while it was in use: the end of a log is not in it"
        );
        state.ahead = Some(Box::new(ahead.clone()));
    }

    /// Deletes a checkpoint that is ahead of its log before the log continues differently.
    pub(super) fn drop_ahead(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        let Some(ahead) = &state.ahead else { return Ok(()) };
        // As a process has it locked that writes the next one.
        let locked = state.file.as_ref().filter(|file| file.try_lock().unwrap_or(false)).cloned();
        let done = match self.checkpoint(disk) {
            Ok(Some(now)) if now == **ahead => disk.unlink(&self.paths.checkpoint),
            _ => Ok(()),
        };
        if let Some(file) = locked {
            file.unlock();
        }
        done.map_err(|error| failed("remove", &self.paths.checkpoint, error))?;
        state.ahead = None;
        Ok(())
    }
}
