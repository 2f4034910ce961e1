//! Copies of a store in use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::store::StoreError;

use super::checkpoint::Checkpoint;
use super::disk::{DiskFile, Mode};
use super::error::{failed, is_out_of_files, refuse_foreign, unsure};
use super::index::Flaw;
use super::inner::{Inner, Sync};
use super::lease::{Renewal, write_small};
use super::paths::{Paths, SESSIONS, UNFINISHED};
use super::place::{PLACE, Place};
use super::session::{Session, State};
use super::store::{FileStore, with_files};

/// How much of a log is copied at once.
const CHUNK: usize = 256 * 1024;

/// What [`FileStore::backup`] has copied.
#[derive(Debug, Default)]
#[non_exhaustive]
#[must_use = "a session that cannot be read is not in the backup"]
pub struct Backup {
    /// How many sessions were copied.
    pub sessions: u64,
    /// How many bytes their logs have.
    pub bytes: u64,
    /// Why each session that was left out cannot be read.
    pub unreadable: Vec<StoreError>,
}

impl FileStore {
    /// Copies all sessions into a new directory, which is a store of its own, while this and other
    /// processes continue to use them.
    ///
    /// The copy of each session is its log as it was at one moment of the call: whole records, all of
    /// which are durable in this store, and everything that was acknowledged before the call began.
    /// Different sessions are copied at different moments; one that begins or is removed during the call may
    /// be missing. No leases are copied, so that the copied sessions can be claimed at once. The memory
    /// that this takes does not depend on the length of the logs' entries.
    ///
    /// On return the backup survives a loss of power. One that was interrupted is not a store: it is
    /// refused when it is opened.
    ///
    /// ```
    /// # async fn example() -> Result<(), harness::store::StoreError> {
    /// use harness_store::FileStore;
    ///
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let (sessions, backup) = (dir.path().join("sessions"), dir.path().join("backup"));
    /// let store = FileStore::open(sessions).await?;
    /// let copied = store.backup(&backup).await?;
    /// assert!(copied.unreadable.is_empty());
    ///
    /// let restored = FileStore::open(backup).await?;
    /// # drop(restored);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the directory is not empty, is inside this store, belongs to
    /// another user, or may be written by every user; [`StoreError::Full`] and
    /// [`StoreError::Unavailable`] if it cannot be written. The directory is then left empty, as far
    /// as it can be. A session that cannot be read is no error: it is in [`Backup::unreadable`].
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<Backup, StoreError> {
        let to = std::path::absolute(to.as_ref());
        let to = to.map_err(|error| failed("find", Path::new("."), error))?;
        let inner = Arc::clone(&self.inner);
        self.inner.threads.run(move || back_up(&inner, &to)).await
    }
}

fn back_up(inner: &Inner, to: &Path) -> Result<Backup, StoreError> {
    let made = make_target(inner, to)?;
    let unfinished = to.join(UNFINISHED);
    let done = fill(inner, to, &unfinished).and_then(|backup| {
        let sessions = to.join(SESSIONS);
        inner
            .disk
            .rename(&unfinished, &sessions)
            .map_err(|error| failed("rename", &unfinished, error))?;
        for dir in made.iter().map(PathBuf::as_path).chain([to]) {
            inner.disk.sync_dir(dir).map_err(|error| failed("sync", dir, error))?;
        }
        Ok(backup)
    });
    if done.is_err() {
        // What cannot be deleted is refused by name.
        let _ = std::fs::remove_dir_all(&unfinished);
        let _ = inner.disk.unlink(&to.join(PLACE));
    }
    done
}

/// Makes the directory of a backup, and says in which directories names were made for it.
fn make_target(inner: &Inner, to: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let refuse = |why: &str| {
        let to = to.display();
        Err(StoreError::Unsuitable(format!(
            "failed to make a backup in `{to}`: {why} (choose a new directory)"
        )))
    };
    let parent = to.parent().unwrap_or(to);
    let missing = parent.ancestors().take_while(|path| !path.exists());
    let mut made: Vec<PathBuf> = missing.filter_map(Path::parent).map(Path::to_owned).collect();
    made.push(parent.to_owned());
    std::fs::create_dir_all(parent).map_err(|error| failed("make", parent, error))?;
    let store = inner.sessions.parent().unwrap_or(&inner.sessions);
    let [store, parent] = [store, parent].map(|path| path.canonicalize());
    if let (Ok(store), Ok(parent)) = (store, parent)
        && (parent.starts_with(&store) || parent.join(to.file_name().unwrap_or_default()) == store)
    {
        return refuse("it is inside the store");
    }
    match inner.disk.make_dir(to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            refuse_foreign(to, true)?;
            let mut files = std::fs::read_dir(to).map_err(|error| failed("look at", to, error))?;
            if files.next().is_some() {
                return refuse("it is not empty");
            }
        }
        Err(error) => return Err(failed("make", to, error)),
    }
    Ok(made)
}

