use std::fmt;

use crate::text::shown;

use super::{Graph, Violation};

/// A loop that cannot be built, with all its violations. `{:#}` also draws the loop.
///
/// ```
/// use harness::prelude::*;
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Draft { text: String }
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Write, Polish, Publish }
///
/// async fn work(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> { Ok(Draft::update()) }
///
/// let error = Harness::<(), Draft>::builder("drafts")
///     .start(Step::Write)
///     .steps(|define, step| match step {
///         Step::Write => define.run(work).end(),
///         Step::Polish => define.run(work).then(Step::Write),
///         Step::Publish => define.run(work).end(),
///     })
///     .build()
///     .unwrap_err();
/// assert_eq!(error.violations().len(), 2);
/// assert!(error.to_string().contains("`Polish` cannot be reached from `Write`"));
/// ```
#[derive(Clone)]
pub struct BuildError {
    pub(crate) graph: Graph,
    pub(crate) violations: Vec<Violation>,
}

impl BuildError {
    /// The violations as data.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The loop as declared.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.violations.len();
        let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
        write!(f, "the loop `{}` breaks {rules}:", shown(self.graph.name()))?;
        for violation in &self.violations {
            write!(f, "\n  - {violation}")?;
        }
        if f.alternate() {
            write!(f, "\n\n{}", self.graph)?;
        }
        Ok(())
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl std::error::Error for BuildError {}
