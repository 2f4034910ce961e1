//! Scripts: the user's files, and those that ship with the program.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest script that is read.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// A script to repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its file name.
    pub(crate) name: String,
    /// Its text.
    pub(crate) source: String,
    /// What it should print, if that is known.
    pub(crate) expected: Option<String>,
}

/// Why a file is not a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LoadError {
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
    /// The same error, with another name for the file.
    #[must_use]
    pub(crate) fn named(mut self, name: &str) -> Self {
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

/// Reads a user's script, and its expected output from the file of the same name that ends in
/// `.expected`, if there is one.
pub(crate) fn load(path: &Path) -> Result<Script, LoadError> {
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

/// Reads a text file of a limited size.
pub(crate) fn read(path: &Path) -> Result<String, LoadError> {
    let failed = |error: io::Error| match error.kind() == io::ErrorKind::NotFound {
        true => LoadError::Missing(path.to_owned()),
        false => LoadError::Unreadable { path: path.to_owned(), error },
    };
    // Before opening: opening a named pipe would wait for a writer.
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
            include_str!(concat!("../../../scripts/", $name, ".py")),
            include_str!(concat!("../../../scripts/", $name, ".expected")),
        )),*]
    };
}

/// The failing scripts that ship with the program.
pub(crate) fn shipped() -> Vec<Script> {
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
