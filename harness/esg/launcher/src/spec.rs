//! What to launch.
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::layer::Layer;

/// A program and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The program. It may also be executed again; nothing else may.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Files and directories that it may read, besides its own and the system's libraries.
    pub read: Vec<PathBuf>,
    /// Directories that it may write to. As root, they are given to the user it runs as.
    pub write: Vec<PathBuf>,
    /// How many threads it may have. Applies where it has a number of processes of its own: as root, and
    /// with user namespaces.
    pub threads: u64,
}

impl Spec {
    /// A program that may read only itself and the libraries of the system, and may not write.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            threads: 256,
        }
    }
}

/// What a launcher is asked to do: its second argument, as JSON. The program and its arguments follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) layers: Vec<Layer>,
    /// Whether to use namespaces where the system allows them.
    pub(crate) namespaces: bool,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) threads: u64,
    /// Whether to print the layers instead of starting a program.
    pub(crate) report: bool,
}
