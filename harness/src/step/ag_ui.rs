//! Questions and answers in the format of [AG-UI](https://docs.ag-ui.com), the protocol between
//! front ends and agents. An open question is an AG-UI *interrupt*. An answer is an entry of the
//! `resume` that starts its next run.
//!
//! ```
//! use harness::step::ag_ui::AgUiResume;
//! use harness::{Answers, Interrupt};
//!
//! /// Sent with `RUN_FINISHED`.
//! fn outgoing(questions: &[Interrupt]) -> serde_json::Value {
//!     let interrupts: Vec<_> = questions.iter().map(Interrupt::to_ag_ui).collect();
//!     serde_json::json!({ "type": "interrupt", "interrupts": interrupts })
//! }
//!
//! /// Received with the next run.
//! fn incoming(resume: &str) -> Result<Answers, Box<dyn std::error::Error>> {
//!     let list: Vec<AgUiResume> = serde_json::from_str(resume)?;
//!     let given = Answers::from_ag_ui(list);
//!     if let Some(id) = given.cancelled.first() {
//!         return Err(format!("question {id} was cancelled").into());
//!     }
//!     Ok(given.answers)
//! }
//!
//! assert!(incoming(r#"[{"interruptId": "4-1f", "status": "resolved", "payload": true}]"#).is_ok());
//! assert!(incoming(r#"[{"interruptId": "4-1f", "status": "cancelled"}]"#).is_err());
//! # let _ = outgoing(&[]);
//! ```
//!
//! Data without an AG-UI field is stored in `metadata`, so converting to AG-UI and back loses
//! nothing.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Position};

use super::interrupt::{APPROVE, Answers, Interrupt};

/// An open question in AG-UI format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiInterrupt {
    /// The id of the question. The answer must carry it.
    pub id: InterruptId,
    /// `tool_call` if it is about one, `confirmation` if the answer is a boolean, otherwise
    /// `input_required`.
    pub reason: String,
    /// The text to show to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool call that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The JSON schema that an answer must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When the question expires, in RFC 3339 format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// All other data, including the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The result of a question in AG-UI format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiResume {
    /// The question.
    pub interrupt_id: InterruptId,
    /// Whether it was answered.
    pub status: AgUiStatus,
    /// The answer. A denial is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// All other data. A string under `by` is the author of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Whether a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgUiStatus {
    /// It was answered.
    Resolved,
    /// It was cancelled and will not be answered.
    Cancelled,
}

/// The entries of an AG-UI `resume` by status, from [`Answers::from_ag_ui`].
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "answers have no effect until a session is resumed with them"]
pub struct AgUiAnswers {
    /// The answers.
    pub answers: Answers,
    /// The cancelled questions. A cancellation is not an answer: withdraw the questions with the
    /// session's next input, or stop the session.
    pub cancelled: Vec<InterruptId>,
}

/// Data without an AG-UI field.
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
    /// Set only if the time is later than RFC 3339 supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<UtcMillis>,
}

/// The tool call that the key of an approval names.
fn call_of(key: &str) -> Option<String> {
    let (call, digest) = key.strip_prefix(APPROVE)?.rsplit_once('/')?;
    (digest.len() == 64).then(|| call.to_owned())
}

/// The key of this data in `metadata`.
const REST: &str = "harness";

impl Interrupt {
    /// The question in AG-UI format. If the question has a string under `message`, that is the
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
        let tool_call_id = self.key.as_deref().and_then(call_of);
        // Plain data always encodes.
        let rest = serde_json::to_value(rest).unwrap_or_default();
        AgUiInterrupt {
            id: self.id.clone(),
            reason: match (&tool_call_id, is_bool) {
                (Some(_), _) => "tool_call",
                (None, true) => "confirmation",
                (None, false) => "input_required",
            }
            .to_owned(),
            message: self.question.get("message").and_then(Value::as_str).map(str::to_owned),
            tool_call_id,
            response_schema: Some(self.answer_schema.clone()),
            expires_at,
            metadata: Some(Map::from_iter([(REST.to_owned(), rest)])),
        }
    }

    /// Decodes a question that [`to_ag_ui`](Self::to_ag_ui) encoded.
    ///
    /// # Errors
    /// [`NotOurs`] if another framework encoded it, or data is missing.
    pub fn from_ag_ui(interrupt: &AgUiInterrupt) -> Result<Self, NotOurs> {
        let not_ours = |why: String| NotOurs { id: interrupt.id.clone(), why };
        let rest = interrupt.metadata.as_ref().and_then(|metadata| metadata.get(REST));
        let rest = rest.ok_or_else(|| not_ours(format!("it has no metadata under `{REST}`")))?;
        let rest = Rest::deserialize(rest)
            .map_err(|e| not_ours(format!("its metadata under `{REST}` does not decode: {e}")))?;
        let expires_at = match &interrupt.expires_at {
            None => rest.expires_at,
            Some(text) => Some(UtcMillis::from_rfc3339(text).ok_or_else(|| {
                not_ours(format!("its `expiresAt` is `{text}`, which is not an RFC 3339 time"))
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

/// An AG-UI interrupt that is not a question of a session: another framework sent it, or its
/// metadata was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOurs {
    id: InterruptId,
    why: String,
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, why } = self;
        write!(f, "interrupt `{id}` is not a question of a session: {why} (answer it by its id)")
    }
}

impl std::error::Error for NotOurs {}

impl Answers {
    /// Splits the entries of an AG-UI `resume` by status. Questions without an entry stay open.
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
