//! The worker that runs Python, from the host's side.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::model::Fingerprint;

use super::ambient::{Ambient, Strictness};
use super::caps::Caps;
use super::ending;
use super::error::ExecError;
use super::frame::{Bounds, HEAD, head};
use super::interpreter::Interpreter;
use super::limits::Limits;
use super::packages::Packages;
use super::process::{Allowance, End, Fault, Group, Process};
use super::reply::{self, Bad, HelloReply, RunReply, SweepReply, SyncReply, ValueReply};
use super::request::{
    self, Baseline, Envelope, Hello, Nothing, Ordered, PROTOCOL, WireLimits, WireRun, WireValue,
};
use super::scratch::{Loan, Scratch};
use super::start_error::StartError;
use super::trust::{Isolation, Readable};
use super::wire::{Blob, Ran, RunStep, Swept, Sync, Synced, Value};
use super::{Executor, KillHandle};

/// The largest JSON part of a message, in bytes.
const JSON: usize = 16 << 20;

/// The largest value part of a message in either direction, in bytes.
const BLOBS: usize = 256 << 20;

const BOUNDS: Bounds = Bounds { json: JSON, blob: BLOBS };

/// The size of a usual request, in bytes.
const ROOM: usize = 512;

/// How much of a `repr` is shown, in bytes.
const SHOWN: u64 = 64 * 1024;

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
        kept.get(&self.program()).cloned()
    }

    /// Keeps what a worker compiled before any step ran in it.
    fn keep(&self, compiled: Vec<u8>) {
        let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(self.program(), compiled.into());
    }

    /// The interpreter and the fingerprint of its modules.
    fn program(&self) -> (PathBuf, String) {
        (self.interpreter.path().to_owned(), self.kind.clone())
    }

    /// Whatever a step may find different in another worker. The path of a temporary directory is
    /// left out, as it ends with the worker.
    fn fingerprint(&self, scratch: &Scratch) -> String {
        let (kind, limits) = (&self.kind, &self.limits);
        let place = match scratch.is_temporary() {
            true => "temporary".to_owned(),
            false => scratch.path().display().to_string(),
        };
        format!("{kind} isolation process limits {limits:?} scratch {place}")
    }

    /// The limits for moving values.
    fn service(&self) -> Allowance {
        Allowance { wall: self.limits.service, cpu: None, bounds: BOUNDS }
    }

    /// The limits for a step.
    fn step(&self) -> Allowance {
        let Limits { wall, cpu, .. } = self.limits;
        Allowance { wall, cpu: Some(cpu), bounds: BOUNDS }
    }
}

/// A worker process that runs Python steps.
///
/// A step that loops, exhausts memory or crashes kills its worker and nothing else. The next call
/// starts a fresh one. Dropping it kills the process and its process group, and removes the scratch
/// directory unless you named one or a stored graph keeps it.
///
/// If a worker exits while no step runs, the next call fails with an error for which
/// [`ExecError::lost`] holds.
#[derive(Debug)]
pub struct Python {
    // Dropped in this order: the process, the loan of its path, scratch.
    worker: Option<Process>,
    loan: Option<Loan>,
    scratch: Arc<Scratch>,
    setup: Arc<Setup>,
    group: Arc<Group>,
    fingerprint: String,
}

impl Python {
    pub(super) fn start(
        setup: Arc<Setup>,
        scratch: Arc<Scratch>,
        loan: Option<Loan>,
    ) -> Result<Self, StartError> {
        let (group, fingerprint) = (Arc::default(), setup.fingerprint(&scratch));
        let mut python = Self { worker: None, loan, scratch, setup, group, fingerprint };
        python.ready()?;
        Ok(python)
    }

