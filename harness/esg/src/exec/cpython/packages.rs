//! The packages of a virtual environment.
use std::fs;
use std::path::{Path, PathBuf};

use super::interpreter::Interpreter;
use crate::exec::start_error::StartError;

/// What is installed in an environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Packages {
    /// The directories to import from.
    pub(super) path: Vec<String>,
    /// The environment.
    pub(super) venv: Option<PathBuf>,
    /// Each distribution with its version, sorted.
    pub(super) distributions: Vec<String>,
}

impl Packages {
    /// What is installed in the environment at `venv` for `interpreter`.
    ///
    /// # Errors
    /// If there is no such environment, or it is for another Python.
    pub(super) fn of(venv: &Path, interpreter: &Interpreter) -> Result<Self, StartError> {
        let unusable = |why: String| StartError::Venv { path: venv.to_owned(), why };
        if !venv.join("pyvenv.cfg").is_file() {
            return Err(unusable("it has no file `pyvenv.cfg`".to_owned()));
        }
        let [major, minor, _] = interpreter.version();
        let folder = venv.join(format!("lib/python{major}.{minor}/site-packages"));
        let folder = fs::canonicalize(&folder).map_err(|_| {
            unusable(format!(
                "it has no packages for Python {major}.{minor}, which {interpreter} is"
            ))
        })?;
        let entries = fs::read_dir(&folder).map_err(|error| unusable(error.to_string()))?;
        let mut distributions: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_suffix(".dist-info")?.to_owned()))
            .collect();
        distributions.sort();
        let path = folder
            .into_os_string()
            .into_string()
            .map_err(|_| unusable("its path is not UTF-8".to_owned()))?;
        Ok(Self { path: vec![path], venv: Some(venv.to_owned()), distributions })
    }
}
