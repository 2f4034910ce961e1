//! The right to append to a session.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::{Fence, Seq, SessionId};

use super::message::InboxSeq;
use super::summary::SessionSummary;

/// The right to advance a session. Plain data: the store decides whether it is still held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// The fencing token: it grows with every claim of the session.
    pub fence: Fence,
    /// A random number of this claim.
    pub token: Token,
}

impl Lease {
    /// The lease of a claim.
    #[must_use]
    pub fn new(session: SessionId, fence: Fence, token: Token) -> Self {
        Self { session, fence, token }
    }
}

/// A random number that no other claim has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(u128);

impl Token {
    /// A new token, of 122 random bits.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }

    /// A token as a number, for a store that reads it back.
    #[must_use]
    pub fn from_u128(token: u128) -> Self {
        Self(token)
    }

    /// The token as a number.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Prints only the beginning: a process that knows a token can append.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:04x}..)", self.0 >> 112)
    }
}

/// A successful claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimed {
    /// The right to advance the session.
    pub lease: Lease,
    /// The seq of the session's last entry; 0 if it is new.
    pub head: Seq,
    /// The last message sent to the session; 0 if there is none.
    pub inbox: InboxSeq,
    /// The session's summary; `None` if it is new.
    pub summary: Option<SessionSummary>,
    /// What the store knows of the holder before.
    pub former: FormerHolder,
}

/// What is known of the process that held a session before a claim. It decides nothing about the
/// log, because a former holder can append no more. But it may be in the middle of an effect that it
/// has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FormerHolder {
    /// There was none, or it released the session.
    Released,
    /// Its process has ended, or at least its store is closed, which a run at work keeps open.
    Dead,
    /// Its lease has expired. Its process may have ended, or may only be suspended and continue.
    Expired,
    /// The store does not know.
    #[default]
    Unknown,
}

impl Claimed {
    /// A claim of a session that does not exist yet; a store sets the other fields of one that does.
    #[must_use]
    pub fn new(lease: Lease) -> Self {
        let former = FormerHolder::Unknown;
        Self { lease, head: Seq(0), inbox: InboxSeq(0), summary: None, former }
    }
}

/// The holder of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The fence of its lease.
    pub fence: Fence,
    /// When its lease expires, by this machine's clock.
    pub until: UtcMillis,
}

impl Holder {
    /// A holder whose lease expires at `until`.
    #[must_use]
    pub fn new(fence: Fence, until: UtcMillis) -> Self {
        Self { fence, until }
    }
}

/// The inbox of a session when its lease was [released](super::SessionStore::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Released {
    /// The holder has read all messages.
    Idle,
    /// There are messages that the holder has not read. They wait until a run claims the session.
    MoreMessages,
}
