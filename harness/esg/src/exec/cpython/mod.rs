//! CPython: which interpreter, and how its worker is set up.
mod error;
mod find;
mod venv;

pub use error::StartError;
pub use find::Interpreter;
pub(super) use venv::Packages;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::limits::Limits;
use super::python::{Python, Setup};
use super::scratch::Scratch;
use super::sources;
use super::trust::{Isolation, Layer, Trust};

/// A worker to be: a CPython, and what its steps may do.
///
/// Code is untrusted unless said otherwise, and untrusted code needs isolation by the kernel.
///
/// ```no_run
/// use harness_esg::{CPython, Executor, Trust};
///
/// let python = CPython::find().trust(Trust::Mine).start()?;
/// println!("{}", python.fingerprint());
/// # Ok::<(), harness_esg::StartError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CPython {
    path: Option<PathBuf>,
    trust: Trust,
    isolation: Option<Isolation>,
    limits: Limits,
    scratch: Option<PathBuf>,
    read_only: Vec<PathBuf>,
    venv: Option<PathBuf>,
    boot: &'static str,
    modules: &'static [(&'static str, &'static str)],
}

impl CPython {
    fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            trust: Trust::default(),
            isolation: None,
            limits: Limits::default(),
            scratch: None,
            read_only: Vec::new(),
            venv: None,
            boot: sources::BOOT,
            modules: sources::MODULES,
        }
    }

    /// The newest of Python 3.13, 3.12 and 3.11 in `PATH`. It is looked for at the start.
    pub fn find() -> Self {
        Self::new(None)
    }

    /// The interpreter at `path`: an executable, or a link or shim that leads to one. If it is the
    /// one of a virtual environment, steps may import what is installed there, as from
    /// [`venv`](Self::venv).
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::new(Some(path.into()))
    }

    /// Every interpreter in `PATH` that can run steps, the newest first. Each is asked what it is,
    /// which takes some milliseconds.
    #[must_use]
    pub fn all() -> Vec<Interpreter> {
        Interpreter::all()
    }

    /// Whose code the steps are. Default: [`Trust::Untrusted`].
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// What must be between the steps and the machine. Default: the most that there is.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// What a step may use up.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the directory that steps write to is. Steps see `work` in it, which is always at one
    /// path then and is not removed in the end. The directory must be empty, or have served
    /// before: what was left in it is then moved to `before`, in place of what is there.
    ///
    /// Default: a temporary directory, removed with the worker.
    pub fn scratch(mut self, dir: impl Into<PathBuf>) -> Self {
        self.scratch = Some(dir.into());
        self
    }

    /// A file or directory that steps may read, besides scratch. With [`Isolation::Process`]
    /// nothing keeps them from others; that it exists is checked.
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// The virtual environment whose packages steps may import. Its interpreter runs them, unless
    /// another of the same minor version was named.
    pub fn venv(mut self, path: impl Into<PathBuf>) -> Self {
        self.venv = Some(path.into());
        self
    }

    /// Another program than the worker's own, for tests of what a worker can do wrong.
    #[cfg(test)]
    pub(super) fn speaking(
        mut self,
        boot: &'static str,
        modules: &'static [(&'static str, &'static str)],
    ) -> Self {
        (self.boot, self.modules) = (boot, modules);
        self
    }

    /// Starts a worker.
    ///
    /// # Errors
    /// If the code is not trusted as far as there is no isolation, if there is no interpreter that
    /// will do, if a path will not do, or if the process does not become a worker.
    pub fn start(self) -> Result<Python, StartError> {
        let missing = Layer::ALL;
        if self.isolation == Some(Isolation::Kernel) {
            return Err(StartError::NoIsolation { missing });
        }
        if self.trust == Trust::Untrusted {
            return Err(StartError::Exposed { missing });
        }
        for path in &self.read_only {
            let absent = |source| StartError::ReadOnly { path: path.clone(), source };
            path.metadata().map_err(absent)?;
        }
        let interpreter = self.interpreter()?;
        let packages = self
            .venv
            .as_deref()
            .or_else(|| self.path.as_deref().and_then(venv_around))
            .map(|venv| Packages::of(venv, &interpreter))
            .transpose()?
            .unwrap_or_default();
        let scratch = match &self.scratch {
            Some(path) => Scratch::at(path)?,
            None => Scratch::temporary()?,
        };
        tracing::info!(%interpreter, "steps run in a process that nothing keeps from the machine");
        let setup = Setup::new(interpreter, packages, self.limits, self.boot, self.modules);
        Python::start(Arc::new(setup), Arc::new(scratch), None)
    }

    fn interpreter(&self) -> Result<Interpreter, StartError> {
        match (&self.path, &self.venv) {
            (Some(path), _) => Interpreter::ask(path),
            (None, Some(venv)) => Interpreter::ask(&in_venv(venv)),
            (None, None) => Interpreter::newest(),
        }
    }
}

fn in_venv(venv: &Path) -> PathBuf {
    venv.join("bin/python")
}

/// The virtual environment that an interpreter is of.
fn venv_around(interpreter: &Path) -> Option<&Path> {
    let venv = interpreter.parent()?.parent()?;
    venv.join("pyvenv.cfg").is_file().then_some(venv)
}
