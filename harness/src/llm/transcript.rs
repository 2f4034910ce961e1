//! The transcript of a conversation.
//!
//! A transcript is a list of entries and an index of the open tool calls. Folding a [`Message`]
//! appends one entry, fills in one outcome, or edits earlier entries. The result, [`Pushed`], reports
//! which, so that a log stores a change no larger than the message.
//!
//! # The index holds exactly the calls without an outcome, in transcript order
//!
//! Each push updates the index; an [`Edit`](super::Edit), and loading a transcript, rebuild it. Listing the open
//! calls costs their number, not the length of the transcript.
//!
//! # A transcript with an open call cannot be sent
//!
//! A request takes a [`Sealed`] transcript, which only [`Transcript::sealed`] creates.

mod edit;
mod sealed;
mod stored;

pub use edit::{Changed, EditError};
pub use sealed::{Open, OpenCall, Sealed};

use super::{Block, Entry, Message, ToolCall, ToolCallId, ToolOutcome, Turn};
use std::collections::{BTreeSet, VecDeque};

/// The conversation between users, a model and its tools.
///
/// ```
/// use harness::llm::{ToolCall, ToolOutcome, Transcript, Turn, user};
///
/// let mut talk = Transcript::from_iter([user("what time is it?")]);
/// talk.push(Turn::new([ToolCall::new("call-1-0", "now", "{}").into()]).into());
/// assert!(talk.has_open_calls());
/// assert!(talk.sealed().is_err());
///
/// talk.record(&"call-1-0".into(), ToolOutcome::ok("noon"))?;
/// assert!(talk.sealed().is_ok());
/// # Ok::<(), harness::llm::RecordError>(())
/// ```
///
/// # The JSON form is stable
///
/// It is the array of the entries: `[{"user": […]}, {"assistant": {"blocks": […]}}]`. A pinned entry
/// is `{"pinned": {"user": […]}}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    entries: Vec<Entry>,
    open: VecDeque<Place>,
    pinned: BTreeSet<usize>,
}

/// The position of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    entry: usize,
    block: usize,
}

/// What a folded message changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pushed {
    /// An entry was appended.
    Entry {
        /// The index of the entry. Its JSON path is `/{index}`.
        index: usize,
    },
    /// The outcome of an open call was filled in.
    Outcome {
        /// The index of the entry that made the call.
        entry: usize,
        /// The index of the call's block. The JSON path of the new outcome is
        /// `/{entry}/assistant/blocks/{block}/call/outcome`, below `/{entry}/pinned` if the entry is
        /// pinned.
        block: usize,
    },
    /// Earlier entries were edited.
    Edited,
    /// Nothing changed.
    Nothing,
}

impl Transcript {
    /// Creates an empty transcript.
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds in a message.
    ///
    /// Outcomes follow the rules of [`record`](Self::record), edits those of [`edit`](Self::edit). What
    /// these reject is dropped with a warning, because a fold cannot return an error.
    pub fn push(&mut self, message: Message) -> Pushed {
        match message {
            Message::User(content) => self.enter(Entry::User(content)),
            Message::Assistant(turn) => self.enter(Entry::Assistant(turn)),
            Message::Outcome { call, outcome } => {
                self.record(&call, outcome).unwrap_or_else(|error| {
                    tracing::warn!(call = %call, "dropped the outcome of a tool call: {error}");
                    Pushed::Nothing
                })
            }
            Message::Edit(edit) => match self.edit(edit) {
                Ok(_) => Pushed::Edited,
                Err(error) => {
                    tracing::warn!("dropped an edit of a transcript: {error}");
                    Pushed::Nothing
                }
            },
        }
    }

