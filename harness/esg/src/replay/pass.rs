//! A replay in progress, and what comes next in it. Nothing here acts: the engine does.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Options, Planned, Reason};
use crate::model::Entity;
use crate::trace::Execution;

/// How often a replay may replace the worker because of untracked operations. Then everything runs.
const RENEWALS: usize = 8;

/// A replay in progress: one or more passes over the steps. Each forces more than the one before.
#[derive(Clone, Debug)]
pub(super) struct Pass<'a> {
    pub(super) steps: &'a [Planned],
    pub(super) options: Options,
    /// The position of the present step.
    pub(super) at: usize,
    /// Steps that run again to make unserializable values.
    pub(super) forced: BTreeSet<Arc<str>>,
    /// Failed steps that do not run again in this pass. Otherwise each pass would make the
    /// unserializable values that a failed step read again after it, and the failed step would miss
    /// them indefinitely.
    pub(super) spared: BTreeSet<Arc<str>>,
    /// Steps that run again in a fresh worker to leave what their untracked operations left.
    pub(super) revived: BTreeSet<Arc<str>>,
    /// How often the worker was replaced because of untracked operations.
    pub(super) renewed: usize,
    /// Everything runs, because something changed unseen or cannot be restored otherwise.
    pub(super) full: bool,
    /// Running only the steps that made it does not restore what is missing.
    pub(super) stuck: bool,
    pub(super) reasons: BTreeMap<Arc<str>, Reason>,
    /// The execution that represents each step.
    pub(super) chosen: BTreeMap<Arc<str>, Arc<Execution>>,
    /// The steps that ran since everything has to run.
    pub(super) done: BTreeSet<Arc<str>>,
    /// A sweep follows each step that runs, to attribute unseen changes.
    pub(super) watched: bool,
    pub(super) widened: usize,
    /// The value of `widened` when a step last lacked something unserializable.
    pub(super) used: usize,
    /// What steps read unexpectedly, and whether they read everything.
    pub(super) looked_for: BTreeMap<Arc<str>, (BTreeSet<Entity>, bool)>,
    /// The progress when this pass began.
    begun: Progress,
}

/// What grows from pass to pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    forced: usize,
    spared: usize,
    widened: usize,
    renewed: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A pass begins.
    Begun,
    /// The present step was looked at.
    Looked {
        /// It is a failed one that does not run again, and still fails as it did.
        spared: bool,
        /// An execution is valid for it.
        valid: Option<Valid>,
    },
    /// The present step has an execution in this pass.
    Past {
        /// It failed now, or when it ran.
        failed: bool,
    },
    /// Untracked operations left something else in the worker than the present step has to see.
    Elsewhere,
    /// The present step needs values that no blob has.
    Missing {
        /// More steps than before are forced to make them.
        more: bool,
    },
    /// The files and the process are as after the last step, except for what no blob has.
    Restored {
        /// More steps than before are forced to make that.
        more: bool,
    },
    /// The passes are complete.
    Settled,
    /// Everything live was inspected.
    Swept {
        /// The number of changes that no step accounts for; `None` if the worker was lost.
        unseen: Option<usize>,
    },
}

/// A valid execution of the present step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Valid {
    /// It has untracked operations, and the live worker has not gone through them.
    pub(super) absent: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Look at the step at this position.
    Look(usize),
    /// Keep the failed execution of an earlier pass.
    Spare,
    /// Keep the valid execution.
    Keep,
    /// Run the present step.
    Run,
    /// Restore the files and the process.
    Restore,
    /// Begin another pass.
    Again,
    /// Begin another pass in a fresh worker, in which the untracked steps before this one run.
    Renew,
    /// Begin another pass in a fresh worker, in which everything runs.
    Everything {
        /// Because nothing less restores what is needed.
        stuck: bool,
        /// With a sweep after each step.
        watched: bool,
    },
    /// The present step cannot run.
    Fail,
    /// No step makes what is needed.
    Unreachable,
    /// Inspect everything live.
    Sweep,
    /// Any of the steps that ran may have made the unseen changes.
    Attribute,
    /// Nothing is left to do.
    Done,
}

