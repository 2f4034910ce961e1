//! How a run begins, for its first events.

use crate::clock::UtcMillis;
use crate::id::InterruptId;
use crate::observe::trace::{Carrier, Relation};
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
    /// Where the input was sent that begins the turn, if it waited in the inbox.
    pub(crate) origin: Option<Carrier>,
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
        Self { resumed: true, cause, answered, look_back: true, origin: None }
    }
}

/// How an interrupt was resolved, as observers hear of it.
pub(crate) struct Answered {
    id: InterruptId,
    by: Option<String>,
    expired: bool,
    trace: Option<Carrier>,
}

impl Answered {
    pub(crate) fn of(resolved: &[Resolved]) -> Vec<Self> {
        let answered = |it: &Resolved| Self {
            id: it.id.clone(),
            by: it.resolution.by(),
            expired: it.resolution == Resolution::Expired,
            trace: match &it.resolution {
                Resolution::Answered { trace, .. } => trace.clone(),
                _ => None,
            },
        };
        resolved.iter().map(answered).collect()
    }
}

impl RunCore {
    /// Relates the run's span to one of those who cause what it does.
    pub(super) fn relate(&self, to: Option<&Carrier>, relation: Relation) {
        if let (Some(spans), Some(to)) = (&self.spans, to) {
            spans.relate(to, relation);
        }
    }

    pub(super) fn publish_answered(&self, answered: Vec<Answered>) {
        for Answered { id, by, expired, trace } in answered {
            self.relate(trace.as_ref(), Relation::Answer);
            self.publish(None, || EventKind::Answered { id, by, expired });
        }
    }
}
