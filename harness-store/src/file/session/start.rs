//! Reading a long log from its last snapshot on, or all of it.

use harness::store::StoreError;

use super::{Session, State};
use crate::file::disk::{Disk, DiskFile};
use crate::file::index::{Index, Mark};
use crate::file::lease::read_small;
use crate::file::start::Start;

impl Session {
    /// The beginning of an index that leaves out what is before the last snapshot. `None` if there
    /// is nothing to start from that can be believed.
    pub(crate) fn start(
        &self,
        disk: &dyn Disk,
        file: &dyn DiskFile,
        expected: Option<&Mark>,
    ) -> Option<Index> {
        // Whatever is wrong with it, the log itself is there to be read.
        let start: Start = read_small(disk, &self.paths.start).ok()??;
        let mut index = Index::started(&start, file).ok()??;
        if index.header.as_ref().is_none_or(|header| header.id != self.id) {
            return None;
        }
        index.place = self.index().place;
        // A checkpoint before the snapshot is checked by calls that read there.
        index.expected = expected.filter(|mark| mark.offset > start.offset).cloned();
        Some(index)
    }

    /// Reads what is before the snapshot that the reader has started from, which must lead to where
    /// it is.
    pub(crate) fn read_all(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        // A reader that follows a log into another file may have started in the middle of that.
        while state.index.base.is_some() {
            self.read_before(disk, state)?;
        }
        Ok(())
    }

    fn read_before(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        let Some(file) = state.file.clone() else { return Err(self.gone()) };
        let known = &state.index;
        let mut whole = State { index: self.index(), ..State::default() };
        whole.index.expected = Some(Mark {
            epoch: known.epoch().0.to_owned(),
            rewritten: known.epoch().1,
            offset: known.end,
            sum: known.sum.clone().finalize(),
        });
        let len = file.stat().map_err(|error| self.failed("look at", error))?.len;
        let mut done = self.catch_up(&*file, &mut whole, len)?;
        if done.is_ok() {
            done = whole.index.complete();
        }
        done.map_err(|flaw| self.flawed(&whole.index, flaw))?;
        state.index = whole.index;
        state.index.expected = None;
        state.len = len;
        // Nothing may be written after a record that continues the log in another file.
        if state.index.moved.is_some() { self.refresh(disk, state) } else { Ok(()) }
    }
}
