//! Where scripts come from: the user's files, and those that ship.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest script that is read.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// A script to repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its file name.
    pub name: String,
    /// Its text.
    pub source: String,
    /// What it should print, where that is known.
    pub expected: Option<String>,
}

/// Why a file cannot be taken as a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It does not exist.
    #[error("{}: no such file", .0.display())]
    Missing(PathBuf),
    /// It is no file.
    #[error("{}: is a directory or device, not a script", .0.display())]
    NotAFile(PathBuf),
    /// It cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not UTF-8 text.
    #[error("{}: is no text in UTF-8", .0.display())]
    Binary(PathBuf),
    /// It is larger than a script should be.
    #[error("{}: is larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
}

impl LoadError {
    /// The same error, of a file that goes by this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        match &mut self {
            LoadError::Missing(path)
            | LoadError::NotAFile(path)
            | LoadError::Unreadable { path, .. }
            | LoadError::Binary(path)
            | LoadError::TooLarge(path) => *path = PathBuf::from(name),
        }
        self
    }
}

/// Reads a user's script, and what it should print from the file beside it
/// named like it but ending in `.expected`, if there is one.
pub fn load(path: &Path) -> Result<Script, LoadError> {
    let source = read(path)?;
    let beside = path.with_extension("expected");
    let expected = match read(&beside) {
        Ok(text) => Some(text),
        Err(LoadError::Missing(_)) => None,
        Err(error) => return Err(error),
    };
    let name = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Script { name, source, expected })
}

fn read(path: &Path) -> Result<String, LoadError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing(path.to_owned()),
        _ => LoadError::Unreadable { path: path.to_owned(), error },
    };
    // Before opening: a named pipe would wait for somebody to write to it.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(LoadError::NotAFile(path.to_owned()));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLarge(path.to_owned()));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(LoadError::Binary(path.to_owned())),
    }
}

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        [$((
            concat!($name, ".py"),
            include_str!(concat!("../../scripts/", $name, ".py")),
            include_str!(concat!("../../scripts/", $name, ".expected")),
        )),*]
    };
}

/// The failing scripts that ship with the program.
pub fn shipped() -> Vec<Script> {
    let all = scripts![
        "inventory",
        "log_parser",
        "matrix_stats",
        "histogram",
        "orders",
        "config_merge",
        "dates",
        "tree",
        "word_count",
        "grades",
    ];
    all.into_iter()
        .map(|(name, source, expected)| Script {
            name: name.to_owned(),
            source: source.to_owned(),
            expected: Some(expected.to_owned()),
        })
        .collect()
}
