//! The entries of a transcript, and changes of them.

use super::{Content, Turn};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An entry of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// A message of the user.
    User(Content),
    /// A turn of the model. The outcomes of its calls are in its blocks.
    Assistant(Turn),
}

/// A change of earlier entries of a transcript, by their index.
///
/// In a step, an edit is part of the update, like any message, and the log has its operations:
///
/// ```
/// # use harness::prelude::*;
/// use harness::llm::Edit;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Chat { #[state(reduce = transcript)] talk: Transcript }
///
/// async fn compact(chat: View<Chat>, _cx: Cx<()>) -> StepResult<Chat> {
///     let old = Edit::summarize(0..chat.talk.len() - 4, "The user wants a refund for order 17.");
///     chat.talk.check(&old)?;
///     Ok(Chat::update().talk([old.into()]))
/// }
/// ```
///
/// An edit never separates a tool call from its outcome: an entry with a call that has no outcome
/// yet cannot be removed or replaced, and a call that a replacement keeps keeps its outcome. A pinned
/// entry stays where it is, until it is unpinned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Edit {
    /// Removes the entries of a range that are not pinned.
    Remove {
        /// The first entry.
        from: usize,
        /// The entry after the last one.
        to: usize,
    },
    /// Replaces an entry that is not pinned.
    Replace {
        /// The entry.
        at: usize,
        /// What takes its place.
        entry: Entry,
    },
    /// Replaces the entries of a range that are not pinned by one message of the user.
    Summarize {
        /// The first entry.
        from: usize,
        /// The entry after the last one.
        to: usize,
        /// The message. It takes the place of the first entry that it replaces.
        summary: Content,
    },
    /// Pins an entry.
    Pin {
        /// The entry.
        at: usize,
    },
    /// Unpins an entry.
    Unpin {
        /// The entry.
        at: usize,
    },
}

impl Edit {
    /// Removes the entries of a range that are not pinned.
    pub fn remove(range: Range<usize>) -> Self {
        Self::Remove { from: range.start, to: range.end }
    }

    /// Replaces an entry that is not pinned.
    pub fn replace(at: usize, entry: Entry) -> Self {
        Self::Replace { at, entry }
    }

    /// Replaces the entries of a range that are not pinned by one message of the user.
    pub fn summarize(range: Range<usize>, summary: impl Into<Content>) -> Self {
        Self::Summarize { from: range.start, to: range.end, summary: summary.into() }
    }

    /// Pins an entry: it can be neither removed nor replaced.
    pub fn pin(at: usize) -> Self {
        Self::Pin { at }
    }

    /// Unpins an entry.
    pub fn unpin(at: usize) -> Self {
        Self::Unpin { at }
    }
}
