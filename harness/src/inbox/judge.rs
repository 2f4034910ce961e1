//! Whether an answer may be given: the one rule for the run, for recovery and for `Sessions`.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::graph::Wiring;
use crate::id::InterruptId;
use crate::question::mismatch;
use crate::session::{Digest, Resolution, Session, StepRef, check_value};
use crate::step::{Answer, Interrupt};
use crate::text::listed;

/// Why an answer was refused. If one of several answers is refused, none is recorded.
pub struct AnswerError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("no open interrupt `{id}` ({})", open_interrupts(open))]
    Unknown { id: InterruptId, open: Vec<String> },
    #[error("interrupt `{id}` already has another answer (the first answer is kept)")]
    Conflict { id: InterruptId, recorded: Option<Value> },
    #[error("the answer to `{id}` is for the question `{given}`, but `{asked}` was asked")]
    AnotherQuestion { id: InterruptId, given: String, asked: String },
    #[error("the answer to `{asked}` (`{id}`) does not fit: {why} (see its `answer_schema`)")]
    WrongType { id: InterruptId, asked: String, why: String },
    #[error(
        "interrupt `{id}` has expired (resume the session without an answer: the loop says what \
         follows)"
    )]
    Expired { id: InterruptId },
}

fn open_interrupts(open: &[String]) -> String {
    match open {
        [] => "the session waits for none".to_owned(),
        open => format!("the session waits for `{}`", listed(open, "`, `")),
    }
}

impl AnswerError {
    /// No interrupt of this id waits, or was answered, in the session.
    pub fn is_unknown_interrupt(&self) -> bool {
        matches!(*self.kind, Kind::Unknown { .. })
    }

    /// The interrupt has another answer.
    pub fn is_conflict(&self) -> bool {
        matches!(*self.kind, Kind::Conflict { .. })
    }

    /// The answer that is kept, after [`is_conflict`](Self::is_conflict). `None` if two answers of
    /// one call contradict each other.
    pub fn recorded_answer(&self) -> Option<&Value> {
        match &*self.kind {
            Kind::Conflict { recorded, .. } => recorded.as_ref(),
            _ => None,
        }
    }

    /// The interrupt expired before the answer came.
    pub fn is_expired(&self) -> bool {
        matches!(*self.kind, Kind::Expired { .. })
    }

    /// The answer has another type than its question takes, or is for another question.
    pub fn is_wrong_answer(&self) -> bool {
        matches!(*self.kind, Kind::AnotherQuestion { .. } | Kind::WrongType { .. })
    }

    /// The interrupt that the answer names.
    pub fn interrupt(&self) -> &InterruptId {
        match &*self.kind {
            Kind::Unknown { id, .. }
            | Kind::Conflict { id, .. }
            | Kind::AnotherQuestion { id, .. }
            | Kind::WrongType { id, .. }
            | Kind::Expired { id } => id,
        }
    }

    /// The session does not ask an interrupt of this id.
    pub(crate) fn not_asked<P: StepRef>(session: &Session<P>, id: InterruptId) -> Self {
        Self::unknown(id, open(session))
    }

    pub(super) fn unknown(id: InterruptId, open: Vec<String>) -> Self {
        Kind::Unknown { id, open }.into()
    }

    pub(super) fn conflict(id: InterruptId, recorded: Option<Value>) -> Self {
        Kind::Conflict { id, recorded }.into()
    }

    pub(super) fn expired(id: InterruptId) -> Self {
        Kind::Expired { id }.into()
    }
}

impl From<Kind> for AnswerError {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// As it displays: an answer may be confidential.
impl fmt::Debug for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerError({self})")
    }
}

impl std::error::Error for AnswerError {}

/// What an answer means to its session.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It resolves its interrupt.
    Resolves(Value, Digest),
    /// It repeats the answer that the interrupt has, or one given in the same call.
    Repeats,
    /// The session no longer has the interrupt: what was answered there is in the inbox.
    Left(Digest),
}

/// Judges an answer. `unfit` says why a value does not answer an interrupt; `earlier` are the
/// answers of the same call that were judged before.
///
/// # Errors
/// Why it is refused.
pub(crate) fn judge<P: StepRef>(
    session: &Session<P>,
    answer: &Answer,
    earlier: &mut HashMap<InterruptId, Digest>,
    unfit: impl Fn(&Interrupt, &Value) -> Option<String>,
    now: UtcMillis,
) -> Result<Verdict, AnswerError> {
    let Answer { id, name, value, .. } = answer;
    let asked = session.interrupt(id);
    if let (Some(asked), Some(name)) = (asked, name)
        && *name != asked.interrupt.name
    {
        let (given, asked) = ((*name).to_owned(), asked.interrupt.name.clone());
        return Err(Kind::AnotherQuestion { id: id.clone(), given, asked }.into());
    }
    let fits = value.clone().and_then(|value| {
        match asked.and_then(|asked| unfit(&asked.interrupt, &value)) {
            Some(why) => Err(why),
            // A message that does not decode would block every other answer.
            None => check_value(&value).map(|()| value).map_err(|error| error.to_string()),
        }
    });
    let value = fits.map_err(|why| Kind::WrongType {
        id: id.clone(),
        asked: asked.map(|asked| asked.interrupt.name.clone()).unwrap_or_default(),
        why,
    })?;
    let digest = Digest::of(&value);
    if let Some(before) = earlier.get(id) {
        return match *before == digest {
            true => Ok(Verdict::Repeats),
            false => Err(AnswerError::conflict(id.clone(), None)),
        };
    }
    earlier.insert(id.clone(), digest.clone());
    let Some(asked) = asked else { return Ok(Verdict::Left(digest)) };
    match &asked.resolution {
        None if asked.is_overdue(now) => Err(AnswerError::expired(id.clone())),
        None => Ok(Verdict::Resolves(value, digest)),
        Some(Resolution::Answered { digest: recorded, .. }) if *recorded == digest => {
            Ok(Verdict::Repeats)
        }
        Some(Resolution::Answered { value, .. }) => {
            Err(AnswerError::conflict(id.clone(), Some(value.clone())))
        }
        Some(Resolution::Expired) => Err(AnswerError::expired(id.clone())),
        Some(Resolution::Withdrawn) => Err(AnswerError::unknown(id.clone(), open(session))),
    }
}

/// Why a value does not answer an interrupt of this loop. The type itself says so where the loop
/// knows it, else the schema that was stored with the question.
pub(crate) fn unfit(wiring: &Wiring, asked: &Interrupt, value: &Value) -> Option<String> {
    let gate = wiring
        .nodes
        .iter()
        .filter(|_| asked.key.is_none())
        .filter_map(|node| node.question.as_ref())
        .find(|question| question.name == asked.name);
    match gate {
        Some(question) => (question.check)(value).err(),
        None => mismatch(&asked.answer_schema, value),
    }
}

/// The ids of the interrupts that wait.
pub(super) fn open<P: StepRef>(session: &Session<P>) -> Vec<String> {
    session.open_interrupts().map(|interrupt| interrupt.id.to_string()).collect()
}
