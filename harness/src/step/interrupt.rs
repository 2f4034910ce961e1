//! Open questions, and answers to them, as data.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Position};
use crate::question::{Breakpoint, BreakpointAt, Described, Question};
use crate::state::{of_json, to_json};

use super::{ResultExt, StepError};

/// What precedes the id of a call and a digest in the key of the question whether a tool may be called.
pub(crate) const APPROVE: &str = "approve/";

/// Checks that a JSON value decodes as the answer to a question, or returns why it does not.
pub(crate) type Check = fn(&Value) -> Result<(), String>;

/// The static properties of a question.
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
            answer_schema: || Q::Answer::schema().to_value(),
            check: |value| match of_json::<Q::Answer, _>(value) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// A question that a session waits for, as data that can be shown, sent and stored.
///
/// [`as_question`](Interrupt::as_question) converts it to its typed form, a [`Pending`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interrupt {
    /// The id of the question. An answer must carry it.
    pub id: InterruptId,
    /// The question's [`NAME`](Question::NAME).
    pub name: String,
    /// The question as JSON.
    pub question: Value,
    /// The JSON schema that an answer must match.
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
    /// When it expires. `None` waits indefinitely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UtcMillis>,
}

impl Interrupt {
    /// Whether the run itself asked, at a breakpoint, and no attempt of a step.
    pub(crate) fn is_breakpoint(&self) -> bool {
        let mut keys =
            [BreakpointAt::Before, BreakpointAt::After].map(BreakpointAt::key).into_iter();
        self.name == Breakpoint::NAME && keys.any(|key| self.key.as_deref() == Some(key))
    }

    /// The question with its type, which then creates the answer.
    ///
    /// # Errors
    /// [`NotThisQuestion`] if this is another question, or its stored form no longer decodes.
    pub fn as_question<Q: Question>(&self) -> Result<Pending<Q>, NotThisQuestion> {
        let wrong = |why: Option<String>| NotThisQuestion {
            expected: Q::NAME.to_owned(),
            found: vec![self.name.clone()],
            why,
        };
        if self.name != Q::NAME {
            return Err(wrong(None));
        }
        let question = of_json::<Q, _>(&self.question).map_err(|e| wrong(Some(e.to_string())))?;
        Ok(Pending { id: self.id.clone(), question })
    }
}

/// The expected question is not open, is not the only one, or does not decode.
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
            (None, []) => write!(f, "no open question (expected `{expected}`)"),
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

/// An open question with its type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pending<Q> {
    /// The id of the question.
    pub id: InterruptId,
    /// The question.
    pub question: Q,
}

impl<Q: Question> Pending<Q> {
    /// Creates an answer to this question.
    pub fn answer(&self, answer: Q::Answer) -> Answers {
        Answers::one(Answer {
            id: self.id.clone(),
            name: Some(Q::NAME),
            value: to_json(&answer).map_err(|error| error.to_string()),
            by: None,
            at: UtcMillis::now(),
        })
    }
}

/// Answers for a session: one, or several joined by [`and`](Answers::and).
///
/// ```
/// use harness::Answers;
///
/// // As JSON, by the id of the question:
/// let answers = Answers::json("7f3a", serde_json::json!("approve")).by("sam");
/// let none = Answers::none();
/// # let _ = (answers, none);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "answers have no effect until a session is resumed with them"]
pub struct Answers {
    pub(crate) list: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) id: InterruptId,
    /// The name of the question, if the answer is typed.
    pub(crate) name: Option<&'static str>,
    pub(crate) value: Result<Value, String>,
    pub(crate) by: Option<String>,
    pub(crate) at: UtcMillis,
}

impl Answers {
    fn one(answer: Answer) -> Self {
        Self { list: vec![answer] }
    }

    /// No answer, to resume a session that needs none.
    pub fn none() -> Self {
        Self::default()
    }

    /// A JSON answer to the question with this id.
    pub fn json(id: impl Into<InterruptId>, value: Value) -> Self {
        Self::one(Answer {
            id: id.into(),
            name: None,
            value: Ok(value),
            by: None,
            at: UtcMillis::now(),
        })
    }

    /// Sets the author of every answer here that has none.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        let who = who.into();
        for answer in self.list.iter_mut().filter(|answer| answer.by.is_none()) {
            answer.by = Some(who.clone());
        }
        self
    }

    /// These answers and those of `other`.
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

/// An answered question: what the second half of a gate takes, and what
/// [`Ask::answered`](crate::step::Ask::answered) gives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answered<Q: Question> {
    /// The question.
    pub question: Q,
    /// The answer.
    pub answer: Q::Answer,
    /// The author of the answer, if set.
    pub by: Option<String>,
    /// When the answer was given.
    pub at: UtcMillis,
}

impl<Q: Question> Answered<Q> {
    pub(crate) fn decode(question: &Value, answer: Answer) -> Result<Self, StepError> {
        let value = answer.value.map_err(StepError::fatal)?;
        Ok(Self {
            question: of_json(question).fatal()?,
            answer: of_json(value).fatal()?,
            by: answer.by,
            at: answer.at,
        })
    }
}
