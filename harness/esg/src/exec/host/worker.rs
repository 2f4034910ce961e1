//! A worker process that speaks the protocol, from the host's side.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exec::caps::Caps;
use crate::exec::error::ExecError;
use crate::exec::limits::Limits;
use crate::exec::start_error::StartError;
use crate::exec::trust::{Isolation, Readable};
use crate::exec::wire::{Blob, Graft, Ran, RunStep, Swept, Sync, Synced, Value};
use crate::exec::{Executor, KillHandle};

use super::ending;
use super::frame::Bounds;
use super::launch::Launch;
use super::process::{Allowance, End, Fault, Group, Process};
use super::reply::{self, GraftReply, RunReply, SweepReply, SyncReply, ValueReply};
use super::request::{self, Nothing, WireGraft, WireRun, WireValue};
use super::scratch::{Loan, Scratch};
use super::spare::Spare;
use super::turn::turn;

/// The largest JSON part of a message, in bytes.
const JSON: usize = 16 << 20;

/// The largest value part of a message in either direction, in bytes.
const BLOBS: usize = 256 << 20;

const BOUNDS: Bounds = Bounds { json: JSON, blob: BLOBS };

/// How much of a `repr` is shown, in bytes.
const SHOWN: u64 = 64 * 1024;

/// A worker process that runs steps.
///
/// A step that loops, exhausts memory or crashes kills its worker and nothing else. The next call
/// continues in a fresh one, which is started ahead unless the executor says otherwise. Dropping it kills the
/// processes with their process groups, and removes the scratch directory unless you named one or a
/// stored graph keeps it.
///
/// If a worker exits while no step runs, the next call fails with an error for which
/// [`ExecError::lost`] holds.
#[derive(Debug)]
pub struct WorkerProcess {
    // Dropped in this order: the process and the one ready to replace it, the loan of its path, scratch.
    worker: Option<Process>,
    spare: Option<Spare>,
    /// Whether a spare is to be started after the next step.
    lacks_spare: bool,
    loan: Option<Loan>,
    scratch: Arc<Scratch>,
    launch: Arc<dyn Launch>,
    group: Arc<Group>,
    fingerprint: String,
}

impl WorkerProcess {
    pub(in crate::exec) fn start(
        launch: Arc<dyn Launch>,
        scratch: Arc<Scratch>,
        loan: Option<Loan>,
    ) -> Result<Self, StartError> {
        let (group, fingerprint) = (Arc::default(), fingerprint(&*launch, &scratch));
        let mut worker = Self {
            worker: None,
            spare: None,
            lacks_spare: false,
            loan,
            scratch,
            launch,
            group,
            fingerprint,
        };
        worker.ready()?;
        Ok(worker)
    }

