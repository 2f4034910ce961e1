//! The file store of an example: its directory, and the flag that names it on a command line.

use std::env;
use std::path::{Path, PathBuf};

use harness::store::StoreError;
use harness_store::FileStore;

/// An open store and its directory.
#[derive(Clone, Debug)]
pub struct OpenStore {
    /// The directory. The store itself is a folder in it; a program may put other files beside it.
    pub dir: PathBuf,
    /// The store.
    pub store: FileStore,
    /// Whether a command line must name the directory to find the store again.
    pub is_named: bool,
}

impl OpenStore {
    /// What a command line needs to find the store again.
    #[must_use]
    pub fn flag(&self) -> String {
        match self.is_named {
            true => format!(" --store {}", quoted(&self.dir)),
            false => String::new(),
        }
    }
}

/// Opens the store in `dir`; without it, in the program's own directory.
///
/// Home directories are often on network file systems, which a file store refuses. The program then
/// makes a directory among the temporary files: a restart of the machine may clear that.
///
/// # Errors
/// If the directory cannot hold a store.
pub async fn open(dir: Option<&Path>, program: &str) -> Result<OpenStore, StoreError> {
    if let Some(dir) = dir {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let store = FileStore::open(dir.join("store")).await?;
        return Ok(OpenStore { dir, store, is_named: true });
    }
    let dir = default_dir(program);
    match FileStore::open(dir.join("store")).await {
        Ok(store) => Ok(OpenStore { dir, store, is_named: false }),
        Err(_) => {
            // No other user can have made a directory whose name is not known before.
            let made = tempfile::Builder::new().prefix("harness-examples-").tempdir();
            let failed = |error| StoreError::unavailable("failed to make a directory", error);
            let dir = made.map_err(failed)?.keep();
            let store = FileStore::open(dir.join("store")).await?;
            Ok(OpenStore { dir, store, is_named: true })
        }
    }
}

/// The program's own directory: where the system keeps the data of programs.
#[must_use]
pub fn default_dir(program: &str) -> PathBuf {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let data = set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local").join("share")))
        .or_else(|| set("LOCALAPPDATA"))
        .unwrap_or_else(env::temp_dir);
    data.join("harness-examples").join(program)
}

/// A path quoted for a shell.
#[must_use]
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_read_it_otherwise() {
        assert_eq!(quoted(Path::new("/tmp/a-b_1.x")), "/tmp/a-b_1.x");
        assert_eq!(quoted(Path::new("/tmp/a b")), "'/tmp/a b'");
        assert_eq!(quoted(Path::new("/tmp/it's")), r"'/tmp/it'\''s'");
        assert_eq!(quoted(Path::new("")), "''");
    }
}
