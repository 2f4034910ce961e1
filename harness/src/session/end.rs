//! How runs and turns end.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::graph::Limit;
use crate::step::Failure;

/// How a run settles. The first three end the turn, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// The loop came to its end.
    Ended {
        /// The enum and the signal it ended with, if a route ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<(Cow<'static, str>, Cow<'static, str>)>,
    },
    /// A step failed for good.
    Failed {
        /// Why.
        failure: Arc<Failure>,
    },
    /// A budget was reached.
    Exhausted {
        /// Which part of it.
        limit: Limit,
    },
    /// Interrupts wait for answers.
    Interrupted,
    /// It waits for a timer.
    Waiting {
        /// When the first timer is due.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<UtcMillis>,
    },
    /// It was asked to stop.
    Stopped,
    /// It was cancelled, or its handle was dropped.
    Cancelled,
}

impl End {
    /// An end without a signal.
    pub(crate) fn plain() -> Self {
        Self::Ended { by: None }
    }

    /// The name that it has in JSON, for metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ended { .. } => "ended",
            Self::Failed { .. } => "failed",
            Self::Exhausted { .. } => "exhausted",
            Self::Interrupted => "interrupted",
            Self::Waiting { .. } => "waiting",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the turn is over.
    #[must_use]
    pub fn is_of_turn(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Failed { .. } | Self::Exhausted { .. })
    }

    /// The failure of a turn that failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Arc<Failure>> {
        match self {
            Self::Failed { failure } => Some(failure),
            _ => None,
        }
    }

    /// The name of the signal a turn ended with, if a route ended it.
    #[must_use]
    pub fn signal(&self) -> Option<&str> {
        match self {
            Self::Ended { by: Some((_, signal)) } => Some(signal),
            _ => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { by: Some((_, signal)) } => write!(f, "ended by {signal}"),
            Self::Ended { by: None } => f.write_str("ended"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Waiting { until: Some(until) } => write!(f, "waits until {until}"),
            Self::Waiting { until: None } => f.write_str("waits"),
            Self::Stopped => f.write_str("stopped"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Exhausted { limit } => write!(f, "exhausted its budget of {limit}"),
            Self::Failed { failure } => write!(f, "failed: {failure}"),
        }
    }
}

/// The run settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// How.
    pub end: End,
    /// What the last steps failed with, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finally_failure: Option<Arc<Failure>>,
    /// How long the turn has run so far, in milliseconds.
    #[serde(default, skip_serializing_if = "zero")]
    pub active_ms: u64,
    /// How often the step at work was tried at this position, if the turn is not over.
    #[serde(default, skip_serializing_if = "no_attempt")]
    pub attempt: u32,
    /// Whether the session's parent has yet to be notified: no step of it runs this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
}

fn no_attempt(number: &u32) -> bool {
    *number == 0
}

fn zero(number: &u64) -> bool {
    *number == 0
}
