//! What the engine keeps of a session, and what requests to it say.

use harness::engine::Checkpoint;
use harness::id::{InterruptId, Seq};
use harness::store::{Message, OpenInterrupt, Phase, Sent, SessionSummary};
use harness::{SessionId, UtcMillis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the value that has the session.
pub(super) const SESSION: &str = "session";
/// The name of the value that lists show.
pub(super) const ROW: &str = "row";

/// The newest format of what is kept.
pub(super) const FORMAT: u32 = 1;

/// A session, between two invocations.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format: u32,
    /// The turn has used up its invocation, and another one continues it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unfinished: bool,
    pub(super) session: Checkpoint,
}

impl Record {
    pub(super) fn new(session: Checkpoint, unfinished: bool) -> Self {
        Self { format: FORMAT, unfinished, session }
    }

    pub(super) fn row(&self) -> Kept {
        let session = &self.session;
        Kept {
            summary: summary(session, self.unfinished),
            interrupts: session.interrupts().to_vec(),
            head: session.head(),
            created: session.created(),
            updated: session.updated(),
        }
    }

    pub(super) fn settled(&self, key: &str, failure: Option<String>) -> Settled {
        let summary = summary(&self.session, self.unfinished);
        Settled {
            session: key.to_owned(),
            phase: summary.phase,
            step: summary.step,
            interrupts: self.session.interrupts().iter().map(|it| it.id.clone()).collect(),
            due: summary.due,
            failure,
        }
    }
}

/// A turn that another invocation continues is stopped in its log, and running for all others.
pub(super) fn summary(session: &Checkpoint, unfinished: bool) -> SessionSummary {
    let mut summary = session.summary().clone();
    if unfinished {
        summary.phase = Phase::Running;
    }
    summary
}

/// What lists show of a session.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) summary: SessionSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) interrupts: Vec<OpenInterrupt>,
    pub(super) head: Seq,
    pub(super) created: UtcMillis,
    pub(super) updated: UtcMillis,
}

/// How an invocation has left a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// The session.
    pub session: String,
    /// Its phase.
    pub phase: Phase,
    /// The current or next step; of an ended turn, the last step.
    pub step: String,
    /// The interrupts that wait for answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptId>,
    /// When it continues by itself, or an interrupt expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<UtcMillis>,
    /// Why the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The input of a turn.
#[derive(Serialize, Deserialize)]
pub(super) struct Start<I> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input_id: Option<String>,
    pub(super) input: I,
}

/// Answers to a session.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Resume {
    #[serde(default)]
    pub(super) answers: Vec<Given>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Given {
    pub(super) interrupt: InterruptId,
    pub(super) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
}

/// When a session must be woken.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Wake {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<UtcMillis>,
}

/// What to do to a run.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Signal {
    #[serde(default)]
    pub(super) cancel: bool,
}

/// Whether there was something to stop.
#[derive(Serialize, Deserialize)]
pub(super) struct Stopped {
    pub(super) stopped: bool,
}

/// Messages to a session.
#[derive(Serialize, Deserialize)]
pub(super) struct Receive {
    pub(super) messages: Vec<Message>,
}

/// What became of messages.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Received {
    Accepted(harness::store::InboxSeq),
    Taken { key: String, first: Message },
    TooLate { key: String },
}

impl Received {
    /// `None` for what this version does not know.
    pub(super) fn of(sent: Sent) -> Option<Self> {
        match sent {
            Sent::Accepted(seq) => Some(Self::Accepted(seq)),
            Sent::Taken { key, first } => Some(Self::Taken { key, first }),
            Sent::TooLate { key } => Some(Self::TooLate { key }),
            _ => None,
        }
    }

    pub(super) fn into_sent(self) -> Sent {
        match self {
            Self::Accepted(seq) => Sent::Accepted(seq),
            Self::Taken { key, first } => Sent::Taken { key, first },
            Self::TooLate { key } => Sent::TooLate { key },
        }
    }
}

/// The id of the session that an object keeps.
pub(super) fn session_of(key: &str) -> Option<SessionId> {
    SessionId::new(key).ok()
}
