//! The JSON form of a transcript.

use super::Transcript;
use crate::llm::{Content, Entry, Turn};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An entry as it is stored.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum AsStored<'a> {
    Plain(&'a Entry),
    Pinned { pinned: &'a Entry },
}

/// A stored entry as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Read {
    User(Content),
    Assistant(Turn),
    Pinned(Entry),
}

impl Transcript {
    /// The stored form of an entry.
    pub(crate) fn stored(&self, index: usize) -> Option<impl Serialize + '_> {
        let entry = self.entries.get(index)?;
        Some(match self.is_pinned(index) {
            false => AsStored::Plain(entry),
            true => AsStored::Pinned { pinned: entry },
        })
    }
}

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.entries.len()).filter_map(|index| self.stored(index)))
    }
}

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut transcript = Self::default();
        for read in Vec::<Read>::deserialize(deserializer)? {
            let entry = match read {
                Read::User(content) => Entry::User(content),
                Read::Assistant(turn) => Entry::Assistant(turn),
                Read::Pinned(entry) => {
                    transcript.pinned.insert(transcript.entries.len());
                    entry
                }
            };
            transcript.enter(entry);
        }
        Ok(transcript)
    }
}
