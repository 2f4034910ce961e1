//! How to start a worker of CPython.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use harness_esg_launcher::{Launcher, Spec};

use crate::exec::host::request::{PROTOCOL, WireLimits};
use crate::exec::host::{Fault, Launch, Message, Opening};
use crate::exec::limits::Limits;
use crate::exec::start_error::StartError;
use crate::exec::trust::{Isolation, Readable};
use crate::exec::wire::Blob;
use crate::model::Fingerprint;

use super::ambient::{Ambient, Strictness};
use super::hello::{Baseline, Hello, HelloReply, Ordered};
use super::interpreter::Interpreter;
use super::packages::Packages;

/// The worker's modules, compiled, by interpreter and version. Each interpreter compiles them once
/// per host process.
static COMPILED: Mutex<BTreeMap<(PathBuf, String), Blob>> = Mutex::new(BTreeMap::new());

/// The setup of a worker and its successors.
#[derive(Debug)]
pub(super) struct Setup {
    interpreter: Interpreter,
    packages: Packages,
    limits: Limits,
    rules: Rules,
    boot: &'static str,
    modules: &'static [(&'static str, &'static str)],
    /// The interpreter, the packages, and the worker's program.
    kind: String,
}

/// What counts as state, and what steps may read.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) strictness: Strictness,
    pub(super) ambient: Vec<Ambient>,
    pub(super) readable: Readable,
    /// Whether a second process is started ahead.
    pub(super) spare: bool,
    /// What starts the process inside a sandbox.
    pub(super) launcher: Option<Arc<dyn Launcher>>,
}

impl Setup {
    pub(super) fn new(
        interpreter: Interpreter,
        packages: Packages,
        limits: Limits,
        rules: Rules,
        boot: &'static str,
        modules: &'static [(&'static str, &'static str)],
    ) -> Self {
        let mut program = vec![boot.as_bytes()];
        program
            .extend(modules.iter().flat_map(|(name, source)| [name.as_bytes(), source.as_bytes()]));
        let [major, minor, patch] = interpreter.version();
        let mut kind = format!(
            "cpython {major}.{minor}.{patch} protocol {PROTOCOL} worker {} prefix {}",
            Fingerprint::of(&program),
            interpreter.prefix().display(),
        );
        if !packages.path.is_empty() {
            let names: Vec<_> = packages.distributions.iter().map(|name| name.as_bytes()).collect();
            // Writing to a string cannot fail.
            let _ = write!(kind, " packages {}", Fingerprint::of(&names));
        }
        if rules.strictness != Strictness::default() {
            let _ = write!(kind, " strictness {}", rules.strictness.name());
        }
        if !rules.ambient.is_empty() {
            let parts: Vec<_> =
                rules.ambient.iter().flat_map(Ambient::parts).map(str::as_bytes).collect();
            let _ = write!(kind, " ambient {}", Fingerprint::of(&parts));
        }
        Self { interpreter, packages, limits, rules, boot, modules, kind }
    }

    /// The modules as an earlier worker of this process compiled them.
    fn compiled(&self) -> Option<Blob> {
        let kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&self.compiled_for()).cloned()
    }

    /// Keeps what a worker compiled before any step ran in it.
    fn keep(&self, compiled: Vec<u8>) {
        let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(self.compiled_for(), compiled.into());
    }

    /// The interpreter and the fingerprint of its modules.
    fn compiled_for(&self) -> (PathBuf, String) {
        (self.interpreter.path().to_owned(), self.kind.clone())
    }
}

impl Launch for Setup {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn readable(&self) -> &Readable {
        &self.rules.readable
    }

    fn program(&self) -> &Path {
        self.interpreter.path()
    }

    fn has_spare(&self) -> bool {
        self.rules.spare
    }

    fn isolation(&self) -> Isolation {
        match self.rules.launcher {
            Some(_) => Isolation::Kernel,
            None => Isolation::Process,
        }
    }

    fn command(&self, scratch: &str, folder: &Path) -> Result<Command, StartError> {
        // No `-I`: it would ignore the hash seed, and sets would be ordered differently in each
        // process. The environment is cleared, so `-I` would change nothing else.
        let args = ["-P", "-s", "-S", "-B", "-c", self.boot];
        let program = self.interpreter.path();
        let mut command = match &self.rules.launcher {
            None => {
                let mut command = Command::new(program);
                command.args(args);
                command
            }
            Some(launcher) => {
                let mut spec = Spec::new(program);
                spec.args = args.map(Into::into).into();
                if let Readable::Below(paths) = &self.rules.readable {
                    spec.read.clone_from(paths);
                }
                spec.write.push(folder.to_owned());
                spec.threads = self.limits.threads;
                launcher.command(&spec).map_err(|source| StartError::Launcher { source })?
            }
        };
        command.env_clear().envs(environment(scratch));
        Ok(command)
    }

    fn opening(&self, scratch: &str, waits: bool) -> Result<Opening, Fault> {
        let env = environment(scratch);
        // Compiled modules need no source.
        let compiled = self.compiled();
        let hello = Hello {
            protocol: PROTOCOL,
            sources: Ordered(if compiled.is_some() { &[] } else { self.modules }),
            keep: compiled.is_none(),
            waits,
            scratch,
            baseline: Baseline { env: Ordered(&env), path: &self.packages.path },
            limits: WireLimits::from(&self.limits),
            strictness: self.rules.strictness.name(),
            ambient: self.rules.ambient.iter().map(Ambient::parts).collect(),
        };
        Opening::new(hello, compiled)
    }

    fn welcome(&self, opening: &Opening, reply: Message) -> Result<(), Fault> {
        let (HelloReply { python, protocol }, blob) = opening.reply(reply)?;
        let [major, minor, patch] = self.interpreter.version();
        let expected = format!("{major}.{minor}.{patch}");
        if protocol != PROTOCOL || python != expected {
            let expected = format!("Python {expected} with protocol {PROTOCOL}");
            return Err(Fault::Garbled(format!(
                "it is Python {python} with protocol {protocol}, not {expected}"
            )));
        }
        if !blob.is_empty() {
            self.keep(blob);
        }
        Ok(())
    }
}

/// The environment of a worker. Except for the path it is the same for every user and machine.
fn environment(scratch: &str) -> [(&'static str, &str); 7] {
    [
        ("HOME", scratch),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        ("PYTHONHASHSEED", "0"),
        ("TMPDIR", scratch),
        ("TZ", "UTC"),
    ]
}
