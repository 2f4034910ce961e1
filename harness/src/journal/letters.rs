//! The letters that sessions get: answers, inputs, stops.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{Fence, InterruptId};
use crate::log::{Digest, Resolution, SavedAnswer};
use crate::store::{InboxSeq, Message, StoredMessage};

/// What a letter says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LetterBody {
    /// An answer to the question that the letter names.
    Answer(SavedAnswer),
    /// The question that the letter names was not answered in time.
    Expired,
    /// The question that the letter names is no longer asked.
    Withdrawn,
    /// The run is to stop at the next boundary.
    Stop {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The input of the next turn.
    Input(InputLetter),
    /// An input was taken, and its turn is over.
    Taken,
}

/// The input of a turn: an update of the state, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputLetter {
    pub(crate) update: Value,
}

/// A letter that was not taken into the log yet.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) mail: InboxSeq,
    pub(crate) key: String,
    pub(crate) question: Option<InterruptId>,
    /// `None` if nobody can read it.
    pub(crate) body: Option<LetterBody>,
}

/// Under this key the first of all answers, expiries and withdrawals of a question decides.
pub(crate) fn question_key(id: &InterruptId) -> String {
    format!("question/{id}")
}

/// Under this key a holder is asked to stop.
pub(crate) fn stop_key(fence: Fence) -> String {
    format!("stop/{fence}")
}

/// Under this key it is noted that the input given under `key` was taken.
pub(crate) fn taken_key(key: &str) -> String {
    format!("taken/{key}")
}

/// Under this key an input is given.
pub(crate) fn input_key(id: &str) -> String {
    format!("input/{id}")
}

impl LetterBody {
    fn letter(&self, key: String, digest: String, question: Option<InterruptId>) -> Message {
        // What is made here consists of JSON values and text, which always encode.
        let body = serde_json::to_vec(self).unwrap_or_default();
        Message { key, digest, interrupt: question, expiry: matches!(self, Self::Expired), body }
    }

    /// An answer's letter.
    pub(crate) fn answer(
        id: &InterruptId,
        value: Value,
        by: Option<String>,
        at: UtcMillis,
    ) -> Message {
        let digest = Digest::of(&value);
        let answer = SavedAnswer { value, digest: digest.clone(), by, at };
        Self::Answer(answer).letter(question_key(id), format!("answer/{digest}"), Some(id.clone()))
    }

    pub(crate) fn expired(id: &InterruptId) -> Message {
        Self::Expired.letter(question_key(id), "expired".into(), Some(id.clone()))
    }

    pub(crate) fn withdrawn(id: &InterruptId) -> Message {
        Self::Withdrawn.letter(question_key(id), "withdrawn".into(), Some(id.clone()))
    }

    pub(crate) fn stop(fence: Fence, by: Option<String>) -> Message {
        Self::Stop { by }.letter(stop_key(fence), "stop".into(), None)
    }

    pub(crate) fn input(id: &str, update: Value) -> Message {
        let digest = Digest::of(&update).to_string();
        Self::Input(InputLetter { update }).letter(input_key(id), digest, None)
    }

    pub(crate) fn taken(key: &str) -> Message {
        Self::Taken.letter(taken_key(key), "taken".into(), None)
    }

    /// Reads a letter. `None` if nobody can.
    pub(crate) fn read(letter: &Message) -> Option<Self> {
        serde_json::from_slice(&letter.body).ok()
    }

    /// What becomes of a question by this.
    pub(crate) fn resolution(self) -> Option<Resolution> {
        match self {
            Self::Answer(SavedAnswer { value, digest, by, at }) => {
                Some(Resolution::Answered { value, digest, by, at })
            }
            Self::Expired => Some(Resolution::Expired),
            Self::Withdrawn => Some(Resolution::Withdrawn),
            Self::Stop { .. } | Self::Input(_) | Self::Taken => None,
        }
    }
}

