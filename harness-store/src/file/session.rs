//! One session as an open store knows it: its file, and the fold of what it has read of it.

mod ahead;
mod catch_up;
mod start;
mod write;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::store::StoreError;
use harness::{Seq, SessionId};

use super::checkpoint::Checkpoint;
use super::disk::{Disk, DiskFile, Mode};
use super::error::{failed, flawed};
use super::index::{Flaw, Index};
use super::paths::Paths;
use super::place::Place;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) paths: Paths,
    place: Arc<Place>,
    pub(crate) state: Mutex<State>,
    /// Held while its file is synced: a call that waits for it then finds its own records synced.
    pub(crate) gate: Mutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    pub(crate) index: Index,
    /// How long the file was when it was last looked at.
    pub(crate) len: u64,
    /// A sync has failed: the contents of the file are unknown until it is read again.
    pub(crate) failed: bool,
    /// How much of the file is durable.
    pub(crate) synced: u64,
    /// Whether the name of the file is.
    pub(crate) named: bool,
    /// The start that was last recorded for the next reader.
    pub(crate) noted: u64,
    /// Until when the last lease that was claimed here is held, 0 if it was released here; `None` if
    /// this is not known, as the session was not claimed here since it was read.
    pub(crate) until: Option<u64>,
    /// A copy of the log may be left that the log can only continue in while its holder is this one.
    pub(crate) unswept: bool,
    /// What stands beside the log of a copied store and says more than the log holds.
    ahead: Option<Box<Checkpoint>>,
    /// The file could only be opened to be read.
    pub(crate) read_only: bool,
}

