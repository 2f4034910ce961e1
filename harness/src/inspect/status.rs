//! What is reported about sessions.

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Position, Seq, SessionId};
use crate::inbox::Unread;
use crate::journal::{Place, Read};
use crate::llm::Spend;
use crate::run::Child;
use crate::session::{Entry, Origin, Session, Settled};
use crate::step::{Failure, Interrupt};
use crate::store::{Holder, Phase, Row};

use super::SessionsError;

/// The current status of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The session.
    pub session: SessionId,
    /// The agent it belongs to.
    pub agent: AgentId,
    /// Its phase.
    pub phase: Phase,
    /// The current or next step; of an ended turn, the last step.
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
    /// The holder of its lease. A session that is [`Running`](Phase::Running) without a holder has
    /// crashed and waits to be resumed.
    pub holder: Option<Holder>,
    /// The interrupts without an answer. An answered interrupt is not among them, even if no run has
    /// applied its answer yet.
    pub questions: Vec<Interrupt>,
    /// The timers that it waits for.
    pub timers: Vec<PendingTimer>,
    /// The sessions that it has started and waits for.
    pub children: Vec<Child>,
    /// How many inbox messages (answers, inputs, stop requests) no run has applied yet. A session at
    /// rest with unread messages waits to be resumed.
    pub unread: u64,
    /// Bytes at the end of its log that a crash or a loss of power left incomplete. Recovery set them
    /// aside. None of them was acknowledged as durable. Pruning deletes them.
    pub set_aside: u64,
    /// The spend of this turn.
    pub spent: Spend,
    /// The spend of all turns.
    pub total: Spend,
    /// How its last run settled, unless a run is active.
    pub settled: Option<Settled>,
    /// The failure of the turn, if it [failed](Phase::Failed).
    pub failure: Option<Failure>,
    /// The session it was forked from.
    pub from: Option<Origin>,
}

impl Status {
    pub(super) fn of(session: SessionId, read: Read, unread: &[Unread]) -> Self {
        let questions = unanswered(&read.recorded.session, unread).cloned().collect();
        let Read { recorded, head, holder, first, created, updated, set_aside, .. } = read;
        let recorded = *recorded.session;
        let timers = recorded.timers().map(|(item, timer)| PendingTimer {
            item,
            key: timer.key.clone(),
            due: timer.due,
        });
        let (timers, children) = (timers.collect(), Child::awaited(&recorded));
        let settled = recorded.settled.map(|settled| *settled);
        let failure = settled.as_ref().and_then(|settled| settled.end.failure());
        let failure = failure.map(|failure| (**failure).clone());
        Self {
            session,
            agent: recorded.agent,
            phase: recorded.phase,
            step: recorded.cursor.step.to_string(),
            position: recorded.cursor.position,
            turn: recorded.turn,
            steps: recorded.cursor.steps,
            first,
            head,
            created,
            updated,
            holder,
            questions,
            timers,
            children,
            unread: unread.len() as u64,
            set_aside,
            spent: recorded.spent,
            total: recorded.total,
            settled,
            failure,
            from: recorded.from,
        }
    }
}

/// A timer that a session waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingTimer {
    /// The item that waits, in a step that has items.
    pub item: Option<u32>,
    /// Its key; none for the `.after(..)` of a step.
    pub key: Option<String>,
    /// When it is due.
    pub due: UtcMillis,
}

/// The open interrupts for which the inbox has no answer either.
pub(super) fn unanswered<'a>(
    session: &'a Session,
    unread: &'a [Unread],
) -> impl Iterator<Item = &'a Interrupt> {
    let decided: std::collections::HashSet<&InterruptId> =
        unread.iter().filter_map(|message| message.interrupt.as_ref()).collect();
    session.open_interrupts().filter(move |asked| !decided.contains(&asked.id))
}

/// A page of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions, in the order of their ids.
    pub rows: Vec<SessionRow>,
    /// The `after` of the next page; `None` on the last.
    pub next: Option<Vec<u8>>,
}

/// A session in a list: what is known without reading its log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// The agent it belongs to.
    pub agent: AgentId,
    /// Its phase.
    pub phase: Phase,
    /// Its step when its last run began or settled.
    pub step: String,
    /// When it must be resumed even if nothing is sent to it.
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
        let Row { session, summary, head, created, updated, interrupt: _ } = row;
        Self {
            session,
            agent: summary.agent,
            phase: summary.phase,
            step: summary.step,
            due: summary.due,
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
    /// The entries with their numbers, oldest first.
    pub entries: Vec<(Seq, Entry)>,
    /// The `from` of the next page; `None` at the head of the log.
    pub next: Option<Seq>,
    /// The first entry that is kept.
    pub first: Seq,
    /// The last entry.
    pub head: Seq,
}

/// The result of recording answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedAnswers {
    /// The interrupts that are still open.
    pub open: Vec<Interrupt>,
    /// The holder of the session, which applies the answers; `None` if the session waits to be
    /// resumed.
    pub holder: Option<Holder>,
}

/// A page of the open interrupts of all sessions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct InterruptPage {
    /// The interrupts, in the order of their sessions. A page can be shorter than its limit, even
    /// empty, because interrupts that were answered meanwhile are omitted.
    pub rows: Vec<SessionInterrupt>,
    /// Sessions with open interrupts whose log cannot be read, and why.
    pub unreadable: Vec<(SessionId, SessionsError)>,
    /// The `after` of the next page; `None` on the last.
    pub next: Option<Vec<u8>>,
}

/// An open interrupt and its session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionInterrupt {
    /// The session.
    pub session: SessionId,
    /// The agent it belongs to.
    pub agent: AgentId,
    /// The interrupt.
    pub interrupt: Interrupt,
    /// When it was asked.
    pub since: UtcMillis,
    /// When it expires; `None` if it waits indefinitely. An expired interrupt is listed until its
    /// session is resumed.
    pub expires: Option<UtcMillis>,
}

/// A page of the moments of a session, with the type of its state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MomentPage<S> {
    /// The moments, oldest first.
    pub moments: Vec<Moment<S>>,
    /// The `from` of the next page; `None` on the last.
    pub next: Option<Seq>,
}

/// A session after a commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Moment<S> {
    /// The last entry of the commit.
    pub seq: Seq,
    /// When it was written, by its writer's clock.
    pub at: UtcMillis,
    /// The state.
    pub state: S,
    /// Its phase.
    pub phase: Phase,
    /// The next step; of an ended turn, the last step.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// How many turns had begun.
    pub turn: u64,
    /// How many steps the turn had committed.
    pub steps: u64,
    /// The spend of the turn.
    pub spent: Spend,
}

impl<S> Moment<S> {
    pub(crate) fn of(place: &Place<'_>, state: S) -> Self {
        let Place { seq, at, recorded, boundary: _ } = place;
        let session = &recorded.session;
        Self {
            seq: *seq,
            at: *at,
            state,
            phase: session.phase,
            step: session.cursor.step.to_string(),
            position: session.cursor.position,
            turn: session.turn,
            steps: session.cursor.steps,
            spent: session.spent,
        }
    }
}
