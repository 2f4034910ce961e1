//! Each promise has an executor that breaks it, and the suite finds out.
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ExecutorContract, Sources};
use crate::exec::{
    Caps, Ending, ExecError, Executor, KillHandle, Load, Ran, RunStep, Swept, Sync, Synced, Value,
    Wrote,
};
use crate::model::{Entity, Fingerprint};
use crate::testing::TinyWorker;

/// Breaks one promise of a right executor.
#[derive(Debug)]
struct Wrong {
    inner: Box<dyn Executor>,
    clause: &'static str,
    fingerprint: String,
    id: u64,
}

impl Wrong {
    fn new(inner: impl Executor + 'static, clause: &'static str) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let mut fingerprint = inner.fingerprint().to_owned();
        if clause == "fingerprint-is-of-the-kind" {
            fingerprint = format!("{fingerprint} {id}");
        }
        Self { inner: Box::new(inner), clause, fingerprint, id }
    }
}

impl Executor for Wrong {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        if self.clause == "fresh-holds-nothing" { Ok(()) } else { self.inner.fresh() }
    }

    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        let mut request = request.clone();
        match self.clause {
            "dropped-is-gone" => request.drop.clear(),
            "stashed-comes-back" => {
                for unit in &mut request.unstash {
                    unit.members.retain(|one| *one != Entity::name("ys"));
                }
            }
            "stored-loads-elsewhere" => request.load.clear(),
            // One object for each name.
            "sharing-is-restored" => {
                let each = |load: Load| {
                    let one = |name: &Entity| Load { take: vec![name.clone()], ..load.clone() };
                    load.take.iter().map(one).collect::<Vec<_>>()
                };
                request.load =
                    std::mem::take(&mut request.load).into_iter().flat_map(each).collect();
            }
            _ => {}
        }
        let mut synced = self.inner.sync(&request)?;
        if self.clause == "damaged-form-fails-alone" {
            synced.failed.clear();
        }
        Ok(synced)
    }

    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        let mut request = request.clone();
        if self.clause == "readings-are-recorded-and-replayed" {
            request.readings = None;
        }
        let mut ran = self.inner.run(&request)?;
        let units = ran.units.iter_mut().map(|(unit, _)| unit);
        match self.clause {
            "binding-is-reported" => ran.wrote.retain(|_, how| *how != Wrote::Bound),
            "read-is-reported" if ran.ending.is_ok() => ran.reads.clear(),
            "own-binding-is-no-read" => ran.reads.extend(ran.wrote.keys().cloned()),
            "missing-name-is-a-read" if !ran.ending.is_ok() => ran.reads.clear(),
            "deletion-is-reported" => ran.wrote.retain(|_, how| *how != Wrote::Deleted),
            "change-in-place-is-reported" => ran.wrote.retain(|_, how| *how != Wrote::Mutated),
            "shared-objects-are-one-unit" => units.for_each(|unit| unit.share.clear()),
            "keys-are-new" => units.for_each(|unit| unit.key = "1.0".into()),
            "equal-content-has-equal-fingerprints" => {
                let own = Fingerprint::of(&[&self.id.to_le_bytes(), &request.seq.to_le_bytes()]);
                units.flat_map(|unit| &mut unit.members).for_each(|member| member.own = own);
            }
            "failure-names-what-is-dirty" => ran.dirty.clear(),
            "input-is-bound" if request.bind.is_some() => ran.wrote.clear(),
            "output-is-kept" => ran.stdout.bytes.clear(),
            "untracked-is-reported" => ran.untracked.clear(),
            "unserializable-says-so" => units.for_each(|unit| unit.unserializable = None),
            "lost-worker-says-so" => {
                ran.lost &= !matches!(ran.ending, Ending::Crashed { signal: Some(11), .. });
            }
            "kill-ends-the-step" => {
                ran.lost &= !matches!(ran.ending, Ending::Crashed { signal: Some(9), .. });
            }
            "files-are-tracked" => ran.wrote.retain(|one, _| !matches!(one, Entity::File(_))),
            _ => {}
        }
        Ok(ran)
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        let mut swept = self.inner.sweep()?;
        if self.clause == "sweep-shows-everything" {
            swept.units.pop();
        }
        Ok(swept)
    }

    fn value(&mut self, name: &str) -> Result<Value, ExecError> {
        match self.inner.value(name) {
            Err(_) if self.clause == "absent-value-is-an-error" => {
                Ok(Value { repr: "None".into(), type_name: "NoneType".into(), json: None })
            }
            value => value,
        }
    }

    fn kill_handle(&self) -> KillHandle {
        self.inner.kill_handle()
    }

    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        match self.clause {
            "twin-is-fresh-and-equal" => {
                Ok(Box::new(Self::new(TinyWorker::new(), "fingerprint-is-of-the-kind")))
            }
            _ => self.inner.twin(),
        }
    }
}

#[test]
fn the_tiny_worker_keeps_every_promise() {
    let report = ExecutorContract::new(Sources::tiny(), || Ok(TinyWorker::new())).check();
    assert!(report.is_kept(), "{report}");
    let skipped: Vec<_> = report.skipped.iter().map(|(name, _)| *name).collect();
    assert_eq!(skipped, ["files-are-tracked"]);
}

#[test]
fn every_promise_has_an_executor_that_breaks_it() {
    for clause in ExecutorContract::clauses().filter(|name| *name != "files-are-tracked") {
        let start = move || Ok(Wrong::new(TinyWorker::new(), clause));
        let report = ExecutorContract::new(Sources::tiny(), start).check();
        assert!(report.broken.iter().any(|(name, _)| *name == clause), "{clause}: {report}");
        // One that breaks everything would prove little.
        assert!(report.broken.len() <= 7, "{clause}: {report}");
    }
}

#[cfg(unix)]
#[test]
fn every_python_keeps_every_promise() {
    let mut minors = std::collections::BTreeSet::new();
    let all = crate::CPython::all();
    for python in all.iter().filter(|python| minors.insert(python.version()[1])) {
        let path = python.path().to_owned();
        let start = move || Ok(crate::CPython::at(&path).trust(crate::Trust::Mine).start()?);
        let report = ExecutorContract::new(Sources::python(), start).check();
        assert!(report.is_kept() && report.skipped.is_empty(), "{python}: {report}");
    }
    assert!(!minors.is_empty(), "no CPython from 3.11 to 3.13 in PATH");
}

#[cfg(unix)]
#[test]
fn a_worker_that_misses_files_is_found() {
    let start = || {
        let python = crate::CPython::find().trust(crate::Trust::Mine).start()?;
        Ok(Wrong::new(python, "files-are-tracked"))
    };
    let contract = ExecutorContract::new(Sources::python(), start).only(["files-are-tracked"]);
    let report = contract.check();
    assert_eq!(report.broken.len(), 1, "{report}");
}
