//! Why a worker failed to start.
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use harness_esg_launcher::{LaunchError, Status};

/// A worker failed to start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// No suitable interpreter is installed.
    #[error(
        "no CPython from 3.11 to 3.13 in PATH ({}); install one, or name one with `CPython::at`",
        found(tried)
    )]
    NoPython {
        /// The interpreters found, and why each is unsuitable.
        tried: Vec<(PathBuf, String)>,
    },
    /// The named interpreter is unsuitable.
    #[error("{} is {found}; expected a CPython from 3.11 to 3.13", path.display())]
    Unfit {
        /// The interpreter.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The machine lacks layers of kernel isolation.
    #[error(
        "untrusted code needs kernel isolation, and this machine lacks {}; run it where the kernel has \
         that, or set `.trust(Trust::Mine)` if the code may do whatever you may do",
        list(missing)
    )]
    Exposed {
        /// The missing layers, and why.
        missing: Vec<Status>,
    },
    /// Untrusted code was to run without kernel isolation.
    #[error(
        "untrusted code needs kernel isolation, not `Isolation::Process` (leave `.isolation` out, or set \
         `.trust(Trust::Mine)` if the code may do whatever you may do)"
    )]
    Unprotected,
    /// Nothing can apply kernel isolation.
    #[error(
        "untrusted code needs kernel isolation: {source}; or set `.trust(Trust::Mine)` if the code may \
         do whatever you may do"
    )]
    Launcher {
        /// Why.
        #[source]
        source: LaunchError,
    },
    /// The scratch directory is unusable.
    #[error("failed to use {} as the scratch directory: {why}", path.display())]
    Scratch {
        /// The directory.
        path: PathBuf,
        /// The reason.
        why: String,
        /// The system's error.
        #[source]
        source: Option<io::Error>,
    },
    /// A path that steps may read does not exist.
    #[error("failed to open {}, which steps may read (name a path that exists)", path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The virtual environment is unusable.
    #[error("{} is not a usable virtual environment: {why}", path.display())]
    Venv {
        /// The environment.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The process failed to start.
    #[error("failed to start the interpreter {}", path.display())]
    Spawn {
        /// The interpreter.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The interpreter is a CPython of a supported version, but differs from it where tracking relies on
    /// what is not documented.
    #[error(
        "{} is unsuitable: {found}; expected what every released CPython from 3.11 to 3.13 does \
         (name another interpreter with `CPython::at`)",
        path.display()
    )]
    Differs {
        /// The interpreter.
        path: PathBuf,
        /// Its version, and in what it differs.
        found: String,
    },
    /// The process started, but not as a worker.
    #[error("failed to start the Python worker with {}: {what}{}", path.display(), said(errors))]
    Worker {
        /// The interpreter.
        path: PathBuf,
        /// What happened.
        what: String,
        /// The end of its standard error.
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

fn list(missing: &[Status]) -> String {
    let each = missing.iter().map(|status| match &status.missing {
        Some(why) => format!("{} ({why})", status.layer),
        None => status.layer.to_string(),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn said(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!("; it wrote: {}", errors.trim_end()) }
}
