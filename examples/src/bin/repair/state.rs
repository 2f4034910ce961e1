//! The state of a repair, its question and its answer.

use std::fmt;
use std::sync::Arc;

use harness::code::Code;
use harness::esg::diagnosis::Fault;
use harness::esg::patcher::Evasion;
use harness::esg::{Ending, Program, ProgramError, VersionId};
use harness::prelude::*;
use schemars::JsonSchema;

use super::document::Document;

/// The repair of one file.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Repair {
    /// The name of the file.
    pub(crate) name: String,
    /// How the steps make up the file.
    pub(crate) document: Document,
    /// The view of the file before any repair.
    pub(crate) original: String,
    /// What it should print, if that is known.
    pub(crate) expected: Option<String>,
    /// The steps that are tests.
    pub(crate) tests: Vec<String>,
    /// The program, with its executions.
    #[state(esg)]
    pub(crate) code: Code,
    /// How many versions of steps there were when the last patch had proven itself.
    pub(crate) proven: usize,
    /// The fault that is worked on.
    pub(crate) fault: Option<At>,
    /// The patch that is not proven yet, once a person has decided about it.
    pub(crate) trial: Option<Trial>,
    /// The last decision.
    pub(crate) decision: Option<Decision>,
    /// Every patch that was considered, with its fate.
    #[state(reduce = upsert(number))]
    pub(crate) tried: Vec<Tried>,
    /// How many faults were worked on.
    #[state(reduce = add)]
    pub(crate) rounds: u32,
    /// Why the repair fails, if it does.
    pub(crate) why: Option<Why>,
}

/// A fault, and the step that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct At {
    /// The place of the step in the program.
    pub(crate) place: usize,
    /// The line of the view, from 1; 0 if it is not known.
    pub(crate) line: usize,
    /// What happened.
    pub(crate) fault: Fault,
}

impl At {
    /// Whether this is the same fault, whatever its values are.
    pub(super) fn is(&self, other: &Self) -> bool {
        let about = |at: &Self| {
            let Fault { kind, message, .. } = &at.fault;
            (at.place, kind.clone(), message.clone(), at.fault.line(), at.column())
        };
        about(self) == about(other)
    }

    fn column(&self) -> Option<u32> {
        match &self.fault.facts.syntax {
            Some(syntax) => Some(syntax.column),
            None => self.fault.frames.last().and_then(|frame| frame.column),
        }
    }

    /// Whether the same expression fails, if its place is known.
    pub(super) fn is_same_place(&self, before: &Self) -> bool {
        let place = |at: &Self| (at.place, at.fault.line(), at.column());
        self.column().is_some() && place(self) == place(before)
    }

    /// The expression that fails, if it is on one line.
    fn expression(&self) -> Option<&str> {
        let frame = self.fault.frames.last()?;
        let (from, to) = (frame.column? as usize, frame.end_column? as usize);
        frame
            .text
            .get(from..to)
            .filter(|text| !text.is_empty() && frame.end_line == Some(frame.line))
    }

    /// Whether the fault of `before` was only moved, by a patch that leads from one program to the other.
    pub(super) fn is_moved(&self, before: &Self, from: &Program, to: &Program) -> bool {
        let about = |at: &Self| (at.place, at.fault.kind.clone(), at.fault.message.clone());
        let line = |at: &Self| at.fault.frames.last().map(|frame| frame.text.trim().to_owned());
        let (Some(old), Some(new)) = (before.expression(), self.expression()) else { return false };
        let count = |program: &Program| -> usize {
            program.steps().map(|step| step.source.matches(old).count()).sum()
        };
        let here = self.fault.line() == before.fault.line() || line(self) == line(before);
        // One of several may be repaired.
        about(self) == about(before) && old == new && here && count(to) >= count(from)
    }

    /// Whether a patch of `before` helped that leads to this one: not if an earlier step fails now, and
    /// not if what could be parsed no longer can.
    pub(super) fn is_after(&self, before: &Self) -> bool {
        let broke = |at: &Self| at.fault.facts.syntax.is_some();
        let broken = self.place == before.place && broke(self) && !broke(before);
        self.place >= before.place && !self.is(before) && !broken
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.kind)?;
        if self.line > 0 {
            write!(f, " on line {}", self.line)?;
        }
        match self.fault.message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.fault.message),
        }
    }
}

impl Repair {
    /// The program as it is.
    pub(super) fn program(&self) -> &Program {
        self.code.program()
    }

    /// The steps that a patch has changed which is not proven, with the versions before it.
    fn pending(&self) -> Vec<(Arc<str>, VersionId)> {
        let program = self.program();
        let made = program.versions().iter().skip(self.proven);
        let current = made.filter(|version| {
            program.step(&version.step).is_ok_and(|step| step.version == version.id)
        });
        current.filter_map(|version| Some((version.step.clone(), version.parent?))).collect()
    }

    /// Takes a patch back that is not proven.
    pub(super) fn take_back(&self, program: &mut Program) -> Result<(), ProgramError> {
        self.pending().into_iter().try_for_each(|(_, before)| program.rollback(before).map(drop))
    }

