//! Whether sessions fit a loop, found before it is deployed.

use std::collections::BTreeMap;
use std::fmt;

use crate::id::SessionId;

use super::Incompatible;

/// Whether a session fits a loop.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fit {
    /// The loop is the one that wrote it.
    Same,
    /// The loop differs in nothing that the session depends on: a resume records the changes and
    /// continues.
    Adopts,
    /// A resume is refused.
    Incompatible(Incompatible),
}

impl Fit {
    /// Whether the session can be resumed.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        !matches!(self, Self::Incompatible(_))
    }
}

/// How many sessions of an agent fit its loop, and why the others do not.
///
/// It displays as a short report.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FitSummary {
    /// The sessions that are [`Fit::Same`].
    pub same: u64,
    /// The sessions that are [`Fit::Adopts`].
    pub adopts: u64,
    /// The sessions that are [`Fit::Incompatible`].
    pub incompatible: u64,
    /// The sessions that could not be read.
    pub unreadable: u64,
    /// The differences of the sessions that do not fit, as they display, and the errors of those that
    /// could not be read.
    pub differences: BTreeMap<String, Affected>,
}

/// The sessions that have a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Affected {
    /// How many there are.
    pub sessions: u64,
    /// One of them.
    pub example: SessionId,
}

impl FitSummary {
    /// Whether every session can be resumed.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        self.incompatible == 0 && self.unreadable == 0
    }

    /// Counts a session.
    pub(crate) fn count(&mut self, session: &SessionId, fit: Result<Fit, String>) {
        match fit {
            Ok(Fit::Same) => self.same += 1,
            Ok(Fit::Adopts) => self.adopts += 1,
            Ok(Fit::Incompatible(cause)) => {
                self.incompatible += 1;
                for difference in cause.differences() {
                    self.affects(difference.to_string(), session);
                }
            }
            Err(unreadable) => {
                self.unreadable += 1;
                self.affects(unreadable, session);
            }
        }
    }

    fn affects(&mut self, difference: String, session: &SessionId) {
        let affected = self.differences.entry(difference);
        affected.or_insert_with(|| Affected { sessions: 0, example: session.clone() }).sessions +=
            1;
    }
}

impl fmt::Display for FitSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same, adopts, incompatible, unreadable, differences } = self;
        write!(
            f,
            "{same} the same, {adopts} adopted, {incompatible} incompatible, {unreadable} unreadable"
        )?;
        for (difference, Affected { sessions, example }) in differences {
            write!(f, "\n{sessions} (as `{example:#}`): {difference}")?;
        }
        Ok(())
    }
}
