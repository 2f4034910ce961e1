//! Applies changes of earlier entries.

use super::{Transcript, open_places};
use crate::llm::{Block, Edit, Entry, ToolCallId, Turn};
use std::collections::BTreeSet;
use std::ops::Range;

/// What an edit did to the list of entries. In this order, the changes replay to the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed {
    /// The entry was replaced, pinned or unpinned.
    Set {
        /// Its index.
        index: usize,
    },
    /// The entry was removed.
    Removed {
        /// The index it had, once the changes before it were made.
        index: usize,
    },
}

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The range is not one of the transcript.
    #[error(
        "entries {from}..{to} are not in the transcript, which has {entries} (use a range of its \
         entries)"
    )]
    OutOfRange {
        /// The first entry.
        from: usize,
        /// The entry after the last one.
        to: usize,
        /// How many entries there are.
        entries: usize,
    },
    /// The entry is pinned.
    #[error("entry {at} is pinned (unpin it first)")]
    Pinned {
        /// The entry.
        at: usize,
    },
    /// A call of the entry has no outcome yet.
    #[error("the tool call `{call}` of entry {at} has no outcome yet (record it first)")]
    Open {
        /// The entry.
        at: usize,
        /// The call.
        call: ToolCallId,
    },
}

impl Transcript {
    /// Whether an entry is pinned.
    pub fn is_pinned(&self, index: usize) -> bool {
        self.pinned.contains(&index)
    }

    /// Whether an edit can be made. A step checks the edit that it returns, because a reducer drops
    /// one that cannot be made.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub fn check(&self, edit: &Edit) -> Result<(), EditError> {
        let (from, to) = match edit {
            Edit::Remove { from, to } | Edit::Summarize { from, to, .. } => (*from, *to),
            Edit::Replace { at, .. } | Edit::Pin { at } | Edit::Unpin { at } => {
                (*at, at.saturating_add(1))
            }
        };
        let entries = self.entries.len();
        if from >= to || to > entries {
            return Err(EditError::OutOfRange { from, to, entries });
        }
        match edit {
            Edit::Pin { .. } | Edit::Unpin { .. } => return Ok(()),
            Edit::Replace { at, .. } if self.is_pinned(*at) => {
                return Err(EditError::Pinned { at: *at });
            }
            _ => {}
        }
        let open = self
            .open
            .iter()
            .find(|place| (from..to).contains(&place.entry) && !self.is_pinned(place.entry));
        match open.and_then(|place| Some((place.entry, self.call_at(*place)?.id.clone()))) {
            Some((at, call)) => Err(EditError::Open { at, call }),
            None => Ok(()),
        }
    }

    /// Makes an edit. Returns what it changed.
    ///
    /// ```
    /// use harness::llm::{Edit, Transcript, Turn, user};
    ///
    /// let mut talk = Transcript::from_iter([user("rules"), user("a"), Turn::from("b").into()]);
    /// talk.edit(Edit::pin(0))?;
    /// talk.edit(Edit::summarize(0..3, "a, and b"))?;
    /// assert_eq!(talk.len(), 2);
    /// # Ok::<(), harness::llm::EditError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Why it cannot be made. The transcript is unchanged then.
    pub fn edit(&mut self, edit: Edit) -> Result<Vec<Changed>, EditError> {
        self.check(&edit)?;
        let changed = match edit {
            Edit::Remove { from, to } => self.remove(self.loose(from..to)),
            Edit::Replace { at, entry } => self.replace(at, entry),
            Edit::Summarize { from, to, summary } => {
                let mut places = self.loose(from..to).into_iter();
                let Some(first) = places.next() else { return Ok(Vec::new()) };
                let mut changed = self.replace(first, Entry::User(summary));
                changed.extend(self.remove(places.collect()));
                changed
            }
            Edit::Pin { at } => match self.pinned.insert(at) {
                true => vec![Changed::Set { index: at }],
                false => Vec::new(),
            },
            Edit::Unpin { at } => match self.pinned.remove(&at) {
                true => vec![Changed::Set { index: at }],
                false => Vec::new(),
            },
        };
        let entries = self.entries.iter().enumerate();
        self.open = entries.flat_map(|(index, entry)| open_places(index, entry)).collect();
        Ok(changed)
    }

    /// The entries of a range that are not pinned.
    fn loose(&self, range: Range<usize>) -> Vec<usize> {
        range.filter(|index| !self.is_pinned(*index)).collect()
    }

    /// Removes entries, the last one first, so that the indices before it stay.
    fn remove(&mut self, places: Vec<usize>) -> Vec<Changed> {
        let gone: BTreeSet<usize> = places.iter().copied().collect();
        let mut index = 0;
        self.entries.retain(|_| {
            index += 1;
            !gone.contains(&(index - 1))
        });
        let moved = |pin: &usize| pin - gone.range(..pin).count();
        self.pinned = self.pinned.iter().map(moved).collect();
        places.into_iter().rev().map(|index| Changed::Removed { index }).collect()
    }

    fn replace(&mut self, at: usize, mut entry: Entry) -> Vec<Changed> {
        let Some(place) = self.entries.get_mut(at) else { return Vec::new() };
        if let (Entry::Assistant(before), Entry::Assistant(turn)) = (&*place, &mut entry) {
            keep_outcomes(before, turn);
        }
        *place = entry;
        vec![Changed::Set { index: at }]
    }
}

/// Gives the calls that `turn` keeps of `before` the outcomes they had.
fn keep_outcomes(before: &Turn, turn: &mut Turn) {
    for block in &mut turn.blocks {
        let Block::Call { call, outcome } = block else { continue };
        let same = before.blocks.iter().find_map(|old| match old {
            Block::Call { call: old, outcome } if old.id == call.id => outcome.clone(),
            _ => None,
        });
        if same.is_some() {
            *outcome = same;
        }
    }
}

#[cfg(test)]
mod tests;
