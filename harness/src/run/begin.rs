//! How a run begins, for its first events.

use crate::clock::UtcMillis;
use crate::id::InterruptId;
use crate::inbox::SentFrom;
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
    /// When and where the input was sent that begins the turn, if it waited in the inbox.
    pub(crate) from: SentFrom,
    /// Since when it is due, if that is known.
    pub(crate) since: Option<UtcMillis>,
    /// The interrupts that were resolved since the last run.
    pub(crate) answered: Vec<Answered>,
    /// Whether an earlier run of this turn may have passed over inputs in the inbox.
    pub(crate) look_back: bool,
}

impl Begin {
    /// Of a run that resumes the turn of `session`, with these answers.
    pub(crate) fn resuming<P: StepRef>(session: &Session<P>, answered: Vec<Answered>) -> Self {
        let now = UtcMillis::now();
        let first_due = || session.timers().map(|(_, timer)| timer.due).min();
        let cause = match session.phase {
            Phase::Running => Cause::Crash,
            _ if !answered.is_empty() => Cause::Answer,
            Phase::Interrupted | Phase::Waiting => {
                let due = first_due().is_some_and(|due| due <= now);
                let calls = session.awaited_children().next().is_some();
                match (due, calls) {
                    (true, _) => Cause::Timer,
                    (false, true) => Cause::Child,
                    (false, false) => Cause::Resume,
                }
            }
            _ => Cause::Resume,
        };
        let again = Self::again(cause, answered);
        match cause {
            Cause::Timer => Self { since: first_due(), ..again },
            _ => again,
        }
    }

    /// Of a run that resumes a turn.
    pub(crate) fn again(cause: Cause, answered: Vec<Answered>) -> Self {
        let since = answered.iter().filter_map(|it| it.since).min();
        let from = SentFrom::default();
        Self { resumed: true, cause, answered, look_back: true, from, since }
    }

    /// Of a run that begins a turn with an input of the inbox.
    pub(crate) fn of_input(from: SentFrom) -> Self {
        Self { since: from.at, from, ..Self::default() }
    }
}

/// How an interrupt was resolved, as observers hear of it.
pub(crate) struct Answered {
    id: InterruptId,
    by: Option<String>,
    expired: bool,
    /// When it was answered, or expired.
    since: Option<UtcMillis>,
    trace: Option<Carrier>,
}

impl Answered {
    pub(crate) fn of<P: StepRef>(session: &Session<P>, resolved: &[Resolved]) -> Vec<Self> {
        let answered = |it: &Resolved| {
            let (since, trace) = match &it.resolution {
                Resolution::Answered { at, trace, .. } => (Some(*at), trace.clone()),
                Resolution::Expired => {
                    let asked = session.interrupt(&it.id);
                    (asked.and_then(|asked| asked.interrupt.expires_at), None)
                }
                Resolution::Withdrawn => (None, None),
            };
            let (id, by) = (it.id.clone(), it.resolution.by());
            Self { id, by, expired: it.resolution == Resolution::Expired, since, trace }
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
        for Answered { id, by, expired, trace, .. } in answered {
            self.relate(trace.as_ref(), Relation::Answer);
            self.publish(None, || EventKind::Answered { id, by, expired });
        }
    }
}
