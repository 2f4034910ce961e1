use std::sync::Arc;

use async_trait::async_trait;

use crate::context::Context;
use crate::state::State;

use super::{Cx, StepResult, View};

/// The body of a step as a value, for steps with configuration and for steps of libraries.
///
/// ```
/// use harness::prelude::*;
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Count {
///     #[state(reduce = add)]
///     n: u32,
/// }
///
/// struct AddN(u32);
///
/// #[async_trait]
/// impl Handler<(), Count> for AddN {
///     async fn run(&self, _count: View<Count>, _cx: Cx<()>) -> StepResult<Count> {
///         Ok(Count::update().n(self.0))
///     }
/// }
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Add }
///
/// let harness = Harness::<(), Count>::builder("adder")
///     .start(Step::Add)
///     .steps(|define, step| match step {
///         Step::Add => define.handler(AddN(2)).end(),
///     })
///     .build()?;
/// # Ok::<(), harness::BuildError>(())
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step of this loop",
    label = "not a `Handler<{C}, {S}>`",
    note = "implement `Handler<{C}, {S}>` for it, with `#[async_trait]`, or pass a function to `define.run(..)`"
)]
pub trait Handler<C: Context, S: State>: Send + Sync + 'static {
    /// Runs the step and returns its update.
    ///
    /// # Errors
    /// A [`StepError`](crate::StepError): retryable, or fatal.
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S>;
}

#[async_trait]
impl<C: Context, S: State, H: Handler<C, S> + ?Sized> Handler<C, S> for Arc<H> {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        (**self).run(state, cx).await
    }
}
