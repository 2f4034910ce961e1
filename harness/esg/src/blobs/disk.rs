//! The directory of a store.
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::BlobError;
use super::id::BlobId;
use super::pack::{self, Pack};
use super::shelf::{PackNumber, Place, Shelf};

/// The file extension of packs.
const PACK: &str = "pack";
/// The bytes that may wait in memory for a flush; more are written at once.
const WAITING: u64 = 8 << 20;
/// The size at which a new pack begins. Compaction works on whole packs.
const FULL: u64 = 64 << 20;

/// The directory of a store.
#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    /// By number. A removed pack leaves `None`.
    packs: Vec<Option<Pack>>,
    numbers: HashMap<PathBuf, PackNumber>,
    /// The pack that is appended to.
    active: Option<(PackNumber, File)>,
    /// Not written yet.
    waiting: Vec<BlobId>,
    waiting_bytes: u64,
    /// Written, not synced yet.
    unsynced: Vec<BlobId>,
    /// Whether directory entries are not synced yet.
    named: bool,
}

/// Creates the directory, accessible to its owner only, if it is missing.
pub(super) fn make_dir(path: &Path) -> Result<(), BlobError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(BlobError::io("failed to make", path))
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> Result<(), BlobError> {
    #[cfg(unix)]
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(BlobError::io("failed to sync", path))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

impl Disk {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            packs: Vec::new(),
            numbers: HashMap::new(),
            active: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            unsynced: Vec::new(),
            named: false,
        }
    }

    /// Reads packs in the directory that are not known yet, oldest first, so that the oldest values
    /// are evicted first.
    pub(super) fn refresh(&mut self, shelf: &mut Shelf) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            return;
        };
        let mut found: Vec<(SystemTime, PathBuf, u64)> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == PACK))
            .filter_map(|entry| {
                let what = entry.metadata().ok()?;
                let when = what.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some((when, entry.path(), what.len()))
            })
            .collect();
        found.sort();
        for (when, path, size) in found {
            let number = self.numbers.get(&path).copied();
            let known = number.and_then(|at| self.packs[at].as_ref()).map_or(0, |at| at.size);
            if number.is_some_and(|number| self.is_active(number)) || size <= known {
                continue;
            }
            match pack::scan(&path, known) {
                Ok((records, end)) => {
                    let number = number.unwrap_or_else(|| self.adopt(path));
                    self.take_in(shelf, number, records, end, when);
                }
                Err(error) => self.set_aside(&path, &error),
            }
        }
    }

    fn take_in(
        &mut self,
        shelf: &mut Shelf,
        number: PackNumber,
        records: Vec<pack::Record>,
        end: u64,
        when: SystemTime,
    ) {
        let mut live = 0;
        for record in records {
            if shelf.get(&record.id).is_none() {
                shelf.add(record.id, Place::Pack(number, record.at), record.len, when);
                live += record.len + pack::overhead();
            }
        }
        if let Some(Some(pack)) = self.packs.get_mut(number) {
            pack.size = end;
            pack.live += live;
        }
    }

    fn adopt(&mut self, path: PathBuf) -> PackNumber {
        self.numbers.insert(path.clone(), self.packs.len());
        self.packs.push(Some(Pack { path, size: 0, live: 0 }));
        self.packs.len() - 1
    }

    fn is_active(&self, number: PackNumber) -> bool {
        self.active.as_ref().is_some_and(|(active, _)| *active == number)
    }

    /// Renames a file that is not a pack, so that it is not read again.
    fn set_aside(&self, path: &Path, why: &io::Error) {
        // A pack that another process is creating has no mark yet.
        if why.kind() == io::ErrorKind::UnexpectedEof && !pack::is_free(path) {
            return;
        }
        tracing::warn!(path = %path.display(), %why, "set a damaged file of the blob store aside");
        let _ = std::fs::rename(path, path.with_extension("bad"));
    }

    /// Records a new value.
    pub(super) fn put(&mut self, shelf: &mut Shelf, id: BlobId, len: u64) -> Result<(), BlobError> {
        self.waiting.push(id);
        self.waiting_bytes += len;
        if self.waiting_bytes > WAITING { self.write(shelf) } else { Ok(()) }
    }

    /// Reads a value of a pack, without checking its content.
    pub(super) fn read(&self, pack: PackNumber, at: u64, len: u64) -> Option<Vec<u8>> {
        let pack = self.packs.get(pack)?.as_ref()?;
        pack::read(&pack.path, at, len).ok()
    }

    /// Records that a value of a pack is no longer needed.
    pub(super) fn lost(&mut self, pack: PackNumber, len: u64) {
        if let Some(Some(pack)) = self.packs.get_mut(pack) {
            pack.live = pack.live.saturating_sub(len + pack::overhead());
        }
    }

    /// Makes what was put durable.
    pub(super) fn flush(&mut self, shelf: &mut Shelf) -> Result<(), BlobError> {
        self.write(shelf)?;
        if !self.unsynced.is_empty()
            && let Some((number, file)) = &self.active
        {
            let path = self.path(*number);
            if let Err(error) = file.sync_data() {
                self.give_up(shelf);
                return Err(BlobError::io("failed to sync", &path)(error));
            }
            self.unsynced.clear();
        }
        if self.named {
            sync_dir(&self.dir)?;
            self.named = false;
        }
        let full = self.active.as_ref().and_then(|(number, _)| self.packs[*number].as_ref());
        if full.is_some_and(|pack| pack.size > FULL) {
            self.active = None;
        }
        Ok(())
    }

    /// What was written since the last sync may be lost, and the pack cannot be relied on to show
    /// it. Its values are put again when they come again.
    fn give_up(&mut self, shelf: &mut Shelf) {
        self.active = None;
        for id in std::mem::take(&mut self.unsynced) {
            if let Some(entry) = shelf.remove(&id)
                && let Place::Pack(pack, _) = entry.place
            {
                self.lost(pack, entry.len);
            }
        }
    }

    fn path(&self, number: PackNumber) -> PathBuf {
        self.packs[number].as_ref().map_or_else(|| self.dir.clone(), |pack| pack.path.clone())
    }

    /// Writes what waits, with one call.
    fn write(&mut self, shelf: &mut Shelf) -> Result<(), BlobError> {
        let mut buffer = Vec::new();
        let mut places: Vec<(BlobId, u64)> = Vec::with_capacity(self.waiting.len());
        for id in &self.waiting {
            // Values removed since then need not be written.
            if let Some(Place::Here(blob)) = shelf.get(id).map(|entry| &entry.place) {
                places.push((*id, pack::record(&mut buffer, id, blob)));
            }
        }
        if !places.is_empty() {
            self.append(shelf, &buffer, places)?;
        }
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(())
    }

    fn append(
        &mut self,
        shelf: &mut Shelf,
        buffer: &[u8],
        places: Vec<(BlobId, u64)>,
    ) -> Result<(), BlobError> {
        if self.active.is_none() {
            let name = uuid::Uuid::new_v4().simple().to_string();
            let path = self.dir.join(&name).with_extension(PACK);
            let temporary = self.dir.join(&name).with_extension("new");
            let file =
                pack::begin(&temporary, &path).map_err(BlobError::io("failed to make", &path))?;
            let number = self.adopt(path);
            if let Some(Some(pack)) = self.packs.get_mut(number) {
                pack.size = pack::begun();
            }
            self.active = Some((number, file));
            self.named = true;
        }
        let Some((number, file)) = &mut self.active else {
            return Ok(());
        };
        let number = *number;
        if let Err(error) = file.write_all(buffer) {
            // Half of a record may be in the file now. The next record goes to another pack.
            let path = self.path(number);
            self.give_up(shelf);
            return Err(BlobError::io("failed to write to", &path)(error));
        }
        if let Some(Some(pack)) = self.packs.get_mut(number) {
            for (id, at) in places {
                shelf.moved(&id, Place::Pack(number, pack.size + at));
                self.unsynced.push(id);
            }
            pack.size += buffer.len() as u64;
            pack.live += buffer.len() as u64;
        }
        Ok(())
    }

    /// Removes packs without live values, and compacts those that are mostly waste, as long as all
    /// packs together exceed `limit` by more than a quarter.
    pub(super) fn tidy(&mut self, shelf: &mut Shelf, limit: u64) -> Result<(), BlobError> {
        let all: u64 = self.packs.iter().flatten().map(|pack| pack.size).sum();
        if all <= limit.saturating_add(limit / 4) {
            return Ok(());
        }
        if limit == 0 {
            self.flush(shelf)?;
            self.active = None;
        }
        let numbers: Vec<PackNumber> = (0..self.packs.len())
            .filter(|number| !self.is_active(*number))
            .filter(|number| {
                self.packs[*number].as_ref().is_some_and(|pack| pack.live * 2 < pack.size)
            })
            .filter(|number| pack::is_free(&self.path(*number)))
            .collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let wanted: Vec<(BlobId, PackNumber, u64, u64)> = shelf
            .iter()
            .filter_map(|(id, entry)| match entry.place {
                Place::Pack(pack, at) if numbers.contains(&pack) => {
                    Some((*id, pack, at, entry.len))
                }
                _ => None,
            })
            .collect();
        for (id, number, at, len) in wanted {
            match self.read(number, at, len) {
                Some(bytes) => {
                    shelf.moved(&id, Place::Here(bytes.into()));
                    self.put(shelf, id, len)?;
                }
                None => drop(shelf.remove(&id)),
            }
        }
        // Nothing is removed before its values are safe elsewhere.
        self.flush(shelf)?;
        for number in numbers {
            if let Some(pack) = self.packs[number].take() {
                self.numbers.remove(&pack.path);
                let _ = std::fs::remove_file(&pack.path);
            }
        }
        Ok(())
    }
}
