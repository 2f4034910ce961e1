//! One session as an open store knows it: its file, and the fold of what it has read of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::store::{Lease, StoreError};
use harness::{Seq, SessionId};

use super::disk::{Disk, DiskFile, Mode};
use super::error::{failed, flawed};
use super::index::{Flaw, Index};
use super::lease::{read_small, small};
use super::record::{self, Prepared, Record};
use super::rest::{Noted, Rest};
use super::tag::Tag;

/// How much of a log is read at once.
const CHUNK: usize = 256 * 1024;

/// A log of so many bytes is read in no time from where it was read before.
const SHORT: usize = 64 * 1024;

/// Where the files of a session are.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) shard: PathBuf,
    pub(crate) log: PathBuf,
    /// What was acknowledged when the session last came to rest.
    pub(crate) rest: PathBuf,
    pub(crate) lease: PathBuf,
    /// Where a reader of the log may start.
    pub(crate) start: PathBuf,
}

impl Paths {
    pub(crate) fn of_log(log: &Path) -> Self {
        Self {
            shard: log.parent().unwrap_or(log).to_owned(),
            log: log.to_owned(),
            rest: log.with_extension("head"),
            lease: log.with_extension("lease"),
            start: log.with_extension("start"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) paths: Paths,
    pub(crate) state: Mutex<State>,
    /// Held while its file is synced, so that whoever waits finds that it is done already.
    pub(crate) gate: Mutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    pub(crate) index: Index,
    /// How long the file was when it was last looked at.
    pub(crate) len: u64,
    /// The short log as it was read just now, for whoever asks for it next.
    pub(crate) just_read: Option<Vec<u8>>,
    /// A sync has failed: what the file holds is not known until it is read anew.
    pub(crate) failed: bool,
    /// How much of the file is durable.
    pub(crate) synced: u64,
    /// Whether the name of the file is.
    pub(crate) named: bool,
    /// Where the next reader was last told to start.
    pub(crate) noted: u64,
    /// The fence of the last lease that was released here, 0 if none was; `None` if this is not
    /// known, as the session was not claimed here since it was read.
    pub(crate) released: Option<u64>,
    /// Until when it was last renewed here since it was claimed here.
    pub(crate) renewed: Option<u64>,
    /// What was noted here when the session last came to rest, until its lease is released.
    pub(crate) noted_rest: Option<Box<Noted>>,
    /// The file could only be opened to be read.
    pub(crate) read_only: bool,
}

impl State {
    /// Forgets all that was read.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The log is read and sound, and this was noted of it.
    fn opened(&mut self, file: Option<Arc<dyn DiskFile>>, noted: Option<&Tag>) {
        self.index.expected = None;
        // What is noted is written behind the sync of what it is about, names and all; a log that
        // was rewritten since has its name from a rename that nobody may have synced.
        self.named = self.index.named
            || noted.is_some_and(|noted| {
                noted.durable && (&*noted.mark.life, noted.mark.rewritten) == self.index.life()
            });
        self.file = file;
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, paths: Paths) -> Self {
        Self { id, paths, state: Mutex::default(), gate: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A state that a panic has left half changed is read anew at the next size that differs.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            state.forget();
            self.state.clear_poison();
            state
        })
    }

    /// Whether it is read and short, or can be without waiting, and nobody is at work on it.
    pub(crate) fn is_at_hand(&self, disk: &dyn Disk) -> bool {
        self.state.try_lock().is_ok_and(|mut state| {
            let unread = state.file.is_none() && !state.failed;
            if unread && !self.open_at_hand(disk, &mut state) {
                return false;
            }
            let index = &state.index;
            !state.failed && state.len <= SHORT as u64 && index.begun() && !index.removed
        })
    }

    /// Whether it is read, and nobody is at work on it.
    pub(crate) fn is_open(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.file.is_some())
    }

