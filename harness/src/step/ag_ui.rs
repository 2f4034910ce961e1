//! Questions and answers in the words of [AG-UI](https://docs.ag-ui.com), the protocol by which
//! front ends talk to agents: a question that waits is one of its *interrupts*, an answer an entry
//! of the `resume` that starts its next run.
//!
//! ```
//! use harness::step::ag_ui::AgUiResume;
//! use harness::{Answers, Interrupt};
//!
//! /// What goes out with `RUN_FINISHED`.
//! fn outgoing(questions: &[Interrupt]) -> serde_json::Value {
//!     let interrupts: Vec<_> = questions.iter().map(Interrupt::to_ag_ui).collect();
//!     serde_json::json!({ "type": "interrupt", "interrupts": interrupts })
//! }
//!
//! /// What comes in.
//! fn incoming(resume: &str) -> Result<Answers, Box<dyn std::error::Error>> {
//!     let list: Vec<AgUiResume> = serde_json::from_str(resume)?;
//!     let given = Answers::from_ag_ui(list);
//!     if let Some(id) = given.cancelled.first() {
//!         return Err(format!("question {id} was abandoned").into());
//!     }
//!     Ok(given.answers)
//! }
//!
//! assert!(incoming(r#"[{"interruptId": "4-1f", "status": "resolved", "payload": true}]"#).is_ok());
//! assert!(incoming(r#"[{"interruptId": "4-1f", "status": "cancelled"}]"#).is_err());
//! # let _ = outgoing(&[]);
//! ```
//!
//! What AG-UI has no word for travels in `metadata`, so that nothing is lost on the way there and
//! back.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Position};

use super::interrupt::{Answers, Interrupt};

/// A question that waits, as AG-UI writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiInterrupt {
    /// Names the question; the answer must carry it.
    pub id: InterruptId,
    /// `confirmation` if the answer is yes or no, else `input_required`.
    pub reason: String,
    /// What to show to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool call that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The JSON schema that an answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When it can no longer be answered, as RFC 3339 writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The rest, among it the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// What became of a question, as AG-UI writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiResume {
    /// The question.
    pub interrupt_id: InterruptId,
    /// Whether it was answered.
    pub status: AgUiStatus,
    /// The answer; a denial is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The rest. A text under `by` says who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Whether a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgUiStatus {
    /// It was.
    Resolved,
    /// It was abandoned, and nobody will answer it.
    Cancelled,
}

/// The entries of an AG-UI `resume`, sorted; made by [`Answers::from_ag_ui`].
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "answers do nothing until a session is resumed with them"]
pub struct AgUiAnswers {
    /// The answers among them.
    pub answers: Answers,
    /// The questions that were abandoned. That is no answer, and none is made up for it: withdraw
    /// the questions with the session's next input, or stop the session.
    pub cancelled: Vec<InterruptId>,
}

/// What AG-UI has no field for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rest {
    name: String,
    question: Value,
    step: String,
    position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    asked_at: UtcMillis,
    /// Only if it is later than RFC 3339 can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<UtcMillis>,
}

/// Where the rest stands in `metadata`.
const REST: &str = "harness";

impl Interrupt {
    /// The question as AG-UI writes it. A text that the question holds under `message` becomes the
    /// message.
    #[must_use]
    pub fn to_ag_ui(&self) -> AgUiInterrupt {
        let is_bool = self.answer_schema.get("type").is_some_and(|kind| kind == "boolean");
        let expires_at = self.expires_at.and_then(UtcMillis::to_rfc3339);
        let rest = Rest {
            name: self.name.clone(),
            question: self.question.clone(),
            step: self.step.clone(),
            position: self.position,
            item: self.item,
            key: self.key.clone(),
            asked_at: self.asked_at,
            expires_at: self.expires_at.filter(|_| expires_at.is_none()),
        };
        // Plain data, which always encodes.
        let rest = serde_json::to_value(rest).unwrap_or_default();
        AgUiInterrupt {
            id: self.id.clone(),
            reason: if is_bool { "confirmation" } else { "input_required" }.to_owned(),
            message: self.question.get("message").and_then(Value::as_str).map(str::to_owned),
            tool_call_id: None,
            response_schema: Some(self.answer_schema.clone()),
            expires_at,
            metadata: Some(Map::from_iter([(REST.to_owned(), rest)])),
        }
    }

    /// Reads a question that [`to_ag_ui`](Self::to_ag_ui) wrote.
    ///
    /// # Errors
    /// [`NotOurs`] if it is from elsewhere, or not whole.
    pub fn from_ag_ui(interrupt: &AgUiInterrupt) -> Result<Self, NotOurs> {
        let not_ours = |why: String| NotOurs { id: interrupt.id.clone(), why };
        let rest = interrupt.metadata.as_ref().and_then(|metadata| metadata.get(REST));
        let rest = rest.ok_or_else(|| not_ours(format!("it has no metadata under `{REST}`")))?;
        let rest = Rest::deserialize(rest)
            .map_err(|e| not_ours(format!("its metadata under `{REST}` does not decode: {e}")))?;
        let expires_at = match &interrupt.expires_at {
            None => rest.expires_at,
            Some(text) => Some(UtcMillis::from_rfc3339(text).ok_or_else(|| {
                not_ours(format!("its `expiresAt` is `{text}`, which RFC 3339 does not know"))
            })?),
        };
        Ok(Self {
            id: interrupt.id.clone(),
            name: rest.name,
            question: rest.question,
            answer_schema: interrupt.response_schema.clone().unwrap_or(Value::Bool(true)),
            step: rest.step,
            position: rest.position,
            item: rest.item,
            key: rest.key,
            asked_at: rest.asked_at,
            expires_at,
        })
    }
}

/// An AG-UI interrupt that is not one of ours: another framework asked it, or what carried it
/// dropped its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOurs {
    id: InterruptId,
    why: String,
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, why } = self;
        write!(f, "interrupt `{id}` is no question of a session: {why} (answer it by its id)")
    }
}

impl std::error::Error for NotOurs {}

impl Answers {
    /// Sorts the entries of an AG-UI `resume`. Whatever is not sent is neither answered nor
    /// abandoned.
    pub fn from_ag_ui(list: impl IntoIterator<Item = AgUiResume>) -> AgUiAnswers {
        let mut sorted = AgUiAnswers::default();
        for AgUiResume { interrupt_id, status, payload, metadata } in list {
            match status {
                AgUiStatus::Cancelled => sorted.cancelled.push(interrupt_id),
                AgUiStatus::Resolved => {
                    let by = metadata.as_ref().and_then(|rest| rest.get("by")?.as_str());
                    let mut answer = Self::json(interrupt_id, payload.unwrap_or_default());
                    if let Some(by) = by {
                        answer = answer.by(by);
                    }
                    sorted.answers.list.append(&mut answer.list);
                }
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests;
