//! The state of a repair, its question and its answer.

use std::fmt;

use harness::prelude::*;
use schemars::JsonSchema;

use super::engine::{Ending, Evasion, Fault, Proposal, Ran, Rule, Verdict};

/// The repair of one script.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Repair {
    /// The name of the script.
    pub(crate) name: String,
    /// The script before any repair.
    pub(crate) original: String,
    /// What it should print, if that is known.
    pub(crate) expected: Option<String>,
    /// The repaired copy.
    pub(crate) copy: String,
    /// The last run of the copy.
    pub(crate) ran: Option<Ran>,
    /// The repairs of its fault that are not asked about yet.
    pub(crate) proposals: Vec<Proposal>,
    /// The repair that is applied and not yet proven.
    pub(crate) trial: Option<Trial>,
    /// The decision about the last proposal.
    pub(crate) decision: Option<Decision>,
    /// Every repair that was considered, with its fate.
    #[state(reduce = upsert(number))]
    pub(crate) tried: Vec<Tried>,
    /// How many faults were worked on.
    #[state(reduce = add)]
    pub(crate) rounds: u32,
    /// Why the repair fails, if it does.
    pub(crate) why: Option<Why>,
}

impl Repair {
    /// The verdict on the last run.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let expected = self.expected.as_deref();
        self.ran.as_ref().map(|ran| Verdict::of(ran, expected))
    }

    /// The fault of the last run, if it ended with an exception.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        fault_of(self.ran.as_ref()?)
    }

    /// Whether the person quit.
    pub(super) fn has_quit(&self) -> bool {
        matches!(self.why, Some(Why::Quit))
    }

    /// The number of the next entry of `tried`.
    pub(super) fn next_number(&self) -> u32 {
        u32::try_from(self.tried.len()).unwrap_or(u32::MAX)
    }
}

/// The exception that ended a run, if one did.
pub(super) fn fault_of(ran: &Ran) -> Option<&Fault> {
    match &ran.ending {
        Ending::Raised(fault) => Some(fault),
        Ending::Ok
        | Ending::TimedOut
        | Ending::TooMuchOutput
        | Ending::OutOfMemory
        | Ending::Exited(_)
        | Ending::Signalled(_) => None,
    }
}

/// A repair on trial, and what reverting it restores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Its entry in `tried`.
    pub(crate) tried: Tried,
    /// The copy before it.
    pub(crate) copy: String,
    /// The run before it.
    pub(crate) ran: Option<Ran>,
}

/// The question: apply this repair?
#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Decision)]
pub(crate) struct Approve {
    /// The script.
    pub(crate) file: String,
    /// What fails.
    pub(crate) fault: String,
    /// The kind of mistake.
    pub(crate) rule: Rule,
    /// The first line that changes.
    pub(crate) line: usize,
    /// What the repair does and why.
    pub(crate) explanation: String,
    /// What changes, without colours.
    pub(crate) diff: String,
}

/// The answer to [`Approve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// Apply it.
    Apply,
    /// Do not; show the next one.
    Next,
    /// Do not, and stop.
    Quit,
}

/// A repair that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tried {
    /// Counts the entries.
    pub(crate) number: u32,
    /// The kind of mistake.
    pub(crate) rule: Rule,
    /// The first line it changes.
    pub(crate) line: usize,
    /// What it does and why.
    pub(crate) explanation: String,
    /// Its fate.
    pub(crate) fate: Fate,
}

impl Tried {
    pub(super) fn new(number: u32, proposal: &Proposal, fate: Fate) -> Self {
        let Proposal { rule, line, explanation, .. } = proposal;
        Self { number, rule: *rule, line: *line, explanation: explanation.clone(), fate }
    }
}

/// The fate of a proposed repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub(crate) enum Fate {
    /// It hides the failure, so there was no question.
    Refused {
        /// How.
        why: Evasion,
    },
    /// A person declined it.
    Declined {
        /// The user.
        by: Option<String>,
    },
    /// It was applied and stays.
    Applied {
        /// The user who approved.
        by: Option<String>,
    },
    /// It was applied, did not help, and was reverted.
    TakenBack {
        /// The user who approved.
        by: Option<String>,
        /// How the script ended with it.
        ending: String,
    },
}

impl Fate {
    /// Whether it was approved and stays.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self, Fate::Applied { .. })
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by =
            |by: &Option<String>| by.clone().map_or(String::new(), |user| format!(" by {user}"));
        match self {
            Fate::Refused { why } => write!(f, "refused: {why}"),
            Fate::Declined { by: user } => write!(f, "declined{}", by(user)),
            Fate::Applied { by: user } => write!(f, "approved{}", by(user)),
            Fate::TakenBack { by: user, ending } => {
                write!(f, "approved{}, taken back, since it did not help: {ending}", by(user))
            }
        }
    }
}

/// Why a script is not repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum Why {
    /// No rule has an acceptable repair.
    NoRule {
        /// Of what.
        fault: String,
    },
    /// No repair was wanted.
    Declined,
    /// No repair helped.
    NoneHelped {
        /// Against what.
        fault: String,
    },
    /// It runs, but prints something else.
    WrongOutput {
        /// The first line that differs, as it should be.
        expected: String,
        /// As it is.
        got: String,
    },
    /// It ends in a way that no rule can read.
    Ending {
        /// How.
        ending: Ending,
    },
    /// It has more faults than the limit.
    Rounds {
        /// The limit.
        rounds: u32,
    },
    /// The person quit.
    Quit,
    /// The loop exhausted a budget.
    Budget {
        /// Which.
        limit: String,
    },
    /// The repair itself failed.
    Broken {
        /// What.
        error: String,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NoRule { fault } => write!(f, "no rule knows an acceptable repair for: {fault}"),
            Why::Declined => f.write_str("no further proposal was approved"),
            Why::NoneHelped { fault } => write!(f, "no approved proposal helped against: {fault}"),
            Why::WrongOutput { expected, got } => write!(
                f,
                "it runs to its end but prints something else: expected {expected:?}, got {got:?}"
            ),
            Why::Ending { ending } => write!(f, "it {ending}, which no rule can repair"),
            Why::Rounds { rounds } => write!(f, "it has more faults than {rounds} (see --rounds)"),
            Why::Quit => f.write_str("stopped on request"),
            Why::Budget { limit } => write!(f, "the repair exhausted its {limit}"),
            Why::Broken { error } => write!(f, "the repair itself failed: {error}"),
        }
    }
}
