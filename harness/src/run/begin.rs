//! How a run begins, for its first events.

use crate::clock::UtcMillis;
use crate::id::InterruptId;
use crate::observe::{Cause, EventKind};
use crate::session::{Resolution, Resolved, Session, StepRef};
use crate::store::Phase;

use super::core::RunCore;

/// How a run begins.
#[derive(Default)]
pub(crate) struct Begin {
    /// Whether it resumes a turn.
    pub(crate) resumed: bool,
    /// Why.
    pub(crate) cause: Cause,
    /// The interrupts that were resolved since the last run.
    pub(crate) answered: Vec<Answered>,
    /// Whether an earlier run of this turn may have passed over inputs in the inbox.
    pub(crate) look_back: bool,
}

impl Begin {
    /// Of a run that resumes the turn of `session`, with these answers.
    pub(crate) fn resuming<P: StepRef>(session: &Session<P>, answered: Vec<Answered>) -> Self {
        let now = UtcMillis::now();
        let cause = match session.phase {
            Phase::Running => Cause::Crash,
            _ if !answered.is_empty() => Cause::Answer,
            Phase::Interrupted | Phase::Waiting => {
                let due = session.timers().any(|(_, timer)| timer.due <= now);
                let calls = session.awaited_children().next().is_some();
                match (due, calls) {
                    (true, _) => Cause::Timer,
                    (false, true) => Cause::Child,
                    (false, false) => Cause::Resume,
                }
            }
            _ => Cause::Resume,
        };
        Self { resumed: true, cause, answered, look_back: true }
    }
}

/// How an interrupt was resolved, as observers hear of it.
pub(crate) struct Answered {
    id: InterruptId,
    by: Option<String>,
    expired: bool,
}

impl Answered {
    pub(crate) fn of(resolved: &[Resolved]) -> Vec<Self> {
        let answered = |it: &Resolved| Self {
            id: it.id.clone(),
            by: it.resolution.by(),
            expired: it.resolution == Resolution::Expired,
        };
        resolved.iter().map(answered).collect()
    }
}

impl RunCore {
    pub(super) fn publish_answered(&self, answered: Vec<Answered>) {
        for Answered { id, by, expired } in answered {
            self.publish(None, || EventKind::Answered { id, by, expired });
        }
    }
}
