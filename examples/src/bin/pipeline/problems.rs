//! The problems of a description, as text.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use harness::BuildError;
use harness::graph::{Rule, Violation};

use super::fields::ProblemList;

/// A description that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the pipeline `{}`: {why}", .file.display().to_string().escape_debug())]
pub(super) struct Unreadable {
    pub(super) file: PathBuf,
    pub(super) why: String,
}

/// All problems of a description that can be read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    problems: ProblemList,
}

/// The problems found before the loop is built, and the rules that are broken because of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: ProblemList,
    /// Rules, of the loop or of a step, that are broken only because a key cannot be used.
    pub(super) follows: HashSet<(Rule, Option<String>)>,
    /// The generated names of steps without a name.
    pub(super) unnamed: HashSet<String>,
}

impl Findings {
    /// Whether a rule is broken only because of a problem that is already reported.
    fn covers(&self, violation: &Violation) -> bool {
        self.follows.contains(&(violation.rule, None))
            || self.follows.contains(&(violation.rule, violation.steps.first().cloned()))
    }

    /// All problems, if there are any.
    pub(super) fn with(mut self, error: Option<BuildError>) -> Option<Problems> {
        for violation in error.iter().flat_map(BuildError::violations) {
            if self.covers(violation) {
                continue;
            }
            // Without the location: the loop is declared in this program, not in the file.
            let words = violation.message();
            let unnamed = violation.steps.first().filter(|step| self.unnamed.contains(*step));
            self.problems.add(|| match unnamed {
                Some(step) => words.replacen(&format!("step `{step}`"), step, 1),
                None => words.to_owned(),
            });
        }
        (self.problems.count() > 0).then_some(Problems { problems: self.problems })
    }
}

impl Problems {
    /// Each problem as text; after very many, the number of the others.
    #[cfg(test)]
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.problems.lines.clone();
        if self.problems.more > 0 {
            lines.push(format!("… and {} more", self.problems.more));
        }
        lines
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 50;
        write!(f, "the pipeline cannot run:")?;
        for line in self.problems.lines.iter().take(MAX_SHOWN) {
            write!(f, "\n  - {line}")?;
        }
        match self.problems.count().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}