    /// The directory that steps write to.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.scratch.path()
    }

    /// The process. Starts one if there is none.
    fn ready(&mut self) -> Result<&mut Process, StartError> {
        if self.worker.is_none() {
            self.lacks_spare = self.launch.has_spare() && self.loan.is_none();
            let work = self.scratch.path();
            if let Some(spare) = self.spare.take() {
                let may = service(&*self.launch);
                match spare.take_place(&*self.launch, &self.group, work.clone(), may) {
                    Ok(process) => return Ok(self.worker.insert(process)),
                    Err(fault) => tracing::warn!(?fault, "a worker that was started ahead failed"),
                }
            }
            self.scratch.clear().map_err(|source| StartError::Scratch {
                path: work.clone(),
                why: "failed to remove what an earlier worker left".to_owned(),
                source: Some(source),
            })?;
            let path = self.launch.program().to_owned();
            let scratch = work.to_str().ok_or_else(|| StartError::Scratch {
                path: work.clone(),
                why: "the path is not UTF-8".to_owned(),
                source: None,
            })?;
            let mut command = self.launch.command(scratch, &work)?;
            command.current_dir(&work);
            let process = Process::start(command, &self.group)
                .map_err(|source| StartError::Spawn { path, source })?;
            let process = greet(process, &*self.launch, scratch)?;
            return Ok(self.worker.insert(process));
        }
        // Checked above.
        self.worker.as_mut().ok_or_else(|| StartError::Worker {
            path: self.launch.program().to_owned(),
            what: "it is gone".to_owned(),
            errors: String::new(),
        })
    }

    /// Starts the process that replaces this one, if none is ready.
    fn prepare(&mut self) {
        if !std::mem::take(&mut self.lacks_spare) {
            return;
        }
        match Spare::start(&*self.launch, &self.scratch) {
            Ok(spare) => self.spare = Some(spare),
            Err(error) => tracing::warn!(%error, "failed to start a worker ahead"),
        }
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
        let may = service(&*self.launch);
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

impl Executor for WorkerProcess {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn caps(&self) -> Caps {
        Caps::new(Some(self.launch.isolation())).twins(self.loan.is_none())
    }

    fn readable(&self) -> Readable {
        self.launch.readable().clone()
    }

    fn keep_scratch(&mut self, dir: &Path) -> Result<(), ExecError> {
        self.check()?;
        if self.scratch.is_temporary() && self.loan.is_none() {
            let scratch = Scratch::at(dir).map_err(ExecError::kept)?;
            (self.worker, self.spare) = (None, None);
            self.scratch = Arc::new(scratch);
            self.fingerprint = fingerprint(&*self.launch, &self.scratch);
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
        let Limits { output, cpu, .. } = *self.launch.limits();
        let may = step(&*self.launch);
        let process = self.ready()?;
        let begun = Instant::now();
        let turned = turn::<RunReply>(process, "run", WireRun::from(request), &[], may);
        let took = begun.elapsed();
        let fault = match turned {
            Ok((reply, blob)) => match reply.into_ran(request.seq, &blob, output, took) {
                Ok(ran) => {
                    self.prepare();
                    return Ok(ran);
                }
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

    fn graft(&mut self, request: &Graft<'_>) -> Result<Option<Ran>, ExecError> {
        self.check()?;
        let (output, may) = (self.launch.limits().output, service(&*self.launch));
        let (body, blobs) = WireGraft::new(request);
        let begun = Instant::now();
        let (reply, blob) = match turn::<GraftReply>(self.ready()?, "graft", body, &blobs, may) {
            Ok(replied) => replied,
            Err(fault) => return Err(self.broke("graft", fault)),
        };
        let ran = reply.ran.map(|ran| ran.into_ran(request.seq, &blob, output, begun.elapsed()));
        ran.transpose().map_err(|what| self.broke("graft", Fault::Garbled(what)))
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
        let (launch, scratch) = (Arc::clone(&self.launch), Arc::clone(&self.scratch));
        // If it does not start, the loan ends, and this worker keeps its live values.
        match Self::start(launch, scratch, Some(loan)) {
            Ok(twin) => Ok(Box::new(twin)),
            Err(error) => Err(ExecError::kept(error)),
        }
    }
}

/// Whatever a step may find different in another worker. The path of a temporary directory is left
/// out, as it ends with the worker.
fn fingerprint(launch: &dyn Launch, scratch: &Scratch) -> String {
    let (kind, limits) = (launch.kind(), launch.limits());
    let place = match scratch.is_temporary() {
        true => "temporary".to_owned(),
        false => scratch.path().display().to_string(),
    };
    let isolation = match launch.isolation() {
        Isolation::Process => "process",
        Isolation::Kernel => "kernel",
    };
    format!("{kind} isolation {isolation} limits {limits:?} scratch {place}")
}

/// The limits for moving values.
fn service(launch: &dyn Launch) -> Allowance {
    Allowance { wall: launch.limits().service, cpu: None, bounds: BOUNDS, room: None }
}

/// The limits for a step.
fn step(launch: &dyn Launch) -> Allowance {
    let Limits { wall, cpu, scratch, scratch_files, .. } = *launch.limits();
    Allowance { wall, cpu: Some(cpu), bounds: BOUNDS, room: Some((scratch, scratch_files)) }
}

/// Sends the setup to a new process.
fn greet(mut process: Process, launch: &dyn Launch, scratch: &str) -> Result<Process, StartError> {
    let greeted = launch.opening(scratch, false).and_then(|opening| {
        let reply = process.turn(&opening.parts(), service(launch))?;
        launch.welcome(&opening, reply)
    });
    let Err(fault) = greeted else { return Ok(process) };
    let end = process.end(&fault);
    let path = launch.program().to_owned();
    if let Fault::Failed(what) = &fault
        && let Some((_, found)) = what.split_once("Unsuitable: ")
    {
        return Err(StartError::Differs { path, found: found.to_owned() });
    }
    let errors = end.errors.clone();
    let what = ending::words(&fault, Some(&end));
    Err(StartError::Worker { path, what, errors })
}