pub(super) fn unread(letters: Vec<StoredMessage>) -> Vec<Unread> {
    letters
        .into_iter()
        .map(|stored| {
            let StoredMessage { seq, message: letter, .. } = stored;
            Unread {
                mail: seq,
                body: LetterBody::read(&letter),
                key: letter.key,
                question: letter.interrupt,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// Each kind of letter, and what it is in the stores of the first version, where it stays.
    fn kept() -> Vec<(Message, &'static str)> {
        let id = InterruptId::new("3-aa");
        let (at, sam) = (UtcMillis(1_763_729_326_129), || Some("Sam".to_owned()));
        let value = || json!({"text": "Grüß\n", "ok": true});
        vec![
            (
                LetterBody::answer(&id, value(), sam(), at),
                r#"{"key":"question/3-aa","digest":"answer/744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","question":"3-aa","body":{"answer":{"value":{"ok":true,"text":"Grüß\n"},"digest":"744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","by":"Sam","at":1763729326129}}}"#,
            ),
            (
                LetterBody::answer(&id, Value::Null, None, at),
                r#"{"key":"question/3-aa","digest":"answer/74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","question":"3-aa","body":{"answer":{"value":null,"digest":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","at":1763729326129}}}"#,
            ),
            (
                LetterBody::expired(&id),
                r#"{"key":"question/3-aa","digest":"expired","question":"3-aa","expiry":true,"body":"expired"}"#,
            ),
            (
                LetterBody::withdrawn(&id),
                r#"{"key":"question/3-aa","digest":"withdrawn","question":"3-aa","body":"withdrawn"}"#,
            ),
            (
                LetterBody::stop(Fence(7), sam()),
                r#"{"key":"stop/7","digest":"stop","body":{"stop":{"by":"Sam"}}}"#,
            ),
            (
                LetterBody::stop(Fence(7), None),
                r#"{"key":"stop/7","digest":"stop","body":{"stop":{}}}"#,
            ),
            (
                LetterBody::input("mail/17", value()),
                r#"{"key":"input/mail/17","digest":"744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","body":{"input":{"update":{"ok":true,"text":"Grüß\n"}}}}"#,
            ),
            (
                LetterBody::taken("input/mail/17"),
                r#"{"key":"taken/input/mail/17","digest":"taken","body":"taken"}"#,
            ),
        ]
    }

    fn line(letter: &Message) -> String {
        let Message { key, digest, interrupt: question, expiry, body } = letter;
        let text = |text: &str| serde_json::to_string(text).unwrap();
        let mut line = format!(r#"{{"key":{},"digest":{}"#, text(key), text(digest));
        if let Some(question) = question {
            line += &format!(r#","question":{}"#, text(question.as_str()));
        }
        if *expiry {
            line += r#","expiry":true"#;
        }
        line + &format!(r#","body":{}}}"#, std::str::from_utf8(body).unwrap())
    }

    #[test]
    fn a_letter_is_written_as_ever() {
        for (letter, kept) in kept() {
            assert_eq!(line(&letter), kept);
        }
    }

    #[test]
    fn a_letter_that_was_kept_is_read_as_ever() {
        let said: Vec<LetterBody> = kept()
            .into_iter()
            .map(|(letter, kept)| {
                let (_, body) = kept.split_once(r#""body":"#).unwrap();
                let body = body.strip_suffix('}').unwrap().as_bytes().to_vec();
                LetterBody::read(&Message { body, ..letter }).unwrap()
            })
            .collect();
        let at = UtcMillis(1_763_729_326_129);
        let answer = |value: Value, by: Option<&str>| {
            let digest = Digest::of(&value);
            LetterBody::Answer(SavedAnswer { value, digest, by: by.map(str::to_owned), at })
        };
        let value = json!({"ok": true, "text": "Grüß\n"});
        let expected = [
            answer(value.clone(), Some("Sam")),
            answer(Value::Null, None),
            LetterBody::Expired,
            LetterBody::Withdrawn,
            LetterBody::Stop { by: Some("Sam".to_owned()) },
            LetterBody::Stop { by: None },
            LetterBody::Input(InputLetter { update: value }),
            LetterBody::Taken,
        ];
        assert_eq!(said, expected);
    }
}
