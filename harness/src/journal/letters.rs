//! The letters that sessions get: answers, inputs, stops.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{Fence, InterruptId};
use crate::log::{Digest, Resolution, SavedAnswer};
use crate::store::{Letter, Mail, StoredLetter};

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
    pub(crate) mail: Mail,
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
    fn letter(&self, key: String, digest: String, question: Option<InterruptId>) -> Letter {
        // What is made here consists of JSON values and text, which always encode.
        let body = serde_json::to_vec(self).unwrap_or_default();
        Letter { key, digest, question, expiry: matches!(self, Self::Expired), body }
    }

    /// An answer's letter.
    pub(crate) fn answer(
        id: &InterruptId,
        value: Value,
        by: Option<String>,
        at: UtcMillis,
    ) -> Letter {
        let digest = Digest::of(&value);
        let answer = SavedAnswer { value, digest: digest.clone(), by, at };
        Self::Answer(answer).letter(question_key(id), format!("answer/{digest}"), Some(id.clone()))
    }

    pub(crate) fn expired(id: &InterruptId) -> Letter {
        Self::Expired.letter(question_key(id), "expired".into(), Some(id.clone()))
    }

    pub(crate) fn withdrawn(id: &InterruptId) -> Letter {
        Self::Withdrawn.letter(question_key(id), "withdrawn".into(), Some(id.clone()))
    }

    pub(crate) fn stop(fence: Fence, by: Option<String>) -> Letter {
        Self::Stop { by }.letter(stop_key(fence), "stop".into(), None)
    }

    pub(crate) fn input(id: &str, update: Value) -> Letter {
        let digest = Digest::of(&update).to_string();
        Self::Input(InputLetter { update }).letter(input_key(id), digest, None)
    }

    pub(crate) fn taken(key: &str) -> Letter {
        Self::Taken.letter(taken_key(key), "taken".into(), None)
    }

    /// Reads a letter. `None` if nobody can.
    pub(crate) fn read(letter: &Letter) -> Option<Self> {
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

pub(super) fn unread(letters: Vec<StoredLetter>) -> Vec<Unread> {
    letters
        .into_iter()
        .map(|StoredLetter { mail, letter }| Unread {
            mail,
            body: LetterBody::read(&letter),
            key: letter.key,
            question: letter.question,
        })
        .collect()
}
