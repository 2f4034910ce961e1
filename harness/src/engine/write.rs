//! What a session writes, as an engine journals it.

use std::string::FromUtf8Error;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq, SessionId};
use crate::run::ChildStart;
use crate::store::{Batch, MemoryStore, Message, NewEntry, OpenInterrupt, Phase, SessionSummary};

/// One write of a session, or the end of its run.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Write {
    /// Entries of the log, with what a store lists of the session.
    Append(Append),
    /// Messages to the inbox.
    Send(Vec<Text>),
    /// A child is started by an invocation of its own.
    Start(Box<ChildStart>),
    /// The run is over, and writes no more.
    Over,
    /// The run has stopped because the invocation has made as many writes as it may.
    Bounded,
}

/// A batch of entries.
#[derive(Serialize, Deserialize)]
pub(super) struct Append {
    /// The entry before the first one.
    after: Seq,
    at: UtcMillis,
    entries: Vec<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<SessionSummary>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenInterrupt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    close: Vec<InterruptId>,
}

/// An entry, which is JSON.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Line {
    #[serde(rename = "e")]
    pub(super) entry: String,
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) snapshot: bool,
}

impl Line {
    fn of(entry: &NewEntry<'_>) -> Result<Self, FromUtf8Error> {
        Ok(Self { entry: String::from_utf8(entry.bytes.to_vec())?, snapshot: entry.snapshot })
    }

    pub(super) fn as_entry(&self) -> NewEntry<'_> {
        NewEntry { bytes: self.entry.as_bytes(), snapshot: self.snapshot }
    }
}

/// A message, whose body is JSON.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Text {
    key: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupt: Option<InterruptId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    expiry: bool,
    body: String,
}

impl Text {
    pub(super) fn of(message: &Message) -> Result<Self, FromUtf8Error> {
        let Message { key, digest, interrupt, expiry, body } = message.clone();
        Ok(Self { key, digest, interrupt, expiry, body: String::from_utf8(body)? })
    }

    pub(super) fn into_message(self) -> Message {
        let Self { key, digest, interrupt, expiry, body } = self;
        Message { key, digest, interrupt, expiry, body: body.into_bytes() }
    }
}

impl Write {
    pub(super) fn append(batch: &Batch<'_>) -> Result<Self, FromUtf8Error> {
        Ok(Self::Append(Append {
            after: batch.after,
            at: batch.at,
            entries: batch.entries.iter().map(Line::of).collect::<Result<_, _>>()?,
            summary: batch.summary.cloned(),
            open: batch.open.to_vec(),
            close: batch.close.to_vec(),
        }))
    }

    pub(super) fn send(messages: &[Message]) -> Result<Self, FromUtf8Error> {
        Ok(Self::Send(messages.iter().map(Text::of).collect::<Result<_, _>>()?))
    }

    /// The session's phase from here on, if this changes it.
    pub(super) fn phase(&self) -> Option<Phase> {
        match self {
            Self::Append(append) => append.summary.as_ref().map(|summary| summary.phase),
            Self::Send(_) | Self::Start(_) | Self::Over | Self::Bounded => None,
        }
    }

    /// Does to `store` what it did when it was acknowledged.
    pub(super) fn repeat(self, store: &MemoryStore, session: &SessionId) {
        match self {
            Self::Append(append) => {
                let entries: Vec<_> = append.entries.iter().map(Line::as_entry).collect();
                let batch = Batch {
                    after: append.after,
                    at: append.at,
                    entries: &entries,
                    summary: append.summary.as_ref(),
                    open: &append.open,
                    close: &append.close,
                    flush: true,
                };
                store.repeat_append(session, &batch);
            }
            Self::Send(messages) => {
                store.repeat_send(session, messages.into_iter().map(Text::into_message).collect());
            }
            Self::Start(_) | Self::Over | Self::Bounded => {}
        }
    }
}