impl<'a> Pass<'a> {
    pub(super) fn new(steps: &'a [Planned], options: Options) -> Self {
        Self {
            steps,
            options,
            at: 0,
            forced: BTreeSet::new(),
            spared: BTreeSet::new(),
            revived: BTreeSet::new(),
            renewed: 0,
            full: false,
            stuck: false,
            reasons: BTreeMap::new(),
            chosen: BTreeMap::new(),
            done: BTreeSet::new(),
            watched: false,
            widened: 0,
            used: 0,
            looked_for: BTreeMap::new(),
            begun: Progress::default(),
        }
    }

    /// The present step.
    pub(super) fn step(&self) -> &'a Planned {
        &self.steps[self.at]
    }

    /// Notes that a pass begins.
    pub(super) fn begin(&mut self) {
        self.begun = self.progress();
        self.at = 0;
    }

    fn progress(&self) -> Progress {
        Progress {
            forced: self.forced.len(),
            spared: self.spared.len(),
            widened: self.widened,
            renewed: self.renewed,
        }
    }

    /// Whether the present step runs even if an execution is valid.
    pub(super) fn is_forced(&self) -> bool {
        let id = &self.step().id;
        self.full && !self.done.contains(id) || self.forced.contains(id)
    }

    /// Whether the present step runs whatever it did before.
    pub(super) fn is_whole(&self) -> bool {
        self.is_forced() && self.full && !self.stuck
    }

    /// Keeps the executions of failed steps from here on. `false` if all are kept already.
    pub(super) fn spare_failed(&mut self) -> bool {
        let before = self.spared.len();
        let failed = self.chosen.iter().filter(|(_, execution)| !execution.ending.is_ok());
        self.spared.extend(failed.map(|(step, _)| step.clone()));
        self.spared.len() > before
    }

    /// Another pass, if it would be another one than this.
    fn again(&self) -> Action {
        match (self.progress() != self.begun, self.full) {
            (true, _) => Action::Again,
            (false, true) => Action::Unreachable,
            (false, false) => Action::Everything { stuck: true, watched: false },
        }
    }

    fn look(&self, at: usize) -> Action {
        if at < self.steps.len() { Action::Look(at) } else { Action::Restore }
    }
}

/// What comes next after `event`.
pub(super) fn advance(pass: &Pass<'_>, event: Event) -> Action {
    match event {
        Event::Begun => pass.look(0),
        Event::Looked { spared: true, .. } => Action::Spare,
        Event::Looked { valid: Some(valid), .. } => {
            let revives = valid.absent && pass.revived.contains(&pass.step().id);
            if pass.is_forced() || revives { Action::Run } else { Action::Keep }
        }
        Event::Looked { valid: None, .. } => Action::Run,
        Event::Past { failed: true } if pass.options.stop_on_failure => Action::Restore,
        Event::Past { .. } => pass.look(pass.at + 1),
        Event::Elsewhere if pass.renewed < RENEWALS => Action::Renew,
        Event::Elsewhere => Action::Everything { stuck: true, watched: false },
        Event::Missing { more: true } | Event::Restored { more: true } => pass.again(),
        Event::Missing { more: false } if pass.full => Action::Fail,
        Event::Missing { more: false } => Action::Everything { stuck: true, watched: false },
        Event::Restored { more: false } => Action::Done,
        Event::Settled if pass.watched => {
            match pass.chosen.values().any(|one| one.is_untracked()) {
                true => Action::Done,
                false => Action::Attribute,
            }
        }
        Event::Settled if pass.full || !pass.options.sweep || pass.done.is_empty() => Action::Done,
        Event::Settled => Action::Sweep,
        Event::Swept { unseen: Some(0) } => Action::Done,
        Event::Swept { unseen } => Action::Everything { stuck: false, watched: unseen.is_some() },
    }
}

#[cfg(test)]
mod tests;
