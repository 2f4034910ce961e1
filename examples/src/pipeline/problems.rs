//! What is wrong with a description, in words.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use harness::BuildError;
use harness::graph::{Rule, Violation};

use super::fields::Found;

/// A description that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the pipeline `{}`: {why}", .file.display().to_string().escape_debug())]
pub struct Unreadable {
    pub(super) file: PathBuf,
    pub(super) why: String,
}

/// What is wrong with a description that can be read: all of it.
#[derive(Debug, Default)]
pub struct Problems {
    found: Found,
}

/// What is told of a description before its loop is made, and what follows from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) found: Found,
    /// Rules that a key which cannot be used breaks, of the loop or of a step.
    pub(super) follows: HashSet<(Rule, Option<String>)>,
    /// The steps without a name, which the loop knows by the names they were given instead.
    pub(super) unnamed: HashSet<String>,
}

impl Told {
    /// Whether a broken rule follows only from what is told already.
    fn covers(&self, violation: &Violation) -> bool {
        self.follows.contains(&(violation.rule, None))
            || self.follows.contains(&(violation.rule, violation.steps.first().cloned()))
    }

    /// Everything that is wrong, if anything is.
    pub(super) fn with(mut self, error: Option<BuildError>) -> Option<Problems> {
        for violation in error.iter().flat_map(BuildError::violations) {
            if self.covers(violation) {
                continue;
            }
            // Where the loop was declared is a line of this program, no help to who wrote the file.
            let words = violation.message();
            let unnamed = violation.steps.first().filter(|step| self.unnamed.contains(*step));
            self.found.tell(|| match unnamed {
                Some(step) => words.replacen(&format!("step `{step}`"), step, 1),
                None => words.to_owned(),
            });
        }
        (self.found.count() > 0).then_some(Problems { found: self.found })
    }
}

impl Problems {
    /// Each problem, in words. Of very many, only how many more there are.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.found.lines.clone();
        if self.found.more > 0 {
            lines.push(format!("… and {} more", self.found.more));
        }
        lines
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_TOLD: usize = 50;
        write!(f, "the pipeline cannot run:")?;
        for line in self.found.lines.iter().take(MAX_TOLD) {
            write!(f, "\n  - {line}")?;
        }
        match self.found.count().saturating_sub(MAX_TOLD) {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}
