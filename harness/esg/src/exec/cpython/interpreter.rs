//! Finds interpreters.
use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::exec::host::pipe;
use crate::exec::start_error::StartError;

/// The supported minor versions of CPython 3.
const MINORS: std::ops::RangeInclusive<u32> = 11..=13;

/// How long an interpreter may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The file names of interpreters, newest first.
const NAMES: [&str; 4] = ["python3.13", "python3.12", "python3.11", "python3"];

/// The question to an interpreter, which runs without user configuration.
const ASK: &str = "import sys, json; print(json.dumps({'implementation': sys.implementation.name, \
     'version': list(sys.version_info[:3]), 'release': sys.version_info[3], \
     'executable': sys.executable, 'prefix': sys.base_prefix}))";

/// A CPython that can run steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    path: PathBuf,
    version: [u32; 3],
    prefix: PathBuf,
}

impl Interpreter {
    /// The interpreter's own path, with shims and links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major, minor and patch version.
    #[must_use]
    pub fn version(&self) -> [u32; 3] {
        self.version
    }

    /// Where its standard library is installed.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Inspects the interpreter at `path`.
    ///
    /// # Errors
    /// If it cannot run steps.
    pub(super) fn ask(path: &Path) -> Result<Self, StartError> {
        ask(path).map_err(|found| StartError::Unfit { path: path.to_owned(), found })
    }

    /// The newest in `PATH`.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn newest() -> Result<Self, StartError> {
        let mut tried = Vec::new();
        for path in candidates() {
            match ask(&path) {
                Ok(interpreter) => return Ok(interpreter),
                Err(found) => tried.push((path, found)),
            }
        }
        Err(StartError::NoPython { tried })
    }

    /// All in `PATH`, newest first, without duplicates.
    pub(super) fn all() -> Vec<Self> {
        let mut seen = BTreeSet::new();
        let found = candidates().into_iter().filter_map(|path| ask(&path).ok());
        found.filter(|interpreter| seen.insert(interpreter.path.clone())).collect()
    }
}

impl fmt::Display for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.version;
        write!(f, "CPython {major}.{minor}.{patch} at {}", self.path.display())
    }
}

/// Every file in `PATH` named like an interpreter.
fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let of_name = |name| folders.iter().map(move |folder: &PathBuf| folder.join(name));
    NAMES.into_iter().flat_map(of_name).filter(|path| path.is_file()).collect()
}

#[derive(Deserialize)]
struct Answer {
    implementation: String,
    version: [u32; 3],
    release: String,
    executable: PathBuf,
    prefix: PathBuf,
}

/// Inspects an interpreter. The error says why it is unsuitable.
fn ask(path: &Path) -> Result<Interpreter, String> {
    let mut command = Command::new(path);
    command.args(["-I", "-S", "-B", "-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null());
    let said = pipe::output(command, ANSWER)?;
    let answer: Answer = serde_json::from_slice(&said)
        .map_err(|_| "no Python 3 that works (a shim without one, perhaps)".to_owned())?;
    let [major, minor, patch] = answer.version;
    if answer.implementation != "cpython" {
        return Err(format!("{} {major}.{minor}.{patch}", answer.implementation));
    }
    if major != 3 || !MINORS.contains(&minor) || answer.release != "final" {
        return Err(format!("CPython {major}.{minor}.{patch} ({})", answer.release));
    }
    let path = answer.executable;
    if !path.is_absolute() {
        return Err("a CPython that does not report its own path".to_owned());
    }
    Ok(Interpreter { path, version: answer.version, prefix: answer.prefix })
}
