//! Why a test of a step or a loop says nothing about it.

use std::fmt;

use crate::run::RunError;
use crate::text::listed;

/// A test of a step or of a loop whose script does not fit it. How the step or the loop itself ended
/// is never an error: it is in the result.
pub struct TestError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("{} (remove them, or correct who asks)", unused(answers, after))]
    Unused { answers: Vec<String>, after: String },
    #[error("the answer to {to} does not fit its question `{question}`: {why}")]
    Misfit { to: String, question: String, why: String },
    #[error("the answer to {to} cannot be encoded: {why}")]
    Unencodable { to: String, why: String },
    #[error("{to} does not expire (give its question a time limit: `.expires(..)`)")]
    NeverExpires { to: String },
    #[error(transparent)]
    Run(#[from] RunError),
}

fn unused(answers: &[String], after: &str) -> String {
    let (nouns, were) = match answers.len() {
        1 => ("answer", "was"),
        _ => ("answers", "were"),
    };
    format!("the scripted {nouns} to {} {were} not used: {after}", listed(answers, ", "))
}

impl TestError {
    /// Scripted answers were not used.
    pub fn is_unused(&self) -> bool {
        matches!(*self.kind, Kind::Unused { .. })
    }

    /// A scripted answer is not of the type that its question takes.
    pub fn is_wrong_answer(&self) -> bool {
        matches!(*self.kind, Kind::Misfit { .. })
    }

    /// The error of the run that did not begin, if that is the reason.
    pub fn run_error(&self) -> Option<&RunError> {
        match &*self.kind {
            Kind::Run(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Kind> for TestError {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// As it displays, because a test that unwraps it prints this.
impl fmt::Debug for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TestError({self})")
    }
}

impl std::error::Error for TestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.kind {
            Kind::Run(error) => error.source(),
            _ => None,
        }
    }
}
