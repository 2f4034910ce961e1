//! Brings values to the worker and asks it about them.
use std::collections::{BTreeSet, VecDeque};

use super::{Engine, Options};
use crate::error::EsgError;
use crate::exec::{ExecError, Executor};
use crate::model::Entity;
use crate::replay::pass::Pass;
use crate::replay::{Planned, close};
use crate::state::State;

/// How many workers in a row may die at the same operation while no step runs.
const DEATHS: usize = 3;

impl Engine {
    /// Brings what is needed, or everything, to the worker, with the files and the process as they
    /// are after the last step. Unserializable values are made again.
    pub(crate) fn materialise(
        &mut self,
        steps: &[Planned],
        state: &mut State,
        only: Option<&BTreeSet<Entity>>,
        options: Options,
    ) -> Result<(), EsgError> {
        let mut pass = Pass::new(steps, options);
        loop {
            let all = || state.entities().map(|(entity, _)| entity.clone()).collect();
            let wanted = only.cloned().unwrap_or_else(all);
            let needed = close(state, wanted, VecDeque::new());
            let missing = self.bring(state, &needed.union(&state.world()).cloned().collect())?;
            if missing.is_empty() || pass.full && missing.is_disjoint(&needed) {
                return Ok(());
            }
            let before = pass.forced.len();
            let makers = self.makers(state, &missing);
            pass.forced.extend(makers);
            if pass.forced.len() > before || pass.spare_failed() {
                *state = self.settle(&mut pass)?;
            } else if pass.full {
                return Err(EsgError::unreachable_state());
            } else {
                self.everything(&mut pass, true, false)?;
                *state = self.settle(&mut pass)?;
            }
        }
    }

    /// Brings what is needed, or everything, to the worker and sends it a request. Repeats this if
    /// the worker is lost meanwhile.
    pub(crate) fn ask<T>(
        &mut self,
        steps: &[Planned],
        state: &mut State,
        only: Option<&BTreeSet<Entity>>,
        options: Options,
        ask: impl Fn(&mut dyn Executor) -> Result<T, ExecError>,
    ) -> Result<T, EsgError> {
        let mut deaths = 0;
        loop {
            self.materialise(steps, state, only, options)?;
            match ask(&mut *self.executor) {
                Err(error) if self.survives(&error, &mut deaths) => {}
                answer => return Ok(answer?),
            }
        }
    }

    /// Records the loss of the worker, if it is lost. The next worker may then try the same.
    pub(crate) fn survives(&mut self, error: &ExecError, deaths: &mut usize) -> bool {
        if error.lost() {
            // What was live can be loaded into the next worker.
            self.live.clear();
            *deaths += 1;
        }
        error.lost() && *deaths <= DEATHS
    }
}
