//! Runs code whose effects are discarded.
use std::collections::BTreeSet;

use super::Engine;
use crate::error::EsgError;
use crate::exec::{Ran, RunStep};
use crate::state::State;

/// The id that such code runs under. What is known of the sources of steps stays.
const PROBE: &str = "probe";

impl Engine {
    /// Runs a source on `state` and discards what it did. `None` if the state cannot be restored
    /// without running steps.
    pub(crate) fn probe(&mut self, state: &State, source: &str) -> Result<Option<Ran>, EsgError> {
        let all: BTreeSet<_> = state.entities().map(|(entity, _)| entity.clone()).collect();
        if !self.bring(state, &all)?.is_empty() {
            return Ok(None);
        }
        self.seq += 1;
        let run = RunStep { seq: self.seq, step: PROBE, source, bind: None, readings: None };
        let mut deaths = 0;
        match self.executor.run(&run) {
            Ok(ran) => {
                self.discard(&ran);
                Ok(Some(ran))
            }
            Err(error) if self.survives(&error, &mut deaths) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
