//! The right to append to a session.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, Fence, Seq, SessionId};

use super::facts::Facts;
use super::letter::Mail;

/// The right to advance a session. Plain data: whoever has it can use it, and the store says
/// whether it still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Of which session.
    pub session: SessionId,
    /// Grows with every claim of the session.
    pub fence: Fence,
    /// Of this claim alone.
    pub token: Token,
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

/// Whoever knows a token can write: it is not printed whole by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:04x}..)", self.0 >> 112)
    }
}

/// Which session to claim.
#[derive(Clone, Copy, Debug)]
pub enum Claim<'a> {
    /// This one.
    One(&'a SessionId),
    /// Any session of these agents that needs somebody. A session that nobody holds is due if
    ///
    /// - it is [`Running`](super::Phase::Running): its holder is gone;
    /// - its [`due`](Facts::due) time has come;
    /// - or letters were posted that its facts have not counted yet.
    Due {
        /// The agents that whoever asks can run.
        agents: &'a [AgentId],
        /// How long to wait for one.
        wait: Duration,
    },
}

/// A session that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The right to advance it.
    pub lease: Lease,
    /// The seq of its last entry; 0 if it is new.
    pub head: Seq,
    /// How many letters were posted to it so far.
    pub mail: Mail,
    /// Its facts; `None` if it is new.
    pub facts: Option<Facts>,
}
