//! Why no worker starts.
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::super::trust::Layer;

/// A worker could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// No interpreter that will do is installed.
    #[error(
        "no CPython from 3.11 to 3.13 in PATH ({}); install one, or name one with `CPython::at`",
        found(tried)
    )]
    NoPython {
        /// What was found instead, and what each was.
        tried: Vec<(PathBuf, String)>,
    },
    /// The interpreter that was named will not do.
    #[error("{} is {found}; expected a CPython from 3.11 to 3.13", path.display())]
    Unfit {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The code is not trusted, and nothing would keep it from the machine.
    #[error(
        "untrusted code needs isolation by the kernel, and this build has none of {}; \
         run it elsewhere, or say `.trust(Trust::Mine)` if the code may do whatever you may do",
        list(missing)
    )]
    Exposed {
        /// What the code would not be kept from.
        missing: &'static [Layer],
    },
    /// The isolation that was asked for is not to be had.
    #[error(
        "isolation by the kernel was asked for, and this build has none of {}; \
         `Isolation::Process` with `Trust::Mine` is what it has",
        list(missing)
    )]
    NoIsolation {
        /// What the code would not be kept from.
        missing: &'static [Layer],
    },
    /// The directory for scratch can not be used.
    #[error("{} can not hold scratch: {why}", path.display())]
    Scratch {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
        /// What the system said.
        #[source]
        source: Option<io::Error>,
    },
    /// A path that steps were to read is not there.
    #[error("{} was to be readable for steps; name a path that exists", path.display())]
    ReadOnly {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The virtual environment will not do.
    #[error("{} is no virtual environment that can be used: {why}", path.display())]
    Venv {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The process could not be started.
    #[error("{} could not be started", path.display())]
    Spawn {
        /// The interpreter.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The process started, but did not become a worker.
    #[error("{} did not become a worker: {what}{}", path.display(), said(errors))]
    Worker {
        /// The interpreter.
        path: PathBuf,
        /// What happened.
        what: String,
        /// The end of what it wrote to standard error.
        errors: String,
    },
}

fn found(tried: &[(PathBuf, String)]) -> String {
    if tried.is_empty() {
        return "found none at all".to_owned();
    }
    let tried = tried.iter().map(|(path, what)| format!("{} is {what}", path.display()));
    tried.collect::<Vec<_>>().join("; ")
}

fn list(missing: &[Layer]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn said(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!("; it wrote: {}", errors.trim_end()) }
}
