use std::fmt;
use std::panic::Location;

/// The rules a loop has to keep that rustc cannot check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// Every step can be reached from the start, an error route or `finally`.
    Unreachable,
    /// Some edge ends the loop.
    NoExit,
    /// Every cycle has an edge that leaves it.
    EndlessCycle,
    /// An error route does not come back to itself.
    ErrorCycle,
    /// The steps that `finally` runs ask nothing.
    AskInFinally,
    /// Nothing leads to a step that is switched off.
    Off,
    /// Every edge leads to a step that is declared. This and the following rules are those of loops
    /// made at run time; rustc keeps them for others.
    UnknownStep,
    /// No two steps have one name.
    DuplicateStep,
    /// A route names only signals that it can answer with.
    UnknownSignal,
    /// A route names each signal once.
    DuplicateSignal,
    /// A route says where each signal leads.
    UnhandledSignal,
    /// A body that a step names is registered.
    UnknownBody,
    /// A route that a step names is registered.
    UnknownRoute,
    /// The parameters of a step are those that its body takes.
    Parameters,
    /// A loop has a step, and a step a name.
    Empty,
    /// A loop has a start.
    MissingStart,
    /// No alias of a step is the name, or an alias, of another.
    Alias,
    /// A `StepId` written by hand numbers its steps as it lists them.
    StepIds,
}

/// Where something was declared: a line of the user's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declared {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&'static Location<'static>> for Declared {
    fn from(at: &'static Location<'static>) -> Self {
        Self { file: at.file(), line: at.line(), column: at.column() }
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One broken rule: which, by what, declared where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The steps that break it, in the order of the loop.
    pub steps: Vec<String>,
    /// Where the first of them was declared.
    pub declared: Declared,
    /// Where the other one was declared, of a step that is declared twice.
    pub first: Option<Declared>,
    /// A similar name that may have been meant.
    pub near: Option<String>,
    pub(crate) message: String,
}

impl Violation {
    /// The broken rule in words, with what to do, and without any place in the source: for loops
    /// that were not written there but come from a file. `Display` adds the places.
    ///
    /// Names in it are bounded, and their control characters escaped.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (declared at {}", self.message, self.declared)?;
        if let Some(first) = self.first {
            write!(f, ", first at {first}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_no_places_and_display_has_all() {
        let at = |line| Declared { file: "loop.rs", line, column: 1 };
        let mut violation = Violation {
            rule: Rule::DuplicateStep,
            steps: vec!["a".to_owned()],
            declared: at(7),
            first: None,
            near: None,
            message: "step `a` is declared twice".to_owned(),
        };
        assert_eq!(violation.message(), "step `a` is declared twice");
        assert_eq!(violation.to_string(), "step `a` is declared twice (declared at loop.rs:7:1)");
        violation.first = Some(at(3));
        assert_eq!(
            violation.to_string(),
            "step `a` is declared twice (declared at loop.rs:7:1, first at loop.rs:3:1)"
        );
    }
}
