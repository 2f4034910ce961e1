use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The budget of one turn, over all its runs. A run that reaches it settles as
/// [`Exhausted`](crate::Exhausted), with the state after the last step. It can be resumed.
///
/// The default is 1,000 steps and no other limit. Waiting for a person costs nothing. A retry is
/// not a new step.
///
/// ```
/// use std::time::Duration;
/// use harness::Budget;
///
/// let budget = Budget::steps(50).tokens(200_000).wall(Duration::from_secs(600));
/// let patient = Budget::unbounded("the loop ends when its queue is empty");
/// # let _ = (budget, patient);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub(crate) steps: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_micros: Option<u64>,
    pub(crate) wall: Option<Duration>,
    /// Why the steps are unbounded.
    pub(crate) why: Option<&'static str>,
}

/// The budget of the steps that `.finally(..)` runs.
pub(crate) const FINALLY: Budget = Budget {
    steps: Some(100),
    tokens: None,
    cost_micros: None,
    wall: Some(Duration::from_secs(60)),
    why: None,
};

impl Default for Budget {
    fn default() -> Self {
        Self::steps(1_000)
    }
}

impl Budget {
    /// At most `steps` entries into a step.
    pub fn steps(steps: u64) -> Self {
        Self { steps: Some(steps), tokens: None, cost_micros: None, wall: None, why: None }
    }

    /// Any number of steps. `why` documents what ends the loop instead.
    pub fn unbounded(why: &'static str) -> Self {
        Self { steps: None, tokens: None, cost_micros: None, wall: None, why: Some(why) }
    }

    /// At most `tokens` tokens, summed over all models and kinds. Checked between steps.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// At most this cost, in millionths of the currency in which costs are charged. Checked between
    /// steps.
    #[must_use]
    pub fn cost_micros(mut self, micros: u64) -> Self {
        self.cost_micros = Some(micros);
        self
    }

    /// At most this wall time. Time between runs, such as waiting for an answer, does not count.
    /// When the time is used up, the attempt in progress is dropped with its update.
    #[must_use]
    pub fn wall(mut self, limit: Duration) -> Self {
        self.wall = Some(limit);
        self
    }
}

/// The part of a [`Budget`] that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The number of steps.
    Steps,
    /// The tokens.
    Tokens,
    /// The cost.
    Cost,
    /// The time.
    Wall,
    /// Every step has `.at_most(..)`, they lead only to each other, and all are used up.
    AtMost,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "steps",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Wall => "wall time",
            Self::AtMost => "visits",
        })
    }
}
