//! What a repair knows: all of it can be saved.

use std::fmt;

use harness::prelude::*;
use schemars::JsonSchema;

use crate::repair::{Ending, Fault, Proposal, Ran, Refusal, Rule, Verdict};

/// The repair of one script.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub struct Repair {
    /// The name of the script.
    pub name: String,
    /// The script as it was.
    pub original: String,
    /// What it should print, where that is known.
    pub expected: Option<String>,
    /// The copy that is repaired.
    pub copy: String,
    /// What the last run of the copy came to.
    pub ran: Option<Ran>,
    /// The repairs of its fault that are still to be asked about.
    pub proposals: Vec<Proposal>,
    /// The repair that has been applied and not proven.
    pub trial: Option<Trial>,
    /// What was decided about the last proposal.
    pub decision: Option<Decision>,
    /// Every repair that was thought of, and what became of it.
    #[state(reduce = upsert(number))]
    pub tried: Vec<Tried>,
    /// How many faults were taken on.
    #[state(reduce = add)]
    pub rounds: u32,
    /// Why it ends without success.
    pub why: Option<Why>,
}

impl Repair {
    /// What the last run says about the script.
    pub fn verdict(&self) -> Option<Verdict> {
        let expected = self.expected.as_deref();
        self.ran.as_ref().map(|ran| Verdict::of(ran, expected))
    }

    /// What failed in the last run, if it is something a rule may know.
    pub fn fault(&self) -> Option<&Fault> {
        fault_of(self.ran.as_ref()?)
    }

    /// Whether the person wants no further file either.
    pub(super) fn has_quit(&self) -> bool {
        matches!(self.why, Some(Why::Quit))
    }

    /// The number that the next entry of `tried` gets.
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

/// A repair on trial, and what taking it back restores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its entry in `tried`.
    pub tried: Tried,
    /// The copy before it.
    pub copy: String,
    /// The run before it.
    pub ran: Option<Ran>,
}

/// Whether to apply a repair.
#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Decision)]
pub struct Approve {
    /// The script.
    pub file: String,
    /// What fails.
    pub fault: String,
    /// The kind of mistake.
    pub rule: Rule,
    /// The first line that changes.
    pub line: usize,
    /// What the repair does and why.
    pub explanation: String,
    /// What changes, without colours.
    pub diff: String,
}

/// The answer to [`Approve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Apply it.
    Apply,
    /// Do not; show the next one.
    Next,
    /// Do not, and stop.
    Quit,
}

/// A repair that was thought of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Counts the entries.
    pub number: u32,
    /// The kind of mistake.
    pub rule: Rule,
    /// The first line it changes.
    pub line: usize,
    /// What it does and why.
    pub explanation: String,
    /// What became of it.
    pub fate: Fate,
}

impl Tried {
    pub(super) fn new(number: u32, proposal: &Proposal, fate: Fate) -> Self {
        let Proposal { rule, line, explanation, .. } = proposal;
        Self { number, rule: *rule, line: *line, explanation: explanation.clone(), fate }
    }
}

/// What became of a proposed repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// Nobody was asked: it hides the failure.
    Refused {
        /// How.
        why: Refusal,
    },
    /// Somebody did not want it.
    Declined {
        /// Who.
        by: Option<String>,
    },
    /// It was applied and stays.
    Applied {
        /// Who approved.
        by: Option<String>,
    },
    /// It was applied, did not help, and was taken back.
    TakenBack {
        /// Who approved.
        by: Option<String>,
        /// How the script ended with it.
        ending: String,
    },
}

impl Fate {
    /// Whether it was approved and stays.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Fate::Applied { .. })
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |by: &Option<String>| by.clone().map_or(String::new(), |who| format!(" by {who}"));
        match self {
            Fate::Refused { why } => write!(f, "refused: {why}"),
            Fate::Declined { by: who } => write!(f, "declined{}", by(who)),
            Fate::Applied { by: who } => write!(f, "approved{}", by(who)),
            Fate::TakenBack { by: who, ending } => {
                write!(f, "approved{}, taken back, since it did not help: {ending}", by(who))
            }
        }
    }
}

/// Why a script is not repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
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
    /// It ends in a way no rule can read.
    Ending {
        /// How.
        ending: Ending,
    },
    /// It has more faults than are taken on.
    Rounds {
        /// How many are.
        rounds: u32,
    },
    /// The person quit.
    Quit,
    /// A budget of the loop was reached.
    Budget {
        /// Which.
        limit: String,
    },
    /// Something broke that is not the script's fault.
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
            Why::Budget { limit } => write!(f, "the budget of {limit} was used up"),
            Why::Broken { error } => write!(f, "the repair itself failed: {error}"),
        }
    }
}
