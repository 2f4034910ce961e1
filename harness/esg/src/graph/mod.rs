//! A program, its executions, and its worker.
mod compare;
mod draw;
mod kept;
mod lines;
mod plan;
mod probe;
mod query;
mod recorded;
mod traced;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use compare::Verdict;
pub use plan::Plan;
pub use query::{Chain, Credit, Effect, Link, RanAt, Subject, Touched};
pub use traced::TracedEdge;

use super::blobs::{BlobLimits, Blobs};
use super::cipher::Cipher;
use super::error::EsgError;
use super::exec::{Executor, KillHandle, Value};
use super::ledger::{Journal, Ledger, Record};
use super::model::Entity;
use super::program::{Edit, INPUT, Program, ProgramError};
use super::replay::{Engine, Options, Planned, Report};
use super::state::State;
use super::trace::Execution;
use kept::DirJournal;
use traced::Seen;

/// How long a value that nothing refers to is kept.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// A program whose steps run in a worker. After an edit it runs only the affected steps again.
///
/// [`replay`](Self::replay) leaves the state that running every step in a fresh worker would leave,
/// in everything that is tracked: names and what they share, classes, attributes of modules, files
/// in scratch, random state, working directory, environment, output. A step that touches anything
/// else is reported, and runs again when anything before it did.
pub struct CodeGraph {
    engine: Engine,
    /// The state after the last replay.
    state: State,
    options: Options,
    /// Whether the values of no other graph are in the blob store.
    owns_blobs: bool,
    /// The last recorded effects of each step, from which its edges follow.
    seen: HashMap<Arc<str>, Seen>,
}

impl CodeGraph {
    /// A graph in memory.
    #[must_use]
    pub fn new(program: Program, executor: impl Executor + 'static, blobs: Blobs) -> Self {
        Self::resume(program.into(), executor, blobs)
    }

    /// The graph whose ledger this is. What was executed before does not run again, as far as `blobs`
    /// has its values and the worker is of the same kind.
    #[must_use]
    pub fn resume(ledger: Ledger, executor: impl Executor + 'static, blobs: Blobs) -> Self {
        let mut graph = Self {
            engine: Engine::new(ledger, Box::new(executor), blobs),
            state: State::default(),
            options: Options { stop_on_failure: false, sweep: true },
            owns_blobs: false,
            seen: HashMap::new(),
        };
        graph.take_in();
        graph
    }

    /// Stores every later record in `journal`, before it counts. Values are flushed before the record
    /// that refers to them.
    ///
    /// The journal holds the ledger so far: append [`Ledger::snapshot`] to an empty one.
    #[must_use]
    pub fn with_journal(mut self, journal: impl Journal + 'static) -> Self {
        self.engine.journal = Some(Box::new(journal));
        self
    }

    /// A graph stored in `dir`: its program, its executions and their values. What an earlier
    /// process completed there does not run again. A new directory holds an empty program.
    ///
    /// The scratch directory of the steps is in `dir` too, unless the executor has one that you
    /// named. So paths in values lead to the same files in the next process.
    ///
    /// # Errors
    /// If the directory cannot be read or written, is in use by another process, or is damaged.
    pub fn open(
        dir: impl AsRef<Path>,
        executor: impl Executor + 'static,
    ) -> Result<Self, EsgError> {
        Self::open_in(dir.as_ref(), executor, None)
    }

    /// As [`open`](Self::open), in a directory that holds nothing of the program in plain: sources,
    /// inputs, values, output and files are encrypted before they are written. A new directory is
    /// encrypted from the beginning; one that is not encrypted cannot be opened so.
    ///
    /// The scratch directory, in which the steps run, is plain while the graph is open, and is emptied
    /// when the graph is dropped. A process that is killed leaves it, until the next one opens the graph:
    /// a file is unlinked then, and its blocks are not overwritten. A scratch directory that you
    /// [named](crate::CPython::scratch) is yours to empty.
    ///
    /// What can be seen is how many records and values there are, how long each is and when it was
    /// written, and the ids of keys. Someone who may write to the directory can remove records from the end of
    /// the journal, or restore an older copy of it.
    ///
    /// # Errors
    /// As [`open`](Self::open). If a key is missing or is another one, the error has a
    /// [`cipher_error`](EsgError::cipher_error) that names the key, and nothing has changed.
    pub fn open_encrypted(
        dir: impl AsRef<Path>,
        executor: impl Executor + 'static,
        cipher: impl Cipher + 'static,
    ) -> Result<Self, EsgError> {
        Self::open_in(dir.as_ref(), executor, Some(Arc::new(cipher)))
    }

