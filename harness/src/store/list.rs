//! Lists of sessions and of open questions.

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Seq, SessionId};

use super::facts::{Facts, OpenQuestion, Phase};

/// What to list. Conditions hold together; the default lists all sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// A row for each open question, not for each session.
    pub questions: bool,
    /// Only sessions of this agent.
    pub agent: Option<AgentId>,
    /// Only sessions in this phase.
    pub phase: Option<Phase>,
}

impl Filter {
    /// All sessions.
    #[must_use]
    pub fn sessions() -> Self {
        Self::default()
    }

    /// All open questions.
    #[must_use]
    pub fn questions() -> Self {
        Self { questions: true, ..Self::default() }
    }

    /// Only those of this agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Only those in this phase.
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Whether a session with these facts is listed.
    #[must_use]
    pub fn admits(&self, facts: &Facts) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == facts.agent)
            && self.phase.is_none_or(|phase| phase == facts.phase)
    }
}

/// Some rows of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The rows, in the order of their keys.
    pub rows: Vec<Row>,
    /// Where the next page begins; `None` after the last row.
    pub next: Option<Vec<u8>>,
}

/// A session, or one of its open questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The session.
    pub session: SessionId,
    /// Its facts.
    pub facts: Facts,
    /// The seq of its last entry.
    pub head: Seq,
    /// The writer's time of its first batch.
    pub created: UtcMillis,
    /// The writer's time of its last batch.
    pub updated: UtcMillis,
    /// The question, in a list of questions.
    pub question: Option<OpenQuestion>,
}

impl Row {
    /// Where the row stands in its list: the session's id; in a list of questions followed by a
    /// zero byte, which no order confuses with an id that goes on, and the question's id.
    ///
    /// Ids may themselves hold zero bytes, so each is written as two bytes, 0 and 255.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        Self::key_of(&self.session, self.question.as_ref().map(|question| &question.id))
    }

    /// The key of a row without the row.
    pub(super) fn key_of(session: &SessionId, question: Option<&InterruptId>) -> Vec<u8> {
        let mut key = Vec::with_capacity(session.as_str().len());
        for byte in session.as_str().bytes() {
            key.push(byte);
            if byte == 0 {
                key.push(255);
            }
        }
        if let Some(question) = question {
            key.extend([0, 1]);
            key.extend(question.as_str().bytes());
        }
        key
    }
}
