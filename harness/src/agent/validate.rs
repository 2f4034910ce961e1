//! Whether answers may be given, before any of them is.

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::graph::Wiring;
use crate::id::SessionId;
use crate::journal::{LetterBody, letters, question_key};
use crate::log::{Digest, Resolution, Saved, SavedQuestion};
use crate::question::mismatch;
use crate::run::Kind;
use crate::step::{Answer, Answers};
use crate::store::{Letter, SessionStore};

/// Answers that may be given.
pub(crate) struct Valid {
    /// Those that were not given before.
    pub(crate) letters: Vec<Letter>,
    /// Whether any were given before.
    pub(crate) consumed: bool,
}

/// Looks through all answers: each must be to a question that the session asks or has asked, fit
/// it, and not contradict what was answered before.
///
/// # Errors
/// The first that may not be given; none is, then.
pub(crate) async fn validate(
    store: &dyn SessionStore,
    session: &SessionId,
    saved: &Saved,
    wiring: &Wiring,
    answers: Answers,
) -> Result<Valid, Kind> {
    let mut valid = Valid { letters: Vec::new(), consumed: false };
    let mut given: Vec<(crate::id::InterruptId, Digest)> = Vec::new();
    for answer in answers.list {
        let Answer { id, name, value, by, at } = answer;
        let asked = saved.questions.iter().find(|asked| asked.interrupt.id == id);
        let fits = |value: Result<Value, String>| {
            let Some(asked) = asked else { return value };
            let value = value?;
            match unfit(asked, wiring, &value) {
                Some(why) => Err(why),
                None => Ok(value),
            }
        };
        if let (Some(asked), Some(name)) = (asked, name)
            && name != asked.interrupt.name
        {
            let asked = asked.interrupt.name.clone();
            return Err(Kind::AnotherQuestion { id, given: name.to_owned(), asked });
        }
        let value = fits(value).map_err(|why| Kind::IllTypedAnswer {
            id: id.clone(),
            asked: asked.map(|asked| asked.interrupt.name.clone()).unwrap_or_default(),
            why,
        })?;
        let digest = Digest::of(&value);
        let conflict = |recorded| Kind::Conflict { session: session.clone(), id: id.clone(), recorded };
        if let Some((_, earlier)) = given.iter().find(|(other, _)| *other == id) {
            match *earlier == digest {
                true => continue,
                false => return Err(conflict(None)),
            }
        }
        given.push((id.clone(), digest.clone()));
        let expired = || Kind::Expired { session: session.clone(), id: id.clone() };
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
                Resolution::Withdrawn => return Err(unknown(session, saved, id.clone())),
            },
            // The position is left. What was answered there is among the letters.
            None => {
                let all = letters(store, session).await.map_err(Kind::Store)?;
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
                    _ => return Err(unknown(session, saved, id.clone())),
                }
            }
        }
    }
    Ok(valid)
}

fn unknown(session: &SessionId, saved: &Saved, id: crate::id::InterruptId) -> Kind {
    let open = saved.open().map(|asked| asked.interrupt.id.to_string()).collect();
    Kind::UnknownInterrupt { session: session.clone(), id, open }
}

/// Why a value is no answer to the question. The type itself says so where the loop knows it, else
/// the schema that was stored with the question.
fn unfit(asked: &SavedQuestion, wiring: &Wiring, value: &Value) -> Option<String> {
    let gate = wiring
        .nodes
        .iter()
        .filter(|_| asked.interrupt.key.is_none())
        .filter_map(|node| node.question.as_ref())
        .find(|question| question.name == asked.interrupt.name);
    match gate {
        Some(question) => (question.check)(value).err(),
        None => mismatch(&asked.interrupt.answer_schema, value),
    }
}