    fn open_in(
        dir: &Path,
        mut executor: impl Executor + 'static,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Result<Self, EsgError> {
        let (mut journal, records) = DirJournal::open(dir, cipher.clone())?;
        let (blobs, scratch) = (dir.join("blobs"), dir.join("scratch"));
        let blobs = match cipher {
            Some(cipher) => {
                let blobs = Blobs::dir_encrypted(blobs, BlobLimits::default(), cipher)?;
                journal.clear_scratch(&scratch)?;
                blobs
            }
            None => Blobs::dir(blobs)?,
        };
        executor.keep_scratch(&scratch)?;
        let ledger = Ledger::fold(&records)?;
        let graph = Self::resume(ledger, executor, blobs).with_journal(journal);
        Ok(Self { owns_blobs: true, ..graph })
    }

    /// What is known of the program: its versions, its executions and its replays.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.engine.ledger
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.engine.ledger.program()
    }

    /// Changes the program. If `edit` fails, or its changes cannot be stored, none of them apply.
    ///
    /// # Errors
    /// The error of `edit`, or a failure to store the changes.
    pub fn edit<T>(
        &mut self,
        edit: impl FnOnce(&mut Edit<'_>) -> Result<T, ProgramError>,
    ) -> Result<T, EsgError> {
        let Engine { ledger, journal, .. } = &mut self.engine;
        let mut changes = Edit::new(&mut ledger.program);
        let done = edit(&mut changes).map_err(EsgError::from).and_then(|answer| {
            let operations = changes.changes().iter().cloned();
            let records: Vec<_> = operations.map(Record::Edited).collect();
            match journal {
                Some(journal) if !records.is_empty() => journal.append(&records)?,
                _ => {}
            }
            Ok(answer)
        });
        match done {
            Ok(_) => {
                changes.keep();
                let steps = self.planned();
                self.engine.notice(&steps);
            }
            Err(_) => {
                drop(changes);
                self.take_in();
            }
        }
        done
    }

    /// Whether the steps after a failed one do not run. Without this they run, and fail or succeed
    /// by themselves.
    #[must_use]
    pub fn stop_on_failure(mut self, stop: bool) -> Self {
        self.options.stop_on_failure = stop;
        self
    }

    /// Whether each replay ends with a sweep: an inspection of everything live, for unattributed
    /// changes. On by default.
    #[must_use]
    pub fn sweep(mut self, sweep: bool) -> Self {
        self.options.sweep = sweep;
        self
    }

    /// Runs the steps whose executions are no longer valid.
    ///
    /// # Errors
    /// If the worker fails, or nothing can be stored. Completed executions are kept.
    pub fn replay(&mut self) -> Result<Report, EsgError> {
        let steps = self.planned();
        self.replay_steps(&steps)
    }

    /// As [`replay`](Self::replay), up to and including `step`.
    ///
    /// # Errors
    /// As [`replay`](Self::replay), or if there is no such step.
    pub fn replay_to(&mut self, step: &str) -> Result<Report, EsgError> {
        self.program().step(step)?;
        let mut steps = self.planned();
        if let Some(at) = steps.iter().position(|one| &*one.id == step) {
            steps.truncate(at + 1);
        }
        self.replay_steps(&steps)
    }

    fn replay_steps(&mut self, steps: &[Planned]) -> Result<Report, EsgError> {
        let (report, state) = self.engine.replay(steps, self.options)?;
        self.state = state;
        self.take_in();
        if self.engine.ledger.is_long()
            && let Err(error) = self.compact()
        {
            // Nothing is lost: both are only larger than they need to be.
            tracing::warn!(%error, "failed to remove what is no longer needed");
        }
        Ok(report)
    }

    /// Discards what only replays of long ago used, in the ledger and its journal, and the values that
    /// nothing refers to any more if the graph is [stored](Self::open) in a directory. Replays do so
    /// now and then by themselves. Versions of the program stay.
    ///
    /// # Errors
    /// If the journal cannot be written or values cannot be removed. Nothing that is needed is lost.
    pub fn compact(&mut self) -> Result<(), EsgError> {
        let snapshot = self.engine.ledger.snapshot();
        self.engine.commit(Record::Snapshot(snapshot))?;
        self.take_in();
        if self.owns_blobs {
            self.engine.blobs.sweep(self.engine.ledger.blobs(), GRACE)?;
        }
        Ok(())
    }

    /// Makes `step` run at the next replay in any case.
    ///
    /// # Errors
    /// If there is no such step, or this cannot be stored.
    pub fn invalidate(&mut self, step: &str) -> Result<(), EsgError> {
        let id = self.program().step(step)?.id.clone();
        self.engine.commit(Record::Invalid(id))
    }

    /// The value of a name after the last replay. An unserializable value is made again if
    /// necessary.
    ///
    /// # Errors
    /// If the name is not bound, or the worker fails.
    pub fn value(&mut self, name: &str) -> Result<Value, EsgError> {
        let entity = Entity::name(name);
        if self.state.slot(&entity).is_none() {
            let names = self.state.entities().filter_map(|(entity, _)| entity.as_name());
            return Err(EsgError::unbound(name, crate::text::near(name, names)));
        }
        let steps = self.planned();
        let only = BTreeSet::from([entity]);
        let (state, only) = (&mut self.state, Some(&only));
        self.engine.ask(&steps, state, only, self.options, |worker| worker.value(name))
    }

    /// A handle that ends the running step from any thread. The step ends as killed, and runs again in
    /// the next replay.
    ///
    /// # Errors
    /// If the executor cannot be [interrupted](crate::Caps::interrupts).
    pub fn kill_handle(&self) -> Result<KillHandle, EsgError> {
        match self.engine.executor.caps().interrupts {
            true => Ok(self.engine.executor.kill_handle()),
            false => Err(EsgError::unsupported("interrupt a step", "cannot be interrupted")),
        }
    }

    /// Restores the files and the process to how they are after the last replay.
    fn settle_world(&mut self) -> Result<(), EsgError> {
        let steps = self.planned();
        let (state, only) = (&mut self.state, Some(&BTreeSet::new()));
        self.engine.materialise(&steps, state, only, self.options)
    }

    /// The executions so far, oldest first. Those of more than 256 replays ago are discarded now and
    /// then, unless they are used or among the newest of their step.
    #[must_use]
    pub fn executions(&self) -> &[Arc<Execution>] {
        self.engine.ledger.executions()
    }

    /// The execution that represents `step` since the last replay.
    #[must_use]
    pub fn execution(&self, step: &str) -> Option<&Arc<Execution>> {
        self.engine.ledger.execution(step)
    }

    /// The inputs, then the steps.
    pub(crate) fn planned(&self) -> Vec<Planned> {
        let inputs = self.program().inputs().map(|input| Planned {
            id: format!("{INPUT}{}", input.name).into(),
            syntax: input.fingerprint,
            source: input.json.clone(),
            bind: Some((input.name.clone(), input.json.clone())),
            scan: Arc::default(),
        });
        let steps = self.program().steps().map(|step| Planned {
            id: step.id.clone(),
            syntax: step.syntax,
            source: step.source.clone(),
            bind: None,
            scan: step.scan.clone(),
        });
        inputs.chain(steps).collect()
    }
}

/// Without the content of the program.
impl fmt::Debug for CodeGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeGraph")
            .field("executor", &self.engine.name)
            .field("steps", &self.program().len())
            .field("executions", &self.executions().len())
            .field("blobs", &self.engine.blobs)
            .finish_non_exhaustive()
    }
}
