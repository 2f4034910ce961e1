//! A program, its executions, and its worker.
mod compare;
mod draw;
mod journal;
mod plan;
mod query;
mod traced;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use compare::Verdict;
pub use plan::Plan;
pub use query::{Chain, Effect, Link, RanAt, Subject, Touched};
pub use traced::TracedEdge;

use super::blobs::Blobs;
use super::error::EsgError;
use super::exec::{Executor, Value};
use super::model::Entity;
use super::program::{INPUT, Program, ProgramError};
use super::replay::{Engine, Options, Planned, Report};
use super::state::State;
use super::trace::Execution;
use journal::{Journal, Record};
use traced::Seen;

/// How long a value that nothing refers to is kept.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// A program whose steps run in a worker. After an edit it runs only the affected steps again.
///
/// [`replay`](Self::replay) leaves the state that running every step in a fresh worker would leave,
/// in everything that is tracked: names and what they share, classes, attributes of modules, files
/// in scratch, random state, working directory, environment, output. A step that touches anything
/// else is reported, and runs again when anything before it did.
#[derive(Debug)]
pub struct CodeGraph {
    program: Program,
    engine: Engine,
    journal: Option<Journal>,
    /// The state after the last replay.
    state: State,
    options: Options,
    /// The last recorded effects of each step, from which its edges follow.
    seen: HashMap<Arc<str>, Seen>,
}

impl CodeGraph {
    /// A graph in memory.
    #[must_use]
    pub fn new(program: Program, executor: impl Executor + 'static, blobs: Blobs) -> Self {
        Self {
            program,
            engine: Engine::new(Box::new(executor), blobs),
            journal: None,
            state: State::default(),
            options: Options { stop_on_failure: false, sweep: true },
            seen: HashMap::new(),
        }
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
        let dir = dir.as_ref();
        let mut executor = executor;
        let (journal, records) = Journal::open(dir)?;
        executor.keep_scratch(&dir.join("scratch"))?;
        let blobs = Blobs::dir(dir.join("blobs"))?;
        let mut graph = Self::new(Program::new(), executor, blobs);
        for record in records {
            match record {
                Record::Edited(operation) => {
                    graph.program.apply(operation)?;
                }
                Record::Ran(execution) => graph.engine.remember(execution),
                Record::Invalid(step) => graph.engine.history.invalidate(&step),
                Record::Settled { run, executions } => graph.engine.settled(run, &executions),
            }
        }
        graph.journal = Some(journal);
        Ok(graph)
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Changes the program. If `edit` fails, none of its changes apply.
    ///
    /// # Errors
    /// The error of `edit`, or a failure to store the change.
    pub fn edit<T>(
        &mut self,
        edit: impl FnOnce(&mut Program) -> Result<T, ProgramError>,
    ) -> Result<T, EsgError> {
        let mark = self.program.mark();
        let answer = match edit(&mut self.program) {
            Ok(answer) => answer,
            Err(error) => {
                self.take_back(mark)?;
                return Err(error.into());
            }
        };
        if let Some(journal) = &mut self.journal {
            let operations = self.program.operations(mark).iter().cloned().map(Record::Edited);
            if let Err(error) = journal.append(operations) {
                self.take_back(mark)?;
                return Err(error);
            }
        }
        Ok(answer)
    }

    /// Undoes the changes to the program since `mark`.
    fn take_back(&mut self, mark: usize) -> Result<(), EsgError> {
        if self.program.mark() != mark {
            let before = self.program.operations(0)[..mark].to_vec();
            self.program = Program::fold(before)?;
            self.take_in();
        }
        Ok(())
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
        self.program.step(step)?;
        let mut steps = self.planned();
        if let Some(at) = steps.iter().position(|one| &*one.id == step) {
            steps.truncate(at + 1);
        }
        self.replay_steps(&steps)
    }

    fn replay_steps(&mut self, steps: &[Planned]) -> Result<Report, EsgError> {
        let journal = &mut self.journal;
        let mut record = |execution: &Arc<Execution>, blobs: &mut Blobs| {
            journal::record(journal, execution, blobs)
        };
        let (report, state) = self.engine.replay(steps, self.options, &mut record)?;
        self.state = state;
        self.take_in();
        if let Some(journal) = &mut self.journal {
            let executions = self.engine.standing(steps).map(|execution| execution.seq).collect();
            journal.append([Record::Settled { run: report.run, executions }])?;
        }
        if self.engine.trim() {
            self.trim_stored();
        }
        Ok(report)
    }

    /// Removes discarded executions from the journal, and values that nothing refers to any more.
    fn trim_stored(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let engine = &self.engine;
        let rewritten = journal.rewrite(|record| match record {
            Record::Edited(_) | Record::Invalid(_) => true,
            Record::Ran(execution) => engine.knows(execution.seq),
            Record::Settled { run, .. } => engine.runs.contains_key(run),
        });
        let swept = rewritten.and_then(|()| {
            let all = engine.history.all().iter().flat_map(|one| one.trace.blobs());
            Ok(engine.blobs.sweep(all, GRACE)?)
        });
        // Nothing is lost: both are only larger than they need to be.
        if let Err(error) = swept {
            tracing::warn!(%error, "failed to remove what is no longer needed");
        }
    }

    /// Makes `step` run at the next replay in any case.
    ///
    /// # Errors
    /// If there is no such step, or this cannot be stored.
    pub fn invalidate(&mut self, step: &str) -> Result<(), EsgError> {
        let id = self.program.step(step)?.id.clone();
        if let Some(journal) = &mut self.journal {
            journal.append([Record::Invalid(id.clone())])?;
        }
        self.engine.history.invalidate(&id);
        Ok(())
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
        let journal = &mut self.journal;
        let mut record = |execution: &Arc<Execution>, blobs: &mut Blobs| {
            journal::record(journal, execution, blobs)
        };
        let only = BTreeSet::from([entity]);
        let (state, only) = (&mut self.state, Some(&only));
        self.engine.ask(&steps, state, only, self.options, &mut record, |worker| worker.value(name))
    }

    /// Restores the files and the process to how they are after the last replay.
    fn settle_world(&mut self) -> Result<(), EsgError> {
        let steps = self.planned();
        let journal = &mut self.journal;
        let mut record = |execution: &Arc<Execution>, blobs: &mut Blobs| {
            journal::record(journal, execution, blobs)
        };
        let (state, only) = (&mut self.state, Some(&BTreeSet::new()));
        self.engine.materialise(&steps, state, only, self.options, &mut record)
    }

    /// The executions so far, oldest first. Those of more than 256 replays ago are discarded now and
    /// then, unless they are used or among the newest of their step.
    #[must_use]
    pub fn executions(&self) -> &[Arc<Execution>] {
        self.engine.history.all()
    }

    /// The execution that represents `step` since the last replay.
    #[must_use]
    pub fn execution(&self, step: &str) -> Option<&Arc<Execution>> {
        self.engine.chosen.get(step)
    }

    /// The inputs, then the steps.
    pub(crate) fn planned(&self) -> Vec<Planned> {
        let inputs = self.program.inputs().map(|input| Planned {
            id: format!("{INPUT}{}", input.name).into(),
            syntax: input.fingerprint,
            source: input.json.clone(),
            bind: Some((input.name.clone(), input.json.clone())),
            scan: Arc::default(),
        });
        let steps = self.program.steps().map(|step| Planned {
            id: step.id.clone(),
            syntax: step.syntax,
            source: step.source.clone(),
            bind: None,
            scan: step.scan.clone(),
        });
        inputs.chain(steps).collect()
    }
}
