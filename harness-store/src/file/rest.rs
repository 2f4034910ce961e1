//! What a session at rest leaves a note of.

use harness::store::{Facts, OpenQuestion, StoreError};
use harness::{SessionId, UtcMillis};
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::error::failed;
use super::index::{Index, Mark};
use super::lease::read_small;
use super::notes::{Key, Notes};
use super::session::Paths;

/// A session at rest, as it is noted: up to where the log was acknowledged, and
/// what a list says of it, which holds for as long as the log ends there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rest {
    pub(crate) id: SessionId,
    pub(crate) life: String,
    #[serde(default)]
    pub(crate) rewritten: u64,
    pub(crate) offset: u64,
    pub(crate) sum: u32,
    pub(crate) head: u64,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) facts: Facts,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) questions: Vec<OpenQuestion>,
    pub(crate) mail: u64,
    /// Whether the log and its name were durable when this was written. Where nothing is synced,
    /// nobody may rely on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) durable: bool,
}

impl Rest {
    /// What was last noted of a session; by an earlier version, if nothing was since.
    pub(crate) fn find(
        disk: &dyn Disk,
        notes: &Notes,
        paths: &Paths,
    ) -> Result<Option<Self>, StoreError> {
        let found = notes.find(Key::of(&paths.log));
        match found.map_err(|error| failed("read the notes in", &paths.shard, error))? {
            Some(rest) => Ok(Some(rest)),
            None if notes.are_complete() => Ok(None),
            None => read_small(disk, &paths.old_rest)
                .map_err(|error| failed("read", &paths.old_rest, error)),
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            life: self.life.clone(),
            rewritten: self.rewritten,
            offset: self.offset,
            sum: self.sum,
        }
    }

    /// The session of this index, if it exists; of which nobody says yet that it is durable.
    pub(crate) fn of(index: &Index) -> Option<Self> {
        let header = index.header.as_ref()?;
        Some(Self {
            id: header.id.clone(),
            life: header.life.clone(),
            rewritten: header.rewritten,
            offset: index.end,
            sum: index.sum.clone().finalize(),
            head: index.head,
            created: index.created?,
            updated: index.updated,
            facts: index.facts.clone()?,
            questions: index.questions.values().cloned().collect(),
            mail: index.mail().0,
            durable: false,
        })
    }
}