    /// Whether nobody has read it yet, and nobody is about to.
    pub(crate) fn is_unread(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.file.is_none())
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
            what: format!("the log of session `{}` changes faster than it can be read", self.id),
            ambiguous: false,
            source: None,
        })
    }

    /// Reads a log anew that has become shorter, as logs never do.
    fn reread(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        let (life, rewritten) = state.index.life();
        let (life, acknowledged) = ((life.to_owned(), rewritten), state.index.head);
        state.forget();
        self.open(disk, state)?;
        let (now, rewritten) = state.index.life();
        if (now, rewritten) == (&*life.0, life.1) && state.index.head < acknowledged {
            let head = Seq(state.index.head);
            let acknowledged = Seq(acknowledged);
            return Err(StoreError::LostWrites { session: self.id.clone(), acknowledged, head });
        }
        Ok(())
    }

    /// Opens a short log, if that and what was noted of it are in the memory of the system. `false` if
    /// it is left to those who may wait for the disk, as is whatever is wrong with it.
    pub(crate) fn open_at_hand(&self, disk: &dyn Disk, state: &mut State) -> bool {
        let Ok((file, mut bytes)) = disk.open_cached(&self.paths.log, SHORT) else { return false };
        let tag = Tag::on(&*file);
        let note = match disk.open_cached(&self.paths.rest, SHORT) {
            Ok((_, note)) => match small::<Rest>(&note) {
                Some(rest) => Some(Tag::of(&rest)),
                None => return false,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) if tag.is_some() => None,
            Err(_) => return false,
        };
        let tag = Tag::later(tag, note);
        let expected = tag.as_ref().map(|tag| tag.mark.clone());
        let mut index = Index { expected, ..Index::default() };
        let sound = index.advance(&bytes).is_ok()
            && index.moved.is_none()
            && index.complete().is_ok()
            && index.header.as_ref().is_some_and(|header| header.id == self.id);
        if !sound {
            return false;
        }
        state.forget();
        state.len = bytes.len() as u64;
        // What a torn record has left is not checked.
        bytes.truncate(usize::try_from(index.end).unwrap_or(usize::MAX));
        state.index = index;
        state.just_read = Some(bytes);
        state.opened(Some(file), tag.as_ref());
        true
    }

    /// What was last noted of the log, or of one that should be there.
    fn noted(
        &self,
        disk: &dyn Disk,
        log: Option<&dyn DiskFile>,
    ) -> Result<Option<Tag>, StoreError> {
        let rest: Option<Rest> = read_small(disk, &self.paths.rest)
            .map_err(|error| failed("read", &self.paths.rest, error))?;
        Ok(Tag::later(log.and_then(Tag::on), rest.as_ref().map(Tag::of)))
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
            // Before the log is read, which may go on meanwhile.
            let noted = self.noted(disk, file.as_deref())?;
            state.forget();
            let expected = noted.as_ref().map(|noted| &noted.mark);
            let mut started = file.as_ref().and_then(|file| self.start(disk, &**file, expected));
            let flaw = loop {
                let partial = started.is_some();
                state.index = started
                    .take()
                    .unwrap_or_else(|| Index { expected: expected.cloned(), ..Index::default() });
                let mut flaw = Ok(());
                if let Some(file) = &file {
                    let len = file.stat().map_err(|error| self.failed("look at", error))?.len;
                    flaw = self.catch_up(&**file, state, len)?;
                    state.len = len;
                }
                if flaw.is_ok() && state.index.moved.is_none() {
                    flaw = state.index.complete();
                }
                // What is wrong is told by who reads all of it.
                if flaw.is_ok() || !partial {
                    break flaw;
                }
            };
            let Err(flaw) = flaw else {
                state.read_only = read_only;
                state.opened(file, noted.as_ref());
                return Ok(state.file.is_some());
            };
            // Somebody may have made, removed or rewritten it between the looks.
            let now = self.noted(disk, file.as_deref())?;
            let missing = file.is_none() && !disk.exists(&self.paths.log);
            if (now == noted && (file.is_some() || missing)) || attempt == 3 {
                let error = self.flawed(&state.index, flaw);
                state.forget();
                return Err(error);
            }
        }
        Ok(false)
    }

    pub(super) fn catch_up(
        &self,
        file: &dyn DiskFile,
        state: &mut State,
        len: u64,
    ) -> Result<Result<(), Flaw>, StoreError> {
        let mut buffer = Vec::new();
        let mut chunk = CHUNK;
        let begun = state.index.header.is_some();
        while state.index.end < len && state.index.moved.is_none() {
            let left = usize::try_from(len - state.index.end).unwrap_or(usize::MAX);
            buffer.resize(chunk.min(left), 0);
            let read = file
                .read_at(&mut buffer, state.index.end)
                .map_err(|error| self.failed("read", error))?;
            // The last newline of a chunk may lack the byte that tells whose it is: it is read
            // again with the next chunk.
            let whole = read == left;
            let usable = if whole {
                read
            } else {
                buffer[..read].iter().rposition(|byte| *byte == b'\n').unwrap_or(0)
            };
            let before = state.index.end;
            if let Err(flaw) = state.index.advance(&buffer[..usable]) {
                return Ok(Err(flaw));
            }
            if !begun && state.index.header.as_ref().is_some_and(|header| header.id != self.id) {
                return Ok(Err(Flaw::Other));
            }
            if whole || read < buffer.len() {
                break;
            }
            if state.index.end == before {
                chunk = chunk.saturating_mul(2);
            }
        }
        Ok(Ok(()))
    }

    /// Gives the file in which the log goes on the name of the log, unless somebody has.
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
            // Says why, and whoever tries again reads what was written meanwhile.
            disk.open(&self.paths.log, Mode::Append)
                .map_err(|error| self.failed("write to", error))?;
            state.forget();
        }
        state.just_read = None;
        let Some(file) = state.file.clone() else { return Err(self.gone()) };
        let written = file.write(line).map_err(|error| self.failed("write to", error))?;
        if written < line.len() {
            // The rest is not written behind it: somebody else may have been faster.
            return Err(StoreError::Full(format!(
                "only {written} of {} bytes of a record could be written to `{}` (make room and \
                 try again)",
                line.len(),
                self.paths.log.display()
            )));
        }
        let after = |error| {
            super::error::unsure(
                format!("cannot tell what became of a record in `{}`", self.paths.log.display()),
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
        match &state.index.seal {
            Some(seal) if seal.fence == lease.fence.0 && seal.token == lease.token => Ok(()),
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
            || !index.seals.contains(&(lease.fence.0, lease.token))
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

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
