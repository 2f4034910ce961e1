//! Why an inline question has no answer.

use std::fmt;

use crate::llm::Advice;

/// An inline question that cannot be asked, that expired or changed, or whose answer does not decode.
/// A retry does not help: `?` converts it to a fatal error.
#[derive(Debug)]
pub struct AskError {
    key: String,
    kind: Kind,
    advice: Advice,
}

#[derive(Debug)]
pub(super) enum Kind {
    KeyReused,
    Expired,
    Changed { before: String, now: String },
    Encode(String),
    Decode(String),
}

impl AskError {
    pub(super) fn of(key: &str, kind: Kind) -> Self {
        Self { key: key.to_owned(), kind, advice: Advice::give_up() }
    }

    /// Whether the key was used twice in one attempt.
    pub fn is_key_reused(&self) -> bool {
        matches!(self.kind, Kind::KeyReused)
    }

    /// Whether the question expired before it was answered.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind, Kind::Expired)
    }

    /// Whether another question was answered under the key.
    pub fn is_question_changed(&self) -> bool {
        matches!(self.kind, Kind::Changed { .. })
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.kind {
            Kind::KeyReused => write!(
                f,
                "the key `{key}` is used twice in one attempt (give every question of a step its own \
                 key)"
            ),
            Kind::Expired => write!(f, "the question `{key}` expired before it was answered"),
            Kind::Changed { before, now } => write!(
                f,
                "the question `{key}` is not the one that was answered: {before} was, and the step \
                 now asks {now} (make its words in `cx.once(..)`, so that they stay the same, or ask \
                 under another key)"
            ),
            Kind::Encode(why) => f.write_str(why),
            Kind::Decode(why) => write!(f, "failed to decode the answer to `{key}`: {why}"),
        }
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.advice)
    }
}
