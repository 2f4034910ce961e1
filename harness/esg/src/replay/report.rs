//! What a replay did.
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Reason;
use crate::exec::{Ending, Untracked};

/// What a replay ran and why, and what it kept.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The number of the replay.
    pub run: u64,
    /// The steps that ran, in order, and why.
    pub ran: Vec<(Arc<str>, Reason)>,
    /// The steps that ran again only to make unserializable values.
    pub rebuilt: Vec<Arc<str>>,
    /// The steps whose earlier execution is still valid.
    pub kept: Vec<Arc<str>>,
    /// Of those, the ones that read a clock or entropy source. They keep what they read then.
    pub kept_clock: Vec<Arc<str>>,
    /// The steps that failed, in order.
    pub failed: Vec<(Arc<str>, Ending)>,
    /// Of those, the ones that failed because an earlier failed step did not bind a name.
    pub blocked: Vec<Blocked>,
    /// The untracked operations of steps. Such a step runs again when anything before it did, and
    /// everything after it runs again with it.
    pub untracked: Vec<(Arc<str>, Untracked)>,
    /// How many runs were discarded because the step read more than expected.
    pub widened: usize,
    /// How long the replay took: running steps, inspecting, moving and storing their values.
    pub wall: Duration,
    /// How long the kept steps had taken, in the same sense.
    pub saved: Duration,
    pub(crate) order: Vec<Arc<str>>,
}

/// A step that failed because an earlier one failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// The step.
    pub step: Arc<str>,
    /// The name it lacked.
    pub name: String,
    /// The failed step that would have bound it.
    pub by: Arc<str>,
}

impl Report {
    /// Whether every step of the program succeeded.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.failed.is_empty()
    }

    /// The steps that were executed for any reason, in program order.
    pub fn executed(&self) -> impl Iterator<Item = &Arc<str>> {
        self.order.iter()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "ran {} ({:.1?}), kept {} (saved {:.1?})",
            self.ran.len(),
            self.wall,
            self.kept.len(),
            self.saved
        )?;
        for (step, reason) in &self.ran {
            writeln!(f, "  {step} ran: {reason}")?;
        }
        for step in &self.rebuilt {
            writeln!(f, "  {step} was run again: {}", Reason::Rebuilt)?;
        }
        for step in &self.kept_clock {
            writeln!(f, "  {step} kept (clock)")?;
        }
        for (step, ending) in &self.failed {
            match self.blocked.iter().find(|blocked| blocked.step == *step) {
                Some(blocked) => {
                    writeln!(
                        f,
                        "  {step} is blocked: `{}` is missing, as {} failed",
                        blocked.name, blocked.by
                    )?;
                }
                None => writeln!(f, "  {step} failed: {ending}")?,
            }
        }
        for (step, untracked) in &self.untracked {
            writeln!(f, "  {step} is untracked: {untracked}")?;
        }
        Ok(())
    }
}