    /// The program without a patch that is not proven.
    pub(super) fn proven_program(&self) -> Program {
        let mut program = self.program().clone();
        match self.take_back(&mut program) {
            Ok(()) => program,
            // The versions are those of this program.
            Err(_) => self.program().clone(),
        }
    }

    /// The view of the file with the patches that are proven.
    pub(crate) fn copy(&self) -> String {
        self.document.view(&self.proven_program())
    }

    /// The patch that is not proven: who proposes it, and why.
    pub(super) fn proposal(&self) -> Option<(String, String)> {
        let (step, _) = self.pending().into_iter().next()?;
        let version = self.program().step(&step).ok()?.version;
        let provenance = &self.program().version(version).ok()?.provenance;
        let said = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let by = match &provenance.call {
            Some(_) => "model".to_owned(),
            None => said(&provenance.agent),
        };
        let why = self.document.sentence(self.program(), &step, &said(&provenance.why));
        Some((by, why))
    }

    /// The fault that the last diagnosis found.
    pub(super) fn found(&self) -> Option<At> {
        let diagnosis = self.code.diagnosis()?;
        let failing = &*diagnosis.failing.step;
        let at = diagnosis.raised_at();
        let (step, line) = (&*at.step, at.line.unwrap_or(0).max(diagnosis.fault.line()));
        let of_file = self.document.steps().contains(&step) && line > 0;
        Some(At {
            place: self.program().position(failing).unwrap_or(0),
            line: if of_file { self.document.line(self.program(), step, line) } else { 0 },
            fault: match self.tests.iter().any(|test| test == failing) {
                false => diagnosis.fault.clone(),
                true => Fault {
                    kind: format!("test `{failing}`: {}", diagnosis.fault.kind),
                    ..diagnosis.fault.clone()
                },
            },
        })
    }

    /// What the program prints, and whether all of it is known.
    pub(crate) fn output(&self) -> (String, bool) {
        let steps = self.document.steps();
        let executions = steps.iter().filter_map(|step| self.code.ledger().execution(step));
        let (mut bytes, mut whole) = (Vec::new(), true);
        for execution in executions {
            bytes.extend_from_slice(&execution.stdout.bytes);
            whole &= execution.stdout.dropped == 0;
        }
        (String::from_utf8_lossy(&bytes).into_owned(), whole)
    }

    /// Whether the program prints what it should, as far as that is known.
    pub(super) fn is_right(&self) -> bool {
        let (output, whole) = self.output();
        self.expected.as_ref().is_none_or(|expected| whole && *expected == output)
    }

    /// How the first step ended that fails.
    pub(super) fn failure(&self) -> Option<&Ending> {
        let steps = self.program().steps();
        let mut endings =
            steps.filter_map(|step| Some(&self.code.ledger().execution(&step.id)?.ending));
        endings.find(|ending| !ending.is_ok())
    }

    /// Whether it fails because a file is not there, or itself is not known.
    pub(super) fn lacks_a_file(&self) -> bool {
        self.fault.as_ref().is_some_and(|At { fault, .. }| {
            fault.kind == "FileNotFoundError" || fault.facts.name.as_deref() == Some("__file__")
        })
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

/// A patch on trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Its entry in `tried`.
    pub(crate) tried: Tried,
    /// The fault before it.
    pub(crate) before: At,
}

/// The question: apply this patch?
#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Decision)]
pub(crate) struct Approve {
    /// The file.
    pub(crate) file: String,
    /// What fails.
    pub(crate) fault: String,
    /// Who proposes it: `rules`, or `model`.
    pub(crate) by: String,
    /// The first line that changes.
    pub(crate) line: usize,
    /// What it does and why.
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

/// A patch that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tried {
    /// Counts the entries.
    pub(crate) number: u32,
    /// The fault, as one of those that were worked on.
    pub(crate) round: u32,
    /// Who proposed it.
    pub(crate) by: String,
    /// The first line it changes.
    pub(crate) line: usize,
    /// What it does and why.
    pub(crate) explanation: String,
    /// Its fate.
    pub(crate) fate: Fate,
}

/// The fate of a proposed patch.
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
        /// How the program ended with it.
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

/// Why a file is not repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum Why {
    /// There is no acceptable patch.
    NoPatch {
        /// Of what.
        fault: String,
    },
    /// No patch was wanted.
    Declined,
    /// No patch helped.
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
            Why::NoPatch { fault } => write!(f, "there is no acceptable patch for: {fault}"),
            Why::Declined => f.write_str("no further proposal was approved"),
            Why::NoneHelped { fault } => write!(f, "no approved proposal helped against: {fault}"),
            Why::WrongOutput { expected, got } => write!(
                f,
                "it runs to its end but prints something else: expected {expected:?}, got {got:?}"
            ),
            Why::Rounds { rounds } => write!(f, "it has more faults than {rounds} (see --rounds)"),
            Why::Quit => f.write_str("stopped on request"),
            Why::Budget { limit } => write!(f, "the repair exhausted its {limit}"),
            Why::Broken { error } => write!(f, "the repair itself failed: {error}"),
        }
    }
}
