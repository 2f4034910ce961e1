//! Runs code in the place of a step, for a look at what the step saw.
use crate::error::EsgError;
use crate::exec::Output;
use crate::graph::CodeGraph;
use crate::state::State;

impl CodeGraph {
    /// Runs a source on what `step` saw in the last replay, and discards what it did. Returns its
    /// standard output; `None` if the step did not run then, or what it saw is not there any more.
    pub(crate) fn probe(&mut self, step: &str, source: &str) -> Result<Option<Output>, EsgError> {
        let executions = self.engine.ledger.replayed(self.engine.ledger.run()).unwrap_or_default();
        let Some(at) = executions.iter().position(|one| &*one.step == step) else {
            return Ok(None);
        };
        let mut state = State::default();
        for execution in &executions[..at] {
            state.apply(execution);
        }
        let ran = self.engine.probe(&state, source)?;
        self.settle_world()?;
        Ok(ran.map(|ran| ran.stdout))
    }
}
