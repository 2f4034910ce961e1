//! CPython: which interpreter, and how its worker is set up.
mod ambient;
mod hello;
mod interpreter;
mod launch;
mod packages;
pub(super) mod sources;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_esg_launcher::{Launcher, Sandbox};

pub use ambient::{Ambient, Strictness};
pub use interpreter::Interpreter;

use crate::exec::host::{Scratch, WorkerProcess};

use crate::exec::limits::Limits;
use crate::exec::start_error::StartError;
use crate::exec::trust::{Isolation, Readable, Trust};
use launch::{Rules, Setup};
use packages::Packages;

/// The configuration of a worker: a CPython, and what its steps may do.
///
/// Code is untrusted by default, and untrusted code needs kernel isolation.
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
    strictness: Strictness,
    ambient: Vec<Ambient>,
    launcher: Option<Arc<dyn Launcher>>,
    spare: bool,
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
            strictness: Strictness::default(),
            ambient: Vec::new(),
            launcher: None,
            spare: true,
            boot: sources::BOOT,
            modules: sources::MODULES,
        }
    }

    /// The newest of Python 3.13, 3.12 and 3.11 in `PATH`. The search happens at the start.
    pub fn find() -> Self {
        Self::new(None)
    }

    /// The interpreter at `path`: an executable, or a link or shim to one. If it belongs to a
    /// virtual environment, steps may import the packages installed there, as with
    /// [`venv`](Self::venv).
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::new(Some(path.into()))
    }

    /// Every interpreter in `PATH` that can run steps, newest first. Each is started once to ask
    /// for its version, which takes some milliseconds.
    #[must_use]
    pub fn all() -> Vec<Interpreter> {
        Interpreter::all()
    }

    /// The origin of the steps' code. Default: [`Trust::Untrusted`].
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// What isolates the steps from the machine. Default: [`Isolation::Kernel`] for untrusted code,
    /// [`Isolation::Process`] for yours.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// What starts the worker with [`Isolation::Kernel`]. Default:
    /// [`Sandbox::find`](crate::sandbox::Sandbox::find).
    pub fn launcher(mut self, launcher: impl Launcher + 'static) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }

    /// The resource limits of a step.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The directory for scratch. Steps see `work` in it, which then has the same path in every run
    /// and is not removed at the end. The directory must be empty or a former scratch directory:
    /// what was left in it is moved to `before`, replacing what is there.
    ///
    /// Default: the directory of the graph if it is [stored](crate::CodeGraph::open), or a
    /// temporary one, removed with the worker.
    pub fn scratch(mut self, dir: impl Into<PathBuf>) -> Self {
        self.scratch = Some(dir.into());
        self
    }

    /// A file or directory that steps may read, besides scratch. It must exist. With
    /// [`Isolation::Process`] nothing keeps steps from reading others.
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// The virtual environment whose packages steps may import. Its interpreter runs them, unless
    /// you name another of the same minor version.
    pub fn venv(mut self, path: impl Into<PathBuf>) -> Self {
        self.venv = Some(path.into());
        self
    }

    /// What of the state inside packages is compared. Default: [`Strictness::Packages`].
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Adds a channel for state inside a package.
    pub fn ambient(mut self, channel: Ambient) -> Self {
        self.ambient.push(channel);
        self
    }

    /// Whether a second process is started after the first step, and waits to take the place of the first
    /// one: when that is killed, or its values can no longer be used. It runs no step before. It takes some
    /// 20 MB of memory, and the processor for some 50 ms. Default: true.
    pub fn spare(mut self, spare: bool) -> Self {
        self.spare = spare;
        self
    }

    /// Replaces the worker's program, for tests of misbehaving workers.
    #[cfg(test)]
    pub(in crate::exec) fn speaking(
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
    /// If the code is untrusted and the isolation insufficient, if no interpreter or a given path
    /// is suitable, or if the process does not become a worker.
    pub fn start(self) -> Result<WorkerProcess, StartError> {
        let launcher = self.sandbox()?;
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
        let readable = match &launcher {
            Some(_) => self.below(&interpreter, &packages),
            None => {
                tracing::info!(%interpreter, "steps run in a process without kernel isolation");
                Readable::Everything
            }
        };
        let Self { limits, strictness, ambient, spare, .. } = self;
        let rules = Rules { strictness, ambient, readable, spare, launcher };
        let setup = Setup::new(interpreter, packages, limits, rules, self.boot, self.modules);
        WorkerProcess::start(Arc::new(setup), Arc::new(scratch), None)
    }

    /// What starts the worker inside a sandbox; `None` if it runs outside of one.
    fn sandbox(&self) -> Result<Option<Arc<dyn Launcher>>, StartError> {
        match (self.isolation, self.trust) {
            (Some(Isolation::Process) | None, Trust::Mine) => return Ok(None),
            (Some(Isolation::Process), Trust::Untrusted) => return Err(StartError::Unprotected),
            (Some(Isolation::Kernel), _) | (None, Trust::Untrusted) => {}
        }
        let failed = |source| StartError::Launcher { source };
        let launcher = match &self.launcher {
            Some(launcher) => Arc::clone(launcher),
            None => Arc::new(Sandbox::find().map_err(failed)?),
        };
        let missing = launcher.layers().map_err(failed)?.missing();
        if missing.is_empty() { Ok(Some(launcher)) } else { Err(StartError::Exposed { missing }) }
    }

    /// The files outside of scratch that steps in a sandbox may read.
    fn below(&self, interpreter: &Interpreter, packages: &Packages) -> Readable {
        let installed = [interpreter.prefix().to_owned()];
        // The sandbox lets every program read the system's libraries, but not all of the system.
        let installed = installed.into_iter().filter(|prefix| {
            !["/", "/usr", "/usr/local"].iter().any(|system| prefix == Path::new(system))
        });
        let paths = installed.chain(packages.path.iter().map(Into::into));
        let paths = paths.chain(packages.venv.clone()).chain(self.read_only.iter().cloned());
        // Rules refer to what a link leads to.
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Readable::Below(paths.map(real).collect())
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

/// The virtual environment that an interpreter belongs to.
fn venv_around(interpreter: &Path) -> Option<&Path> {
    let venv = interpreter.parent()?.parent()?;
    venv.join("pyvenv.cfg").is_file().then_some(venv)
}
