//! The step that runs the program.
use std::fmt;

use async_trait::async_trait;

use super::bench::Bench;
use super::replay::replay;
use super::state::{Coded, program_of};
use crate::context::Context;
use crate::step::{Cx, Handler, StepResult, View};

/// A step that runs the code steps which an edit affects, made by [`execute`].
pub struct Execute<C>(Box<dyn Fn(&C) -> Bench + Send + Sync>);

/// Runs the program of the state, on the bench of a slot: only the code steps whose executions no
/// longer hold. A code step that fails is no failure of this step; a route reads
/// [`Code::is_ok`](super::Code::is_ok).
///
/// Each execution is recorded, as an effect of this step, before the next one begins. After a crash
/// the step is entered again, and the code steps that were finished do not run again.
///
/// The step fails, and may be retried, if the worker does not start or breaks down.
pub fn execute<C: Context>(bench: impl Fn(&C) -> Bench + Send + Sync + 'static) -> Execute<C> {
    Execute(Box::new(bench))
}

#[async_trait]
impl<C: Context, S: Coded> Handler<C, S> for Execute<C> {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        let code = program_of(&*state);
        let changes = replay((self.0)(&cx), code, &cx).await?;
        Ok(S::change(S::update(), changes))
    }
}

impl<C> fmt::Debug for Execute<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Execute")
    }
}
