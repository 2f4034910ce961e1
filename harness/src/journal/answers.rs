//! Whether answers may be given, before any of them is, and giving them.

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, SessionId};
use crate::log::{Digest, Resolution, Saved, SavedQuestion, check_value};
use crate::step::{Answer, Answers, Interrupt};
use crate::store::{Message, Sent, SessionStore, StoreError};

use super::letters::{LetterBody, question_key};
use super::open::letters;

/// Answers that may be given.
pub(crate) struct Valid {
    /// Those that were not given before.
    pub(crate) letters: Vec<Message>,
    /// Whether any were given before.
    pub(crate) consumed: bool,
}

/// Why answers may not be given. None of them is, then.
#[derive(Debug)]
pub(crate) enum Refused {
    Store(StoreError),
    Unknown { id: InterruptId, open: Vec<String> },
    Conflict { id: InterruptId, recorded: Option<Value> },
    AnotherQuestion { id: InterruptId, given: String, asked: String },
    IllTyped { id: InterruptId, asked: String, why: String },
    Expired { id: InterruptId },
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Looks through all answers: each must be to a question that the session asks or has asked, fit
/// it, and not contradict what was answered before. `unfit` says why a value is no answer to a
/// question.
///
/// # Errors
/// The first that may not be given; none is, then.
pub(crate) async fn validate(
    store: &dyn SessionStore,
    session: &SessionId,
    saved: &Saved,
    unfit: impl Fn(&Interrupt, &Value) -> Option<String>,
    answers: Answers,
) -> Result<Valid, Refused> {
    let mut valid = Valid { letters: Vec::new(), consumed: false };
    let mut given: Vec<(InterruptId, Digest)> = Vec::new();
    for answer in answers.list {
        let Answer { id, name, value, by, at } = answer;
        let asked = saved.questions.iter().find(|asked| asked.interrupt.id == id);
        if let (Some(asked), Some(name)) = (asked, name)
            && name != asked.interrupt.name
        {
            let asked = asked.interrupt.name.clone();
            return Err(Refused::AnotherQuestion { id, given: name.to_owned(), asked });
        }
        let fits =
            value.and_then(|value| match asked.and_then(|asked| unfit(&asked.interrupt, &value)) {
                Some(why) => Err(why),
                // A letter that nobody can read would stand in the way of every other answer.
                None => check_value(&value).map(|()| value).map_err(|error| error.to_string()),
            });
        let value = fits.map_err(|why| Refused::IllTyped {
            id: id.clone(),
            asked: asked.map(|asked| asked.interrupt.name.clone()).unwrap_or_default(),
            why,
        })?;
        let digest = Digest::of(&value);
        let conflict = |recorded| Refused::Conflict { id: id.clone(), recorded };
        if let Some((_, earlier)) = given.iter().find(|(other, _)| *other == id) {
            match *earlier == digest {
                true => continue,
                false => return Err(conflict(None)),
            }
        }
        given.push((id.clone(), digest.clone()));
        let expired = || Refused::Expired { id: id.clone() };
        match asked {
            Some(SavedQuestion { resolution: None, interrupt }) => {
                if interrupt.expires_at.is_some_and(|at| at <= UtcMillis::now()) {
                    return Err(expired());
                }
                valid.letters.push(LetterBody::answer(&id, value, by, at));
            }
            Some(SavedQuestion { resolution: Some(resolution), .. }) => match resolution {
                Resolution::Answered { digest: recorded, .. } if *recorded == digest => {
                    valid.consumed = true;
                }
                Resolution::Answered { value, .. } => return Err(conflict(Some(value.clone()))),
                Resolution::Expired => return Err(expired()),
                Resolution::Withdrawn => return Err(unknown(saved, id.clone())),
            },
            // The position is left. What was answered there is among the letters.
            None => {
                let all = letters(store, session).await?;
                let key = question_key(&id);
                let first = all.into_iter().find(|letter| letter.key == key);
                match first.and_then(|letter| letter.body) {
                    Some(LetterBody::Answer(recorded)) if recorded.digest == digest => {
                        valid.consumed = true;
                    }
                    Some(LetterBody::Answer(recorded)) => {
                        return Err(conflict(Some(recorded.value)));
                    }
                    Some(LetterBody::Expired) => return Err(expired()),
                    _ => return Err(unknown(saved, id.clone())),
                }
            }
        }
    }
    Ok(valid)
}

fn unknown(saved: &Saved, id: InterruptId) -> Refused {
    let open = saved.open().map(|asked| asked.interrupt.id.to_string()).collect();
    Refused::Unknown { id, open }
}

/// Posts letters about questions: all or none.
///
/// # Errors
/// What was decided before, where that differs.
pub(crate) async fn post_all(
    store: &dyn SessionStore,
    session: &SessionId,
    letters: &[Message],
) -> Result<(), Refused> {
    let question_of = |key: String| {
        let letter = letters.iter().find(|letter| letter.key == key);
        letter.and_then(|letter| letter.interrupt.clone()).unwrap_or_else(|| InterruptId::new(key))
    };
    match store.send(session, letters).await? {
        Sent::Accepted(_) => Ok(()),
        Sent::Taken { key, first } => {
            let id = question_of(key);
            Err(match LetterBody::read(&first) {
                Some(LetterBody::Answer(answer)) => {
                    Refused::Conflict { id, recorded: Some(answer.value) }
                }
                Some(LetterBody::Withdrawn) => Refused::Unknown { id, open: Vec::new() },
                _ => Refused::Expired { id },
            })
        }
        Sent::TooLate { key } => Err(Refused::Expired { id: question_of(key) }),
    }
}
