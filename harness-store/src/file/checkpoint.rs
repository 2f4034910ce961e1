//! The checkpoint beside a log: up to where the log was acknowledged when its session last settled,
//! and what a list shows of the session, which holds while the log ends there.
//!
//! A checkpoint is written once the log is durable up to there. A log that later lacks a byte of
//! that, or is missing, is damaged.

use std::io;

use harness::store::{OpenInterrupt, SessionSummary};
use harness::{SessionId, UtcMillis};
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::index::{Index, Mark};
use super::lease::read_small;
use super::paths::Paths;
use super::record::Header;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) id: SessionId,
    #[serde(flatten)]
    pub(crate) mark: Mark,
    pub(crate) head: u64,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) summary: SessionSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) interrupts: Vec<OpenInterrupt>,
    /// Whether the log and its name were durable, which they are not where nothing is synced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) durable: bool,
    /// The name of the place where it was written; `None` in those of the first stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
}

impl Mark {
    /// Whether it is a place in the log that begins so, and not in that log before it was rewritten.
    pub(crate) fn is_in(&self, header: &Header) -> bool {
        (&self.epoch, self.rewritten) == (&header.epoch, header.rewritten)
    }
}

impl Checkpoint {
    /// A checkpoint at the end of this index; `None` if the session does not exist.
    pub(crate) fn of(index: &Index) -> Option<Self> {
        let header = index.header.as_ref()?;
        Some(Self {
            id: header.id.clone(),
            mark: Mark {
                epoch: header.epoch.clone(),
                rewritten: header.rewritten,
                offset: index.end,
                sum: index.sum.clone().finalize(),
            },
            head: index.head,
            created: index.created?,
            updated: index.updated,
            summary: index.summary.clone()?,
            interrupts: index.interrupts.values().cloned().collect(),
            durable: false,
            place: None,
        })
    }

    pub(crate) fn read(disk: &dyn Disk, paths: &Paths) -> io::Result<Option<Self>> {
        read_small(disk, &paths.checkpoint)
    }
}
