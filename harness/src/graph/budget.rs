use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one turn of a loop may spend, over all its runs. Reaching it settles the run as
/// [`Exhausted`](crate::Exhausted), with the state as of the last step, and can be resumed.
///
/// The default is 1,000 steps and nothing else. Waiting for a person costs nothing, and a retry is
/// no new step.
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
    /// Why the steps have no bound.
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

    /// Any number of steps. `why` says what ends the loop instead, to whoever reads the code.
    pub fn unbounded(why: &'static str) -> Self {
        Self { steps: None, tokens: None, cost_micros: None, wall: None, why: Some(why) }
    }

    /// At most `tokens` tokens, of all models and kinds together; checked between steps.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// At most this cost in millionths of the currency that costs are charged in; checked between
    /// steps.
    #[must_use]
    pub fn cost_micros(mut self, micros: u64) -> Self {
        self.cost_micros = Some(micros);
        self
    }

    /// At most this long, not counting the time that a question or the process waits between runs.
    /// The step at work when the time is over is dropped, its update discarded.
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
    /// Steps with `.at_most(..)` that lead only to each other, all used up.
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
