//! What is told of sessions.

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Position, Seq, SessionId};
use crate::journal::{Place, Read, Unread};
use crate::llm::Spend;
use crate::log::{Entry, HowEnded, HowSettled, Origin, Saved, Settled};
use crate::step::{Failure, Interrupt};
use crate::store::{Holder, Phase, Row};

use super::SessionsError;

/// A session as it stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The session.
    pub session: SessionId,
    /// The agent whose session it is.
    pub agent: AgentId,
    /// Where in its life it is.
    pub phase: Phase,
    /// The step at work, or that comes next; of an ended turn, the last.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// How many turns have begun.
    pub turn: u64,
    /// How many steps this turn has committed.
    pub steps: u64,
    /// The first entry of its log that is kept.
    pub first: Seq,
    /// The last entry of its log.
    pub head: Seq,
    /// When its first entries were written, by their writer's clock.
    pub created: UtcMillis,
    /// When its last entries were written, by their writer's clock.
    pub updated: UtcMillis,
    /// Who holds it. A session that is [`Running`](Phase::Running) and that nobody holds has
    /// crashed, and waits to be resumed.
    pub holder: Option<Holder>,
    /// The questions that nobody has answered. One that was answered, by
    /// [`answer_json`](super::Sessions::answer_json) say, is not among them, whether or not a run
    /// has gone on with the answer.
    pub questions: Vec<Interrupt>,
    /// How many letters (answers, inputs, stops) no run has taken up yet. A session at rest that
    /// has some waits to be resumed.
    pub unread: u64,
    /// Bytes of its log that a crash left unfinished or a loss of power took, and that were set aside
    /// when somebody took the session up. Nothing of them was acknowledged as durable. Pruning forgets
    /// them.
    pub set_aside: u64,
    /// What this turn has spent.
    pub spent: Spend,
    /// What all turns have spent.
    pub total: Spend,
    /// How its last run settled, while none is at work.
    pub settled: Option<Settled>,
    /// What the turn failed with, if it has [failed](Phase::Failed).
    pub failure: Option<Failure>,
    /// The session it was forked from.
    pub from: Option<Origin>,
}

impl Status {
    pub(super) fn of(session: SessionId, read: Read, unread: &[Unread]) -> Self {
        let questions = unanswered(&read.saved, unread).cloned().collect();
        let Read { saved, head, holder, first, created, updated, set_aside, .. } = read;
        let settled = saved.settled.map(|settled| *settled);
        let failure = match settled.as_ref().map(|settled| &settled.how) {
            Some(HowSettled::Turn(HowEnded::Failed { failure })) => Some((**failure).clone()),
            _ => None,
        };
        Self {
            session,
            agent: saved.agent,
            phase: saved.phase,
            step: saved.cursor.step.to_string(),
            position: saved.cursor.position,
            turn: saved.turn,
            steps: saved.cursor.steps,
            first,
            head,
            created,
            updated,
            holder,
            questions,
            unread: unread.len() as u64,
            set_aside,
            spent: saved.spent,
            total: saved.total,
            settled,
            failure,
            from: saved.from,
        }
    }
}

/// The questions about which no letter has come either.
pub(super) fn unanswered<'a>(
    saved: &'a Saved,
    unread: &'a [Unread],
) -> impl Iterator<Item = &'a Interrupt> {
    let decided = |id: &InterruptId| unread.iter().any(|it| it.question.as_ref() == Some(id));
    saved.open().map(|asked| &asked.interrupt).filter(move |asked| !decided(&asked.id))
}

/// Some sessions of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions, in the order of their ids.
    pub rows: Vec<SessionRow>,
    /// What to give as `after` for the next page; `None` on the last.
    pub next: Option<Vec<u8>>,
}

/// A session in a list: what is known of it without reading its log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// The agent whose session it is.
    pub agent: AgentId,
    /// Where in its life it is.
    pub phase: Phase,
    /// The step at which it was when its last run began or settled.
    pub step: String,
    /// When it needs somebody though nobody writes to it.
    pub due: Option<UtcMillis>,
    /// The last entry of its log.
    pub head: Seq,
    /// When its first entries were written, by their writer's clock.
    pub created: UtcMillis,
    /// When its last entries were written, by their writer's clock.
    pub updated: UtcMillis,
}

impl From<Row> for SessionRow {
    fn from(row: Row) -> Self {
        let Row { session, summary: facts, head, created, updated, interrupt: _ } = row;
        Self {
            session,
            agent: facts.agent,
            phase: facts.phase,
            step: facts.step,
            due: facts.due,
            head,
            created,
            updated,
        }
    }
}

/// A part of a session's log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryPage {
    /// The entries and their numbers, the oldest first.
    pub entries: Vec<(Seq, Entry)>,
    /// What to give as `from` for the next page; `None` at the head of the log.
    pub next: Option<Seq>,
    /// The first entry that is kept.
    pub first: Seq,
    /// The last entry.
    pub head: Seq,
}

/// What became of answers that were given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recorded {
    /// The questions that still wait for an answer.
    pub open: Vec<Interrupt>,
    /// Who holds the session, and goes on with the answers; `None` if it waits to be resumed.
    pub holder: Option<Holder>,
}

/// Some open questions of all sessions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PendingPage {
    /// The questions, in the order of their sessions. There may be fewer than were asked for, even
    /// none: what was answered meanwhile is left out.
    pub rows: Vec<PendingInterrupt>,
    /// Sessions that have open questions, but whose log cannot be read, and why.
    pub unreadable: Vec<(SessionId, SessionsError)>,
    /// What to give as `after` for the next page; `None` on the last.
    pub next: Option<Vec<u8>>,
}

/// A question that waits, and who asks it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingInterrupt {
    /// The session that asks.
    pub session: SessionId,
    /// The agent whose session it is.
    pub agent: AgentId,
    /// The question.
    pub interrupt: Interrupt,
    /// Since when it has waited.
    pub since: UtcMillis,
    /// When it can no longer be answered; `None` if it waits for ever. A question whose time is
    /// over is listed until somebody resumes its session.
    pub expires: Option<UtcMillis>,
}

/// Some moments of a session, with its state's type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MomentPage<S> {
    /// The moments, the oldest first.
    pub moments: Vec<Moment<S>>,
    /// What to give as `from` for the next page; `None` on the last.
    pub next: Option<Seq>,
}

/// A session as it was once a step's result had been taken in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Moment<S> {
    /// The entry of the log with which the result ends.
    pub seq: Seq,
    /// When it was written, by its writer's clock.
    pub at: UtcMillis,
    /// The state.
    pub state: S,
    /// Where in its life the session was.
    pub phase: Phase,
    /// The step that was to come next; of an ended turn, the last.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// How many turns had begun.
    pub turn: u64,
    /// How many steps the turn had committed.
    pub steps: u64,
    /// What the turn had spent.
    pub spent: Spend,
}

impl<S> Moment<S> {
    pub(crate) fn of(place: &Place<'_>, state: S) -> Self {
        let Place { seq, at, saved, boundary: _ } = place;
        Self {
            seq: *seq,
            at: *at,
            state,
            phase: saved.phase,
            step: saved.cursor.step.to_string(),
            position: saved.cursor.position,
            turn: saved.turn,
            steps: saved.cursor.steps,
            spent: saved.spent,
        }
    }
}
