//! Giving answers to a session in a store: all of them are judged before any is sent.

use std::collections::HashMap;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, SessionId};
use crate::session::Session;
use crate::step::{Answer, Answers, Interrupt};
use crate::store::{Message, Sent, SessionStore, StoreError};

use super::judge::{AnswerError, Verdict, judge, open};
use super::message::{Body, interrupt_key};
use super::send::read_inbox;

/// Answers that may be given.
pub(crate) struct Checked {
    /// Those that were not given before.
    pub(crate) messages: Vec<Message>,
    /// Whether any were given before.
    pub(crate) repeated: bool,
}

/// Why answers were not given.
#[derive(Debug)]
pub(crate) enum NotGiven {
    Refused(AnswerError),
    Store(StoreError),
}

impl From<StoreError> for NotGiven {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AnswerError> for NotGiven {
    fn from(error: AnswerError) -> Self {
        Self::Refused(error)
    }
}

/// Judges all answers. `unfit` says why a value does not answer an interrupt.
///
/// # Errors
/// The first that is refused.
pub(crate) async fn check_answers(
    store: &dyn SessionStore,
    id: &SessionId,
    session: &Session,
    unfit: impl Fn(&Interrupt, &Value) -> Option<String>,
    answers: Answers,
) -> Result<Checked, NotGiven> {
    let mut checked = Checked { messages: Vec::new(), repeated: false };
    let mut earlier = HashMap::new();
    // Read once, and only for an answer to a position that the session has left.
    let mut inbox: Option<HashMap<String, Option<Body>>> = None;
    for answer in answers.list {
        match judge(session, &answer, &mut earlier, &unfit, UtcMillis::now())? {
            Verdict::Repeats => checked.repeated = true,
            Verdict::Resolves(value, _) => {
                let Answer { id, by, at, .. } = answer;
                checked.messages.push(Body::answer(&id, value, by, at));
            }
            Verdict::Left(digest) => {
                let first = match &mut inbox {
                    Some(inbox) => inbox,
                    None => inbox.insert(first_by_key(store, id).await?),
                };
                match first.get(&interrupt_key(&answer.id)) {
                    Some(Some(Body::Answer(given))) if given.digest == digest => {
                        checked.repeated = true;
                    }
                    Some(Some(Body::Answer(given))) => {
                        let recorded = Some(given.value.clone());
                        return Err(AnswerError::conflict(answer.id, recorded).into());
                    }
                    Some(Some(Body::Expired)) => {
                        return Err(AnswerError::expired(answer.id).into());
                    }
                    _ => return Err(AnswerError::unknown(answer.id, open(session)).into()),
                }
            }
        }
    }
    Ok(checked)
}

async fn first_by_key(
    store: &dyn SessionStore,
    id: &SessionId,
) -> Result<HashMap<String, Option<Body>>, StoreError> {
    let mut first = HashMap::new();
    for message in read_inbox(store, id).await? {
        first.entry(message.key).or_insert(message.body);
    }
    Ok(first)
}

/// Sends messages about interrupts: all or none.
///
/// # Errors
/// What was decided before, where that differs.
pub(crate) async fn send_all(
    store: &dyn SessionStore,
    session: &SessionId,
    messages: &[Message],
) -> Result<(), NotGiven> {
    let interrupt_of = |key: String| {
        let message = messages.iter().find(|message| message.key == key);
        let named = message.and_then(|message| message.interrupt.clone());
        named.unwrap_or_else(|| InterruptId::new(key))
    };
    match store.send(session, messages).await? {
        Sent::Accepted(_) => Ok(()),
        Sent::Taken { key, first } => {
            let id = interrupt_of(key);
            Err(match Body::read(&first) {
                Some(Body::Answer(given)) => AnswerError::conflict(id, Some(given.value)),
                Some(Body::Withdrawn) => AnswerError::unknown(id, Vec::new()),
                _ => AnswerError::expired(id),
            }
            .into())
        }
        Sent::TooLate { key } => Err(AnswerError::expired(interrupt_of(key)).into()),
    }
}
