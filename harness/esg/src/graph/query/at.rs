//! What ran at a position in a replay.
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::EsgError;
use crate::exec::Value;
use crate::graph::CodeGraph;
use crate::model::Entity;
use crate::program::VersionId;
use crate::state::State;
use crate::trace::Execution;

/// The execution at one position of the program in one replay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RanAt {
    /// The execution: source, reads and writes, output, ending, time.
    pub execution: Arc<Execution>,
    /// The version of the step that ran.
    pub version: Option<VersionId>,
    /// Whether it ran in that replay. Otherwise it was kept from an earlier one.
    pub ran: bool,
}

impl CodeGraph {
    /// The execution at position `n`, from 0, of the program as it was in replay `run`, from 1:
    /// inputs first, then steps.
    #[must_use]
    pub fn ran_at(&self, run: u64, n: usize) -> Option<RanAt> {
        let execution = self.engine.ledger.replayed(run)?.get(n)?.clone();
        Some(RanAt { version: self.version_of(&execution), ran: execution.run == run, execution })
    }

    /// The value of a name after position `n` of replay `run`, counted as in
    /// [`ran_at`](Self::ran_at).
    ///
    /// # Errors
    /// If there was no such replay or position, the name was not bound, its value is unserializable
    /// and was not kept, or the worker fails.
    pub fn value_at(&mut self, run: u64, n: usize, name: &str) -> Result<Value, EsgError> {
        let mut state = State::default();
        let executions = self.engine.ledger.replayed(run).filter(|executions| n < executions.len());
        let Some(executions) = executions else { return Err(EsgError::no_such_run(run, n)) };
        for execution in &executions[..=n] {
            state.apply(execution);
        }
        let entity = Entity::name(name);
        if state.slot(&entity).is_none() {
            return Err(EsgError::unbound(name, None));
        }
        let needed = crate::replay::close(
            &state,
            BTreeSet::from([entity]),
            std::collections::VecDeque::new(),
        );
        let mut deaths = 0;
        loop {
            let missing = self.engine.bring(&state, &needed)?;
            if !missing.is_empty() {
                return Err(EsgError::missing(name, &missing));
            }
            match self.engine.executor.value(name) {
                Err(error) if self.engine.survives(&error, &mut deaths) => {}
                value => {
                    self.settle_world()?;
                    return Ok(value?);
                }
            }
        }
    }
}
