//! Questions that wait, and answers to them, as data.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Position};
use crate::question::Question;
use crate::state::encode;

use super::{Fatal, StepError};

/// Says whether a JSON value decodes as the answer to a question, and if not, why.
pub(crate) type Check = fn(&Value) -> Result<(), String>;

/// What is known of a question before it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuestionType {
    pub(crate) name: &'static str,
    pub(crate) answer_schema: fn() -> Value,
    pub(crate) check: Check,
}

impl QuestionType {
    pub(crate) fn of<Q: Question>() -> Self {
        Self {
            name: Q::NAME,
            answer_schema: || schemars::schema_for!(Q::Answer).to_value(),
            check: |value| match <Q::Answer as Deserialize>::deserialize(value) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// A question that a session waits on, as data: it can be shown, sent and stored.
///
/// Its typed form is a [`Pending`], which [`as_question`](Interrupt::as_question) gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interrupt {
    /// Names the question; an answer must carry it.
    pub id: InterruptId,
    /// The question's [`NAME`](Question::NAME).
    pub name: String,
    /// The question itself.
    pub question: Value,
    /// The JSON schema that an answer must fit.
    pub answer_schema: Value,
    /// The step that asked.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// The item that asked, from 0, in a step that has items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The key of an inline question; `None` for a gate.
    pub key: Option<String>,
    /// When it was asked.
    pub asked_at: UtcMillis,
    /// When it can no longer be answered; `None` if it waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UtcMillis>,
}

impl Interrupt {
    /// Whether this takes the place of another interrupt of the same position.
    pub(crate) fn replaces(&self, old: &Self) -> bool {
        self.item == old.item && self.key == old.key
    }

    /// The question with its type, which then builds the answer.
    ///
    /// # Errors
    /// [`NotThisQuestion`] if this is another question, or one whose stored form no longer decodes.
    pub fn as_question<Q: Question>(&self) -> Result<Pending<Q>, NotThisQuestion> {
        let wrong = |why: Option<String>| NotThisQuestion {
            expected: Q::NAME.to_owned(),
            found: vec![self.name.clone()],
            why,
        };
        if self.name != Q::NAME {
            return Err(wrong(None));
        }
        let question = Q::deserialize(&self.question).map_err(|e| wrong(Some(e.to_string())))?;
        Ok(Pending { id: self.id.clone(), question })
    }
}

/// A question was looked for that is not the one, or not the only one, that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotThisQuestion {
    pub(crate) expected: String,
    pub(crate) found: Vec<String>,
    pub(crate) why: Option<String>,
}

impl fmt::Display for NotThisQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found, why } = self;
        let waiting: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
        match (why, &waiting[..]) {
            (Some(why), _) => write!(f, "the stored question `{expected}` does not decode: {why}"),
            (None, []) => write!(f, "no question waits (expected `{expected}`)"),
            (None, names) => write!(
                f,
                "expected exactly one question `{expected}`, found {} (read `questions` and \
                 answer each by its id)",
                names.join(", ")
            ),
        }
    }
}

impl std::error::Error for NotThisQuestion {}

/// A question that waits, with its type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pending<Q> {
    /// Names the question.
    pub id: InterruptId,
    /// The question.
    pub question: Q,
}

impl<Q: Question> Pending<Q> {
    /// An answer to this question.
    pub fn answer(&self, answer: Q::Answer) -> Answers {
        Answers::one(Answer {
            id: self.id.clone(),
            name: Some(Q::NAME),
            value: encode(&answer).map_err(|error| error.to_string()),
            by: None,
            at: UtcMillis::now(),
        })
    }
}

/// Answers on their way to a session: one, or several joined by [`and`](Answers::and).
///
/// ```
/// use harness::Answers;
///
/// // As JSON, by the id that the question was shown with:
/// let answers = Answers::json("7f3a", serde_json::json!("approve")).by("sam");
/// let none = Answers::none();
/// # let _ = (answers, none);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "answers do nothing until a session is resumed with them"]
pub struct Answers {
    pub(crate) list: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) id: InterruptId,
    /// The question the sender believes to answer, when typed.
    pub(crate) name: Option<&'static str>,
    pub(crate) value: Result<Value, String>,
    pub(crate) by: Option<String>,
    pub(crate) at: UtcMillis,
}

impl Answers {
    fn one(answer: Answer) -> Self {
        Self { list: vec![answer] }
    }

    /// No answer: goes on with a session that needs none.
    pub fn none() -> Self {
        Self::default()
    }

    /// An answer as JSON, for a question known by its id.
    pub fn json(id: impl Into<InterruptId>, value: Value) -> Self {
        Self::one(Answer {
            id: id.into(),
            name: None,
            value: Ok(value),
            by: None,
            at: UtcMillis::now(),
        })
    }

    /// Records who answers, on every answer here that does not say yet.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        let who = who.into();
        for answer in self.list.iter_mut().filter(|answer| answer.by.is_none()) {
            answer.by = Some(who.clone());
        }
        self
    }

    /// These answers and `other`'s.
    pub fn and(mut self, other: Answers) -> Self {
        self.list.extend(other.list);
        self
    }
}

impl FromIterator<Answers> for Answers {
    fn from_iter<I: IntoIterator<Item = Answers>>(answers: I) -> Self {
        answers.into_iter().fold(Self::none(), Self::and)
    }
}

/// An answered question, as the second half of a gate gets it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answered<Q: Question> {
    /// What was asked.
    pub question: Q,
    /// What was answered.
    pub answer: Q::Answer,
    /// Who answered, if the answer says.
    pub by: Option<String>,
    /// When the answer was given.
    pub at: UtcMillis,
}

impl<Q: Question> Answered<Q> {
    pub(crate) fn decode(question: &Value, answer: Answer) -> Result<Self, StepError> {
        let value = answer.value.map_err(StepError::fatal)?;
        Ok(Self {
            question: Q::deserialize(question).fatal()?,
            answer: serde::Deserialize::deserialize(value).fatal()?,
            by: answer.by,
            at: answer.at,
        })
    }
}