fn fill(inner: &Inner, to: &Path, unfinished: &Path) -> Result<Backup, StoreError> {
    let disk = &*inner.disk;
    disk.make_dir(unfinished).map_err(|error| failed("make", unfinished, error))?;
    let place = Place::of(disk, to, true);
    let place = place.map_err(|error| failed("write", &to.join(PLACE), error))?;
    let mut backup = Backup::default();
    for shard in dirs(&inner.sessions)? {
        let target = unfinished.join(shard.file_name().unwrap_or_default());
        disk.make_dir(&target).map_err(|error| failed("make", &target, error))?;
        for log in dirs(&shard)? {
            if log.extension().is_none_or(|kind| kind != "log") {
                continue;
            }
            let to = Paths::of_log(&target.join(log.file_name().unwrap_or_default()));
            match with_files(inner, |inner| copy(inner, &log, &to, &place))? {
                Copied::Session(bytes) => {
                    backup.sessions += 1;
                    backup.bytes += bytes;
                }
                Copied::None => {}
                Copied::Unreadable(error) => backup.unreadable.push(error),
            }
        }
        disk.sync_dir(&target).map_err(|error| failed("sync", &target, error))?;
    }
    disk.sync_dir(unfinished).map_err(|error| failed("sync", unfinished, error))?;
    Ok(backup)
}

/// What is in a directory, which may just have been removed.
fn dirs(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let wrong = |error| failed("look at", dir, error);
    match std::fs::read_dir(dir) {
        Ok(found) => found.map(|file| Ok(file.map_err(wrong)?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(wrong(error)),
    }
}

enum Copied {
    /// How long the log is.
    Session(u64),
    /// No session is, or is any more, or was ever written.
    None,
    Unreadable(StoreError),
}

/// Copies one session. Only failures to write the copy fail.
fn copy(inner: &Inner, log: &Path, to: &Paths, place: &Place) -> Result<Copied, StoreError> {
    let (session, state) = match read(inner, log) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Copied::None),
        Err(error) if is_out_of_files(&error) => return Err(error),
        Err(error) => return Ok(Copied::Unreadable(error)),
    };
    let Some(source) = &state.file else { return Ok(Copied::None) };
    let written = write(inner, &session, &state, &**source, to, place);
    if !matches!(written, Ok(Copied::Session(_))) {
        for path in [&to.start, &to.lease, &to.checkpoint, &to.log] {
            let _ = inner.disk.unlink(path);
        }
    }
    written
}

/// Reads a session up to the end of its last record, and makes it durable up to there.
fn read(inner: &Inner, log: &Path) -> Result<Option<(Session, State)>, StoreError> {
    let Some(id) = inner.id_of(log)? else {
        // A session that is just beginning has an empty file.
        return match std::fs::metadata(log) {
            Ok(found) if found.len() > 0 => Err(StoreError::Unavailable {
                what: format!("`{}` does not begin as a log that is known here", log.display()),
                ambiguous: false,
                source: None,
            }),
            _ => Ok(None),
        };
    };
    let session = inner.unopened(id, log);
    let mut state = State::default();
    session.refresh(&*inner.disk, &mut state)?;
    let (true, Some(file)) = (state.index.exists(), &state.file) else { return Ok(None) };
    let checkpoint = Checkpoint::read(&*inner.disk, &session.paths);
    let checkpoint =
        checkpoint.map_err(|error| failed("read", &session.paths.checkpoint, error))?;
    let header = state.index.header.as_ref();
    let durable = checkpoint.is_some_and(|it| {
        it.durable
            && it.mark.offset == state.index.end
            && header.is_some_and(|header| it.mark.is_in(header))
    });
    if inner.sync == Sync::Flush && !durable {
        file.sync()
            .map_err(|error| unsure(format!("failed to sync `{}`", log.display()), Some(error)))?;
    }
    Ok(Some((session, state)))
}

fn write(
    inner: &Inner,
    session: &Session,
    state: &State,
    source: &dyn DiskFile,
    to: &Paths,
    place: &Place,
) -> Result<Copied, StoreError> {
    let (disk, index) = (&*inner.disk, &state.index);
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |error| failed("write", &path, error)
    };
    let file = disk.open(&to.log, Mode::AppendNew).map_err(wrong(&to.log))?;
    let mut sum = crc32fast::Hasher::new();
    let (mut buffer, mut place_in_log) = (vec![0; CHUNK], 0);
    while place_in_log < index.end {
        let left = usize::try_from(index.end - place_in_log).unwrap_or(CHUNK).min(CHUNK);
        let read = match source.read_at(&mut buffer[..left], place_in_log) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Ok(Copied::Unreadable(session.failed("read", error))),
        };
        sum.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(wrong(&to.log))?;
        place_in_log += read as u64;
    }
    // Also what a reader from the last snapshot on has not checked.
    if place_in_log < index.end || sum.finalize() != index.sum.clone().finalize() {
        let flaw = Flaw::Damaged("its log is not what it was when it was written".to_owned());
        return Ok(Copied::Unreadable(session.flawed(index, flaw)));
    }
    file.sync().map_err(wrong(&to.log))?;
    if let Some(mut checkpoint) = Checkpoint::of(index) {
        checkpoint.durable = true;
        checkpoint.place = Some(place.name.clone());
        let file = write_small(disk, &to.checkpoint, &checkpoint);
        file.and_then(|file| file.sync()).map_err(wrong(&to.checkpoint))?;
    }
    if let Some(mut start) = index.start.clone() {
        (start.boot, start.named) = (None, true);
        write_small(disk, &to.start, &start).map_err(wrong(&to.start))?;
    }
    if index.claim.as_ref().is_some_and(|claim| claim.owner != 0) {
        // The holder is one of the other store.
        let epoch = index.epoch().0.to_owned();
        let renewal = Renewal { epoch, fence: index.fence(), until: None };
        write_small(disk, &to.lease, &renewal).map_err(wrong(&to.lease))?;
    }
    Ok(Copied::Session(index.end))
}
