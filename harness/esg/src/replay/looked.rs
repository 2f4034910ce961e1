//! The current content of entities outside the state.
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::exec::Readable;
use crate::model::{Entity, Fingerprint};
use crate::state::Looked;

/// The size above which a file counts by its size, time and number, in bytes. The worker has the
/// same limit.
const MOST: u64 = 64 << 20;

/// Files and distributions as they are now. Each is read once.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    seen: RefCell<HashMap<Entity, Option<String>>>,
    /// What is not looked at, as executions found it.
    trusted: HashMap<Entity, Option<String>>,
    readable: Readable,
    /// Whether nothing is looked at.
    unseen: bool,
}

impl Outside {
    /// Looks only at what steps may read.
    pub(crate) fn new(readable: Readable) -> Self {
        Self { readable, ..Self::default() }
    }

    /// Looks at nothing: everything counts as unchanged.
    pub(crate) fn unseen() -> Self {
        Self { unseen: true, ..Self::default() }
    }

    /// Whether an entity is not looked at. The worker's fingerprint covers the versions of distributions.
    pub(crate) fn trusts(&self, entity: &Entity) -> bool {
        match entity {
            Entity::Package(_) => true,
            Entity::External(_) => self.unseen,
            _ => false,
        }
    }

    /// Takes what an execution found.
    pub(crate) fn trust(&mut self, entity: &Entity, found: Option<String>) {
        self.trusted.insert(entity.clone(), found);
    }
}

impl Looked for Outside {
    fn outside(&self, entity: &Entity) -> Option<String> {
        let path = match entity {
            Entity::External(path) if !self.unseen => path,
            _ => return self.trusted.get(entity).cloned().flatten(),
        };
        if let Some(known) = self.seen.borrow().get(entity) {
            return known.clone();
        }
        let found = digest(Path::new(&**path), &self.readable);
        self.seen.borrow_mut().insert(entity.clone(), found.clone());
        found
    }
}

/// The fingerprint of a path as the worker gives it: the SHA-256 of the content in hex; `None` if
/// there is nothing.
///
/// What the host may not or cannot read equals nothing that a worker has recorded, so its readers
/// run again.
fn digest(path: &Path, readable: &Readable) -> Option<String> {
    let unknown = Some("unknown".to_owned());
    if !readable.allows(path) {
        return unknown;
    }
    // The type comes first: to open a pipe or a device may block, or have effects.
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Some(hex(b"directory")),
        Ok(found) if !found.is_file() => unknown,
        Ok(found) if found.len() > MOST => Some(hex(large(&found).as_bytes())),
        Ok(_) => content(path).or(unknown),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            None
        }
        Err(_) => unknown,
    }
}

/// The fingerprint of the content of a file, unless it has been replaced by something else.
fn content(path: &Path) -> Option<String> {
    let file = open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    // It may grow while it is read.
    let mut file = file.take(MOST + 1);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Some(Fingerprint::new(hasher.finalize().into()).to_string())
}

fn hex(text: &[u8]) -> String {
    Fingerprint::new(Sha256::digest(text).into()).to_string()
}

/// Opens a file without waiting for the other end of a pipe.
#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn large(found: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let nanos = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    format!("large {} {nanos} {}", found.size(), found.ino())
}

#[cfg(not(unix))]
fn large(found: &Metadata) -> String {
    format!("large {} {:?}", found.len(), found.modified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_steps_may_read_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (below, apart) = (dir.join("below"), dir.join("apart"));
        fs::create_dir(&below).unwrap();
        for path in [below.join("a"), apart.clone()] {
            fs::write(path, "abc").unwrap();
        }
        let unknown = Some("unknown".to_owned());
        let abc = Some(hex(b"abc"));
        assert_eq!(digest(&apart, &Readable::Everything), abc);
        assert_eq!(digest(&apart, &Readable::Nothing), unknown);
        let some = Readable::Below(vec![below.clone()]);
        assert_eq!(digest(&below.join("a"), &some), abc);
        assert_eq!(digest(&apart, &some), unknown);
        assert_eq!(digest(&below.join("../apart"), &some), unknown);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&apart, below.join("link")).unwrap();
            assert_eq!(digest(&below.join("link"), &some), unknown);
        }
        assert_eq!(digest(&below.join("none"), &some), None);
        assert_eq!(digest(&dir.join("none"), &some), unknown);
        assert_eq!(digest(&below.join("none"), &Readable::Everything), None);
        assert_eq!(digest(&below.join("none"), &Readable::Nothing), unknown);
    }
}