impl State {
    /// Forgets everything that was read.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The log is read and sound. A checkpoint is written after the sync of what it is about, and
    /// of its name; the name of a log that was rewritten since comes from a rename, which may not be
    /// durable.
    fn opened(&mut self, file: Option<Arc<dyn DiskFile>>, checkpoint: Option<&Checkpoint>) {
        self.index.expected = None;
        let header = self.index.header.as_ref();
        let same = |of: &Checkpoint| header.is_some_and(|header| of.mark.is_in(header));
        self.named = self.index.named || checkpoint.is_some_and(|of| of.durable && same(of));
        self.file = file;
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, paths: Paths, place: Arc<Place>) -> Self {
        Self { id, paths, place, state: Mutex::default(), gate: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A state that a panic has left half changed is read again at the next change of the file.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            state.forget();
            self.state.clear_poison();
            state
        })
    }

    /// Whether it is read and sound, and not locked by another call.
    pub(crate) fn is_open(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.file.is_some() && !state.failed)
    }

    /// Whether it must not be forgotten: it is in use, or a sync has failed, which would be
    /// forgotten with it.
    pub(crate) fn must_stay(&self) -> bool {
        self.state.try_lock().map_or(true, |state| state.failed)
    }

    pub(crate) fn gone(&self) -> StoreError {
        StoreError::Gone { session: self.id.clone() }
    }

    pub(crate) fn fenced(&self) -> StoreError {
        StoreError::Fenced { session: self.id.clone() }
    }

    pub(crate) fn flawed(&self, index: &Index, flaw: Flaw) -> StoreError {
        flawed(&self.id, index.head, flaw)
    }

    /// Reads what others have written since.
    pub(crate) fn refresh(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        if state.read_only && disk.open(&self.paths.log, Mode::Append).is_ok() {
            state.forget();
        }
        for _ in 0..100 {
            let Some(file) = state.file.clone() else {
                if self.open(disk, state)? {
                    continue;
                }
                return Ok(());
            };
            let stat = file.stat().map_err(|error| self.failed("look at", error))?;
            if stat.links == 0 {
                state.forget();
                continue;
            }
            if stat.len < state.index.end {
                return self.reread(disk, state);
            }
            if stat.len != state.len {
                if let Err(flaw) = self.catch_up(&*file, state, stat.len)? {
                    let error = self.flawed(&state.index, flaw);
                    state.forget();
                    return Err(error);
                }
                state.len = stat.len;
            }
            let Some(name) = state.index.moved.take() else { return Ok(()) };
            state.forget();
            self.follow(disk, &name)?;
        }
        Err(StoreError::Unavailable {
            what: format!(
                "the log of session `{:#}` changes faster than it can be read (try again)",
                self.id
            ),
            ambiguous: false,
            source: None,
        })
    }

    /// Reads a log again that has become shorter, which is never the case without damage.
    fn reread(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        let (epoch, rewritten) = state.index.epoch();
        let (epoch, acknowledged) = ((epoch.to_owned(), rewritten), state.index.head);
        state.forget();
        self.open(disk, state)?;
        let (now, rewritten) = state.index.epoch();
        if (now, rewritten) == (&*epoch.0, epoch.1) && state.index.head < acknowledged {
            let head = Seq(state.index.head);
            let acknowledged = Seq(acknowledged);
            return Err(StoreError::LostWrites { session: self.id.clone(), acknowledged, head });
        }
        Ok(())
    }

    fn checkpoint(&self, disk: &dyn Disk) -> Result<Option<Checkpoint>, StoreError> {
        Checkpoint::read(disk, &self.paths)
            .map_err(|error| failed("read", &self.paths.checkpoint, error))
    }

    /// Opens the log and reads it, if it can from its last snapshot on; `false` if there is none.
    fn open(&self, disk: &dyn Disk, state: &mut State) -> Result<bool, StoreError> {
        for attempt in 0.. {
            let mut read_only = false;
            let file = match disk.open(&self.paths.log, Mode::Append) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                // What cannot be written can still be read.
                Err(error) if is_read_only(&error) => {
                    read_only = true;
                    let file = disk.open(&self.paths.log, Mode::Read);
                    Some(file.map_err(|error| self.failed("open", error))?)
                }
                Err(error) => return Err(self.failed("open", error)),
            };
            // Before the log is read, which may grow meanwhile.
            let noted = self.checkpoint(disk)?;
            state.forget();
            let expected = noted.as_ref().map(|noted| &noted.mark);
            let mut started = file.as_ref().and_then(|file| self.start(disk, &**file, expected));
            let flaw = loop {
                let partial = started.is_some();
                state.index = started
                    .take()
                    .unwrap_or_else(|| Index { expected: expected.cloned(), ..self.index() });
                let (mut flaw, mut ahead) = (Ok(()), None);
                if let Some(file) = &file {
                    let len = file.stat().map_err(|error| self.failed("look at", error))?.len;
                    flaw = self.catch_up(&**file, state, len)?;
                    state.len = len;
                }
                if flaw.is_ok() && state.index.moved.is_none() {
                    flaw = state.index.complete();
                    ahead = noted.as_ref().filter(|noted| flaw.is_err() && self.is_foreign(noted));
                }
                // Reading all of it reports what is wrong.
                if flaw.is_ok() || !partial {
                    break if ahead.is_some() { Ok(ahead) } else { flaw.map(|()| None) };
                }
            };
            let flaw = match flaw {
                Ok(ahead) => {
                    state.read_only = read_only;
                    state.opened(file, noted.as_ref());
                    if let Some(ahead) = ahead {
                        self.report_ahead(state, ahead);
                    }
                    return Ok(state.file.is_some());
                }
                Err(flaw) => flaw,
            };
            // Another process may have created, removed or rewritten it in between.
            let now = self.checkpoint(disk)?;
            let missing = file.is_none() && !disk.exists(&self.paths.log);
            if (now == noted && (file.is_some() || missing)) || attempt == 3 {
                let error = self.flawed(&state.index, flaw);
                state.forget();
                return Err(error);
            }
        }
        Ok(false)
    }

    /// Renames the file in which the log continues to the name of the log, unless that was done.
    fn follow(&self, disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
        let next = self.paths.shard.join(Path::new(name).file_name().unwrap_or_default());
        match disk.rename(&next, &self.paths.log) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("rename", error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn failed(&self, what: &str, error: io::Error) -> StoreError {
        failed(what, &self.paths.log, error)
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
