//! Breakpoints: a run asks before a step begins, or once it has committed.
//!
//! The question belongs to the position that comes next, and its record there, open or answered, is
//! what keeps the breakpoint from firing twice. That of a breakpoint after a step is in one batch with
//! the commit, so that no crash comes between them.

use crate::graph::{Graph, Wiring};
use crate::question::{Breakpoint, BreakpointAt};
use crate::session::Session;
use crate::step::{Asked, FailureKind, StepError, StepName};
use crate::text::near;

use super::error::Kind;

/// The breakpoints of a run, by the index of the step.
#[derive(Debug, Default)]
pub(crate) struct Breakpoints {
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Breakpoints {
    /// Looks up the steps.
    pub(super) fn new(graph: &Graph, named: &[(StepName, BreakpointAt)]) -> Result<Self, Kind> {
        let mut found = Self::default();
        for (step, at) in named {
            let index = graph.steps().position(|name| name == step.as_str());
            let index = index.ok_or_else(|| Kind::UnknownStep {
                step: step.to_string(),
                harness: graph.name().to_owned(),
                near: near(step.as_str(), graph.steps()).map(str::to_owned),
            })?;
            match at {
                BreakpointAt::Before => found.before.push(index),
                BreakpointAt::After => found.after.push(index),
            }
        }
        Ok(found)
    }

    /// Whether the run asks before it begins the step at work, which it has not attempted. The steps
    /// of `.finally(..)` do not ask.
    pub(super) fn is_before(&self, session: &Session<usize>) -> bool {
        let key = Some(BreakpointAt::Before.key());
        self.before.contains(&session.cursor.step)
            && session.cursor.finishing.is_none()
            && session.items.is_none()
            && session.timers.is_empty()
            && !session.asked(None, key).is_some_and(|asked| asked.interrupt.is_breakpoint())
    }

    /// The step at work, if the run asks once it has committed.
    pub(super) fn after(&self, session: &Session<usize>) -> Option<usize> {
        let step = session.cursor.step;
        (session.cursor.finishing.is_none() && self.after.contains(&step)).then_some(step)
    }
}

/// The question of a breakpoint, with its key.
pub(super) fn breakpoint(
    wiring: &Wiring,
    step: usize,
    at: BreakpointAt,
) -> Result<(Option<String>, Asked), StepError> {
    let asked = Asked::new(&Breakpoint::new(&wiring.nodes[step].name, at));
    let asked = asked.map_err(|why| StepError::of(FailureKind::Encode, false, why))?;
    Ok((Some(at.key().to_owned()), asked))
}