    /// Records the outcome of a call.
    ///
    /// If several open calls have that id, the oldest gets the outcome. The first outcome is kept:
    /// recording the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, if no turn contains the call or the call has another outcome.
    pub fn record(
        &mut self,
        call: &ToolCallId,
        outcome: ToolOutcome,
    ) -> Result<Pushed, RecordError> {
        let asked = |place: &Place| self.call_at(*place).is_some_and(|made| made.id == *call);
        let Some(at) = self.open.iter().position(asked) else {
            return match self.outcome_of(call) {
                Some(first) if *first == outcome => Ok(Pushed::Nothing),
                Some(_) => Err(RecordError::Answered { call: call.clone() }),
                None => Err(RecordError::UnknownCall { call: call.clone() }),
            };
        };
        let Some(Place { entry, block }) = self.open.remove(at) else {
            return Ok(Pushed::Nothing);
        };
        if let Some(Entry::Assistant(turn)) = self.entries.get_mut(entry)
            && let Some(Block::Call { outcome: place, .. }) = turn.blocks.get_mut(block)
        {
            *place = Some(outcome);
        }
        Ok(Pushed::Outcome { entry, block })
    }

    /// The transcript as a [`Sealed`] one, which can be sent.
    ///
    /// # Errors
    ///
    /// Fails with the open calls.
    pub fn sealed(&self) -> Result<Sealed<'_>, Open> {
        Sealed::of(self)
    }

    /// Whether a call has no outcome yet.
    pub fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    /// The calls without an outcome, in order.
    pub fn open_calls(&self) -> Vec<ToolCall> {
        self.open_refs().cloned().collect()
    }

    /// The text of the last turn of the model. `None` if it has no text or there is no turn.
    pub fn last_text(&self) -> Option<String> {
        self.last_turn().and_then(Turn::text)
    }

    /// The last turn of the model.
    pub fn last_turn(&self) -> Option<&Turn> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn),
            Entry::User(_) => None,
        })
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn enter(&mut self, entry: Entry) -> Pushed {
        let index = self.entries.len();
        self.open.extend(open_places(index, &entry));
        self.entries.push(entry);
        Pushed::Entry { index }
    }

    fn open_refs(&self) -> impl Iterator<Item = &ToolCall> {
        self.open.iter().filter_map(|place| self.call_at(*place))
    }

    fn call_at(&self, place: Place) -> Option<&ToolCall> {
        match self.entries.get(place.entry)? {
            Entry::Assistant(turn) => match turn.blocks.get(place.block)? {
                Block::Call { call, .. } => Some(call),
                _ => None,
            },
            Entry::User(_) => None,
        }
    }

    /// The outcome of the last call with that id.
    fn outcome_of(&self, id: &ToolCallId) -> Option<&ToolOutcome> {
        let turns = self.entries.iter().rev().filter_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn),
            Entry::User(_) => None,
        });
        turns.flat_map(|turn| turn.blocks.iter().rev()).find_map(|block| match block {
            Block::Call { call, outcome } if call.id == *id => outcome.as_ref(),
            _ => None,
        })
    }
}

impl From<Vec<Entry>> for Transcript {
    fn from(entries: Vec<Entry>) -> Self {
        let mut transcript = Self::default();
        for entry in entries {
            transcript.enter(entry);
        }
        transcript
    }
}

impl Extend<Message> for Transcript {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}

impl FromIterator<Message> for Transcript {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut transcript = Self::default();
        transcript.extend(messages);
        transcript
    }
}

/// Where the calls of an entry are that have no outcome.
fn open_places(index: usize, entry: &Entry) -> impl Iterator<Item = Place> {
    let blocks: &[Block] = match entry {
        Entry::Assistant(turn) => &turn.blocks,
        Entry::User(_) => &[],
    };
    let open = blocks.iter().enumerate();
    open.filter(|(_, block)| matches!(block, Block::Call { outcome: None, .. }))
        .map(move |(block, _)| Place { entry: index, block })
}

/// Why an outcome cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No turn contains the call.
    #[error("no turn contains the tool call `{call}` (push the turn that makes it first)")]
    UnknownCall {
        /// The call.
        call: ToolCallId,
    },
    /// The call has another outcome.
    #[error("the tool call `{call}` already has another outcome (the first outcome is kept)")]
    Answered {
        /// The call.
        call: ToolCallId,
    },
}

#[cfg(test)]
mod tests;
