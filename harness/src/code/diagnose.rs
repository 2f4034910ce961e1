//! The step that finds out why the program fails.
use std::fmt;

use async_trait::async_trait;

use super::bench::Bench;
use super::state::{CodeChange, Coded, program_of};
use crate::context::Context;
use crate::step::{Cx, Handler, StepResult, View};

/// A step that finds out why the program fails, made by [`diagnose`].
pub struct Diagnose<C>(Box<dyn Fn(&C) -> Bench + Send + Sync>);

/// Finds out why the program fails, after it ran: [`Code::diagnosis`](super::Code::diagnosis) has the failing code step, the one
/// that is the root cause, and the values that it saw. If nothing fails, there is no diagnosis.
///
/// The step fails, and may be retried, if the worker does not start or breaks down.
pub fn diagnose<C: Context>(bench: impl Fn(&C) -> Bench + Send + Sync + 'static) -> Diagnose<C> {
    Diagnose(Box::new(bench))
}

#[async_trait]
impl<C: Context, S: Coded> Handler<C, S> for Diagnose<C> {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        let code = program_of(&*state);
        let found = (self.0)(&cx).with(code, harness_esg::CodeGraph::diagnose).await?;
        Ok(S::change(S::update(), vec![CodeChange::Diagnosed(found.map(Box::new))]))
    }
}

impl<C> fmt::Debug for Diagnose<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Diagnose")
    }
}