    /// The directory that steps write to.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.scratch.path()
    }

    /// The process. Starts one if there is none.
    fn ready(&mut self) -> Result<&mut Process, StartError> {
        if self.worker.is_none() {
            let work = self.scratch.path();
            self.scratch.clear().map_err(|source| StartError::Scratch {
                path: work.clone(),
                why: "failed to remove what an earlier worker left".to_owned(),
                source: Some(source),
            })?;
            let path = self.setup.interpreter.path().to_owned();
            let scratch = work.to_str().ok_or_else(|| StartError::Scratch {
                path: work.clone(),
                why: "the path is not UTF-8".to_owned(),
                source: None,
            })?;
            let env = environment(scratch);
            let mut command = Command::new(&path);
            // No `-I`: it would ignore the hash seed, and sets would be ordered differently in each
            // process. The environment is cleared, so `-I` would change nothing else.
            command.args(["-P", "-s", "-S", "-B", "-c", self.setup.boot]);
            command.env_clear().envs(env).current_dir(&work);
            let process = Process::start(command, &self.group)
                .map_err(|source| StartError::Spawn { path, source })?;
            let process = greet(process, &self.setup, scratch, &env)?;
            return Ok(self.worker.insert(process));
        }
        // Checked above.
        self.worker.as_mut().ok_or_else(|| StartError::Worker {
            path: self.setup.interpreter.path().to_owned(),
            what: "it is gone".to_owned(),
            errors: String::new(),
        })
    }

    /// Fails if this worker may not be used now.
    fn check(&self) -> Result<(), ExecError> {
        if self.loan.is_none() && self.scratch.is_lent() {
            let message = "a twin works at this worker's scratch path; drop the twin first";
            return Err(ExecError::new(message));
        }
        Ok(())
    }

    /// Kills the process.
    fn end(&mut self, fault: &Fault) -> Option<End> {
        self.worker.take().map(|process| process.end(fault))
    }

    /// One turn outside a step.
    fn serve<T: DeserializeOwned>(
        &mut self,
        op: &str,
        body: impl Serialize,
        blobs: &[&Blob],
    ) -> Result<T, ExecError> {
        let may = self.setup.service();
        let process = self.ready()?;
        match turn(process, op, body, blobs, may) {
            Ok((reply, _)) => Ok(reply),
            Err(fault) => Err(self.broke(op, fault)),
        }
    }

    /// The worker broke down while no step ran.
    fn broke(&mut self, op: &str, fault: Fault) -> ExecError {
        let end = self.end(&fault);
        ending::outside(op, fault, end).with_loss()
    }
}

impl Executor for Python {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn caps(&self) -> Caps {
        Caps::new(Some(Isolation::Process)).twins(self.loan.is_none())
    }

    fn readable(&self) -> Readable {
        self.setup.rules.readable.clone()
    }

    fn keep_scratch(&mut self, dir: &Path) -> Result<(), ExecError> {
        self.check()?;
        if self.scratch.is_temporary() && self.loan.is_none() {
            let scratch = Scratch::at(dir).map_err(ExecError::kept)?;
            self.worker = None;
            self.scratch = Arc::new(scratch);
            self.fingerprint = self.setup.fingerprint(&self.scratch);
        }
        Ok(())
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        self.check()?;
        self.worker = None;
        self.ready()?;
        Ok(())
    }

    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        self.check()?;
        let mut synced = Synced::default();
        for (message, blobs) in request::messages(request, BLOBS) {
            let reply: SyncReply = self.serve("sync", message, &blobs)?;
            synced.failed.extend(Synced::from(reply).failed);
        }
        Ok(synced)
    }

    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        self.check()?;
        let Limits { output, cpu, .. } = self.setup.limits;
        let may = self.setup.step();
        let process = self.ready()?;
        let begun = Instant::now();
        let turned = turn::<RunReply>(process, "run", WireRun::from(request), &[], may);
        let took = begun.elapsed();
        let fault = match turned {
            Ok((reply, blob)) => match reply.into_ran(request.seq, &blob, output, took) {
                Ok(ran) => return Ok(ran),
                Err(what) => Fault::Garbled(what),
            },
            // The step did not start.
            Err(fault @ (Fault::Before(_) | Fault::System(_))) => {
                return Err(self.broke("run", fault));
            }
            Err(fault) => fault,
        };
        let end = self.end(&fault);
        Ok(reply::lost(ending::of_step(fault, end, cpu), took))
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        self.check()?;
        let reply: SweepReply = self.serve("sweep", Nothing {}, &[])?;
        reply.into_swept().map_err(|what| self.broke("sweep", Fault::Garbled(what)))
    }

    fn value(&mut self, name: &str) -> Result<Value, ExecError> {
        self.check()?;
        let reply: ValueReply = self.serve("value", WireValue { name, limit: SHOWN }, &[])?;
        let absent = || ExecError::new(format!("failed to show a value: `{name}` is not live"));
        reply.into_value().ok_or_else(absent)
    }

    fn kill_handle(&self) -> KillHandle {
        let group = Arc::clone(&self.group);
        KillHandle::new(move || group.kill())
    }

    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        self.check()?;
        let taken = || ExecError::new("a twin has no twin; ask the worker that it is a twin of");
        if self.loan.is_some() {
            return Err(taken());
        }
        let unmoved = |error| ExecError::io("failed to move scratch aside for a twin", error);
        let loan = self.scratch.lend().map_err(unmoved)?.ok_or_else(taken)?;
        let (setup, scratch) = (Arc::clone(&self.setup), Arc::clone(&self.scratch));
        // If it does not start, the loan ends, and this worker keeps its live values.
        match Self::start(setup, scratch, Some(loan)) {
            Ok(twin) => Ok(Box::new(twin)),
            Err(error) => Err(ExecError::kept(error)),
        }
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

