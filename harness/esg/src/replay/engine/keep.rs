//! The executions that are kept: those of earlier processes, and for how long.
use std::collections::HashSet;
use std::sync::Arc;

use super::Engine;
use crate::trace::Execution;

/// How many replays are kept with all executions that they ran or used.
const RUNS: u64 = 256;

impl Engine {
    /// Restores the executions that represented the steps after a replay of an earlier process.
    pub(crate) fn settled(&mut self, run: u64, executions: &[u64]) {
        let known =
            executions.iter().filter_map(|seq| self.history.by_seq(*seq)).cloned().collect();
        self.run = self.run.max(run);
        self.runs.insert(run, known);
    }

    /// Discards what only replays of long ago used. Returns whether there was any.
    pub(crate) fn trim(&mut self) -> bool {
        let first = (self.run + 1).saturating_sub(RUNS);
        let recent = self.runs.range(first..).flat_map(|(_, run)| run);
        let needed: HashSet<u64> =
            recent.chain(self.chosen.values()).map(|execution| execution.seq).collect();
        let trimmed = self.history.trim(|one| one.run >= first || needed.contains(&one.seq));
        if trimmed {
            self.runs = self.runs.split_off(&first);
        }
        trimmed
    }

    /// Whether an execution or a replay is still known.
    pub(crate) fn knows(&self, seq: u64) -> bool {
        self.history.by_seq(seq).is_some()
    }

    /// Restores an execution of an earlier process.
    pub(crate) fn remember(&mut self, execution: Arc<Execution>) {
        self.seq = self.seq.max(execution.seq);
        self.run = self.run.max(execution.run);
        self.history.push(execution);
    }
}
