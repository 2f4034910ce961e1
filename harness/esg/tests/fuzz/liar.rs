//! A worker that lies, to test that lies are found.
use std::collections::BTreeMap;

use harness_esg::{
    Caps, Entity, ExecError, Executor, KillHandle, Member, Ran, RunStep, Swept, Sync, Synced,
    Value, WorkerProcess,
};

/// The kind of lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lie {
    /// Changed outputs of a step are reported as its first ones.
    NothingChanged,
    /// One of the names that a step read is missing.
    ReadLeftOut,
}

#[derive(Debug)]
pub(crate) struct Liar {
    worker: WorkerProcess,
    lie: Lie,
    first: BTreeMap<(String, Entity), Member>,
}

impl Liar {
    pub(crate) fn new(worker: WorkerProcess, lie: Lie) -> Self {
        Self { worker, lie, first: BTreeMap::new() }
    }
}

impl Executor for Liar {
    fn fingerprint(&self) -> &str {
        self.worker.fingerprint()
    }

    fn caps(&self) -> Caps {
        self.worker.caps()
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        self.worker.fresh()
    }

    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        self.worker.sync(request)
    }

    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        let mut ran = self.worker.run(request)?;
        match self.lie {
            Lie::ReadLeftOut => {
                let name = ran.reads.iter().rfind(|read| matches!(read, Entity::Name(_))).cloned();
                name.map(|name| ran.reads.remove(&name));
            }
            Lie::NothingChanged => {
                for member in ran.units.iter_mut().flat_map(|(unit, _)| &mut unit.members) {
                    let key = (request.step.to_owned(), member.entity.clone());
                    let first = self.first.entry(key).or_insert_with(|| member.clone());
                    if first.refs == member.refs {
                        member.own = first.own;
                    }
                }
            }
        }
        Ok(ran)
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        self.worker.sweep()
    }

    fn value(&mut self, name: &str) -> Result<Value, ExecError> {
        self.worker.value(name)
    }

    fn kill_handle(&self) -> KillHandle {
        self.worker.kill_handle()
    }

    /// The twin is honest.
    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        self.worker.twin()
    }
}