/// Sends the setup to a new process.
fn greet(
    mut process: Process,
    setup: &Setup,
    scratch: &str,
    env: &[(&str, &str)],
) -> Result<Process, StartError> {
    // Compiled modules need no source.
    let compiled = setup.compiled();
    let hello = Hello {
        protocol: PROTOCOL,
        sources: Ordered(if compiled.is_some() { &[] } else { setup.modules }),
        keep: compiled.is_none(),
        scratch,
        baseline: Baseline { env: Ordered(env), path: &setup.packages.path },
        limits: WireLimits::from(&setup.limits),
        strictness: setup.rules.strictness.name(),
        ambient: setup.rules.ambient.iter().map(Ambient::parts).collect(),
    };
    let blobs: Vec<&Blob> = compiled.iter().collect();
    let fault = match turn::<HelloReply>(&mut process, "hello", hello, &blobs, setup.service()) {
        Ok((reply, blob)) => {
            let [major, minor, patch] = setup.interpreter.version();
            let expected = format!("{major}.{minor}.{patch}");
            if reply.protocol == PROTOCOL && reply.python == expected {
                if !blob.is_empty() {
                    setup.keep(blob);
                }
                return Ok(process);
            }
            let HelloReply { python, protocol } = reply;
            let expected = format!("Python {expected} with protocol {PROTOCOL}");
            Fault::Garbled(format!(
                "it is Python {python} with protocol {protocol}, not {expected}"
            ))
        }
        Err(fault) => fault,
    };
    let end = process.end(&fault);
    let errors = end.errors.clone();
    let what = ending::words(&fault, Some(&end));
    Err(StartError::Worker { path: setup.interpreter.path().to_owned(), what, errors })
}

/// Sends one request and parses the reply.
fn turn<T: DeserializeOwned>(
    process: &mut Process,
    op: &str,
    body: impl Serialize,
    blobs: &[&Blob],
    may: Allowance,
) -> Result<(T, Vec<u8>), Fault> {
    let nonce = Uuid::new_v4().simple().to_string();
    // One write, which wakes the other side once.
    let mut first = Vec::with_capacity(ROOM);
    first.extend_from_slice(&[0; HEAD]);
    serde_json::to_writer(&mut first, &Envelope { op, nonce: &nonce, body })
        .map_err(|error| Fault::System(error.into()))?;
    let length = blobs.iter().map(|blob| blob.len()).sum();
    let head = head(first.len() - HEAD, length)
        .ok_or_else(|| Fault::System(std::io::Error::other("a request of more than 4 GiB")))?;
    first[..HEAD].copy_from_slice(&head);
    let mut parts: Vec<&[u8]> = vec![&first];
    parts.extend(blobs.iter().map(|blob| &***blob));
    let message = process.turn(&parts, may)?;
    match reply::parse(&message.json, op, &nonce) {
        Ok(reply) => Ok((reply, message.blob)),
        Err(Bad::Failed(what)) => Err(Fault::Failed(what)),
        Err(Bad::Reply(what)) => Err(Fault::Garbled(what)),
    }
}
