use std::fmt;
use std::panic::Location;

/// The rules of a loop that rustc cannot check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// Every step can be reached from the start, an error route or `finally`.
    Unreachable,
    /// Some edge ends the loop.
    NoExit,
    /// Every cycle has an edge that leaves it.
    EndlessCycle,
    /// An error route is not a cycle.
    ErrorCycle,
    /// The steps that `finally` runs ask no question.
    AskInFinally,
    /// Nothing leads to a step that is switched off.
    Off,
    /// Every edge leads to a declared step. This rule and the following ones apply to loops built
    /// at run time; for others rustc checks them.
    UnknownStep,
    /// No two steps have the same name.
    DuplicateStep,
    /// A route names only signals that it can return.
    UnknownSignal,
    /// A route names each signal once.
    DuplicateSignal,
    /// A route has a target for each signal.
    UnhandledSignal,
    /// A body that a step names is registered.
    UnknownBody,
    /// A route that a step names is registered.
    UnknownRoute,
    /// The parameters of a step are valid for its body.
    Parameters,
    /// A loop has at least one step, and every step has a name.
    Empty,
    /// A loop has a start.
    MissingStart,
    /// No alias of a step is the name or an alias of another step.
    Alias,
    /// A hand-written `StepId` numbers its steps in the order it lists them.
    StepIds,
}

/// A declaration in the user's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declared {
    /// The file, as passed to the compiler.
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

/// A violation: the rule, the steps, the place of the declaration, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The steps that violate the rule, in the order of the loop.
    pub steps: Vec<String>,
    /// Where the first of them is declared.
    pub declared: Declared,
    /// Where the other step is declared, for a step that is declared twice.
    pub first: Option<Declared>,
    /// A similar name that may have been meant.
    pub near: Option<String>,
    pub(crate) message: String,
}

impl Violation {
    /// The violation and its remedy in words, without source locations, for loops that come from a
    /// file. `Display` adds the locations.
    ///
    /// Names are shortened, and their control characters are escaped.
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
    fn message_has_no_locations_and_display_has_all() {
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
