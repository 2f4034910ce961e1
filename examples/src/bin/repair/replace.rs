//! Replaces a user's file.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::Path;

/// Why a file was not replaced. It is unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplaceError {
    #[error("it has changed since it was read")]
    Changed,
    #[error("it is read-only")]
    ReadOnly,
    #[error("it ships with this program")]
    Shipped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Replaces the file atomically, if it still contains `old`. Its permissions stay; a link stays a
/// link. A file that contains `new` was replaced by a process that was killed before it could record
/// that.
pub(super) fn replace(path: &Path, old: &str, new: &str) -> Result<(), ReplaceError> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    if ships(folder) {
        return Err(ReplaceError::Shipped);
    }
    if fs::read(&path)? == new.as_bytes() {
        return Ok(());
    }
    let permissions: Permissions = fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        return Err(ReplaceError::ReadOnly);
    }
    let mut file = tempfile::Builder::new().prefix(".repair-").tempfile_in(folder)?;
    file.write_all(new.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    // As late as possible: the file may have changed while the question was open.
    if fs::read(&path)? != old.as_bytes() {
        return Err(ReplaceError::Changed);
    }
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether it is the folder of the scripts that ship, where there is one.
fn ships(folder: &Path) -> bool {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").canonicalize();
    home.is_ok_and(|home| folder.starts_with(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_as_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, "old").unwrap();
        assert!(matches!(replace(&path, "older", "new"), Err(ReplaceError::Changed)));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace(&path, "old", "new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_read_only_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        assert!(matches!(replace(&path, "old", "new"), Err(ReplaceError::ReadOnly)));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.py"), folder.path().join("b.py"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, "old", "new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn what_ships_is_never_replaced() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tree.py");
        let old = fs::read_to_string(&path).unwrap();
        assert!(matches!(replace(&path, &old, "new"), Err(ReplaceError::Shipped)));
    }
}
