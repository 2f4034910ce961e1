//! The note that a session at rest leaves beside its log.

use std::sync::Arc;

use harness::store::{OpenInterrupt, SessionSummary, Token};
use harness::{SessionId, UtcMillis};
use serde::{Deserialize, Serialize};

use super::disk::DiskFile;
use super::index::{Index, Mark};
use super::lease::rewrite_small;
use super::tag::Tag;

/// A session at rest, as it is written beside its log: up to where the log was acknowledged, and
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
    pub(crate) summary: SessionSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) interrupts: Vec<OpenInterrupt>,
    pub(crate) mail: u64,
    /// Whether the log and its name were durable when this was written. Where nothing is synced,
    /// nobody may rely on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) durable: bool,
    /// The token of the lease it was written under, once that is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) released: Option<String>,
}

/// What a note says of the lease it was written under.
#[derive(Debug, Deserialize)]
pub(crate) struct Released {
    #[serde(default)]
    pub(crate) released: Option<String>,
}

/// A session that came to rest under the lease of this token, and where that was said.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) token: Token,
    pub(crate) place: Said,
    pub(crate) file: Arc<dyn DiskFile>,
}

/// What was said of a session at rest, and in which kind of file.
#[derive(Debug)]
pub(crate) enum Said {
    /// The tag of its log.
    Tag(Tag),
    /// The note beside it.
    Note(Box<Rest>),
}

impl Noted {
    /// Says of the lease that it is released, where nobody has said anything of a later one.
    pub(crate) fn release(self, token: Token, life: (&str, u64)) -> bool {
        let same = |mark: &Mark| token == self.token && (&*mark.life, mark.rewritten) == life;
        match self.place {
            Said::Tag(mut tag) => {
                same(&tag.mark) && {
                    tag.released = Some(token);
                    tag.put(&*self.file)
                }
            }
            Said::Note(mut rest) => {
                same(&rest.mark()) && {
                    rest.released = Some(token.to_string());
                    rewrite_small(&*self.file, &rest).is_ok()
                }
            }
        }
    }
}

impl Rest {
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
            summary: index.summary.clone()?,
            interrupts: index.interrupts.values().cloned().collect(),
            mail: index.inbox().0,
            durable: false,
            released: None,
        })
    }
}
