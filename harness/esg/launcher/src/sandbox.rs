//! The sandbox from the outside: finds a launcher, and asks it.
use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::error::LaunchError;
use crate::layer::{Layer, Layers};
use crate::spec::{Spec, Task};
use crate::{ENTERED, MARK};

/// The file name of the launcher of this package.
const NAME: &str = "harness-esg-launcher";

/// Starts programs inside a sandbox. [`Sandbox`] is one; a container or a virtual machine may be another.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// What it protects on this machine.
    ///
    /// # Errors
    /// If it cannot be used at all.
    fn layers(&self) -> Result<Layers, LaunchError>;

    /// A command that starts the program inside the sandbox, or fails if a layer is missing. The caller
    /// sets the environment, the working directory and the pipes.
    ///
    /// # Errors
    /// If the program cannot be described to the launcher.
    fn command(&self, spec: &Spec) -> Result<Command, LaunchError>;
}

/// The sandbox of the Linux kernel.
///
/// ```no_run
/// use harness_esg_launcher::{Launcher, Sandbox, Spec};
///
/// harness_esg_launcher::enter();
/// let sandbox = Sandbox::find()?;
/// println!("{}", sandbox.layers()?);
/// let status = sandbox.command(&Spec::new("/usr/bin/true"))?.status()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Sandbox {
    launcher: PathBuf,
    layers: Vec<Layer>,
    namespaces: bool,
}

impl Sandbox {
    /// Uses the calling program as the launcher if it calls [`enter`](crate::enter), or the program
    /// `harness-esg-launcher` beside it or in `PATH`.
    ///
    /// # Errors
    /// If there is neither.
    pub fn find() -> Result<Self, LaunchError> {
        if ENTERED.load(Ordering::Acquire) {
            // Even if the file was replaced or removed meanwhile.
            return Ok(Self::at("/proc/self/exe"));
        }
        let found = beside().or_else(in_path).ok_or(LaunchError::NotFound)?;
        Ok(Self::at(found))
    }

    /// Uses the launcher at `path`: a program that calls [`enter`](crate::enter).
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { launcher: path.into(), layers: Layer::ALL.to_vec(), namespaces: true }
    }

    /// Turns a layer off. For tests which show that the layer is what denies something: untrusted code
    /// needs all of them.
    pub fn without(mut self, layer: Layer) -> Self {
        self.layers.retain(|one| *one != layer);
        self
    }

    /// Leaves namespaces out, as in a container that forbids them. Every layer holds without them, but see
    /// the guide on trust for what then is not contained.
    pub fn without_namespaces(mut self) -> Self {
        self.namespaces = false;
        self
    }

    fn task(&self, task: &Task) -> Result<Command, LaunchError> {
        let mut paths = task.read.iter().chain(&task.write);
        if let Some(path) = paths.find(|path| path.to_str().is_none()) {
            return Err(LaunchError::Path { path: path.clone() });
        }
        // Nothing else in it can fail.
        let json = serde_json::to_string(task).unwrap_or_default();
        let mut command = Command::new(&self.launcher);
        command.arg(MARK).arg(json);
        Ok(command)
    }

    /// Asks the launcher.
    fn ask(&self) -> Result<Layers, LaunchError> {
        let path = || self.launcher.clone();
        let (read, write) = (Vec::new(), Vec::new());
        let (layers, namespaces) = (self.layers.clone(), self.namespaces);
        let task = Task { layers, namespaces, read, write, threads: 1, report: true };
        let mut command = self.task(&task)?;
        command.env_clear().stdin(Stdio::null());
        let said =
            command.output().map_err(|source| LaunchError::Start { path: path(), source })?;
        serde_json::from_slice(&said.stdout).map_err(|_| LaunchError::Mute {
            path: path(),
            said: String::from_utf8_lossy(&said.stderr).trim_end().to_owned(),
        })
    }
}

impl Launcher for Sandbox {
    fn layers(&self) -> Result<Layers, LaunchError> {
        // What a machine has does not change while a process runs.
        static KNOWN: Mutex<BTreeMap<(PathBuf, Vec<Layer>, bool), Layers>> =
            Mutex::new(BTreeMap::new());
        let key = (self.launcher.clone(), self.layers.clone(), self.namespaces);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layers) = known.get(&key) {
            return Ok(layers.clone());
        }
        let layers = self.ask()?;
        known.insert(key, layers.clone());
        Ok(layers)
    }

    fn command(&self, spec: &Spec) -> Result<Command, LaunchError> {
        let Spec { program, args, read, write, threads } = spec;
        let task = Task {
            layers: self.layers.clone(),
            namespaces: self.namespaces,
            read: read.clone(),
            write: write.clone(),
            threads: *threads,
            report: false,
        };
        let mut command = self.task(&task)?;
        command.arg(program).args(args);
        Ok(command)
    }
}

/// The launcher in the directory of the calling program. Cargo puts tests and examples one below.
fn beside() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let folders = program.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join(NAME)).find(|path| is_program(path))
}

fn in_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(NAME)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
