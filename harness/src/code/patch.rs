//! The step that patches the program.
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use harness_esg::{Patcher, Program};

use super::state::{CodeChange, Coded, program_of};
use crate::context::Context;
use crate::step::{Cx, Handler, ResultExt as _, StepError, StepResult, View};

/// A step that patches the program, made by [`patch`].
pub struct Patch<C: Context>(Box<dyn Fn(&Cx<C>) -> Arc<dyn Patcher> + Send + Sync>);

/// Asks a patcher for patches of what was [diagnosed](super::diagnose()), and applies the first one that
/// applies and does not return to a source that a code step had before. It runs nothing: what
/// the patch does is known when the program has run again.
///
/// The provenance of the change has the run. A patcher that asks a model [in this step](super::LlmPatcher::of_step)
/// has the replies recorded, so that a crash does not ask again:
///
/// ```
/// # use std::sync::Arc;
/// # use harness::code::{self, Code};
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Analysis { #[state(esg)] code: Code }
/// # #[derive(Context)] struct Ctx { #[slot(runtime)] model: Arc<dyn Llm> }
/// use harness::code::LlmPatcher;
///
/// let repair = code::patch(|cx: &Cx<Ctx>| LlmPatcher::of_step(cx, &cx.model));
/// # fn is_step(_: impl harness::step::Handler<Ctx, Analysis>) {}
/// # is_step(repair);
/// ```
///
/// The step fails if there is no diagnosis, if the patcher fails, and with [`Unpatched`], without a
/// retry and with the code [`Unpatched::CODE`], if no proposed patch is new.
pub fn patch<C: Context, P: Patcher + 'static>(
    patcher: impl Fn(&Cx<C>) -> P + Send + Sync + 'static,
) -> Patch<C> {
    Patch(Box::new(move |cx| Arc::new(patcher(cx))))
}

/// No patch was applied: the program is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unpatched {
    /// Nothing was diagnosed.
    #[error("there is no diagnosis to patch for (lead `diagnose` to this step)")]
    NoDiagnosis,
    /// The patcher knows no patch that was not there before.
    #[error("none of {proposed} proposed patches is new, for: {error}")]
    NothingNew {
        /// How many patches were proposed.
        proposed: usize,
        /// The error that was diagnosed.
        error: String,
    },
}

impl Unpatched {
    /// The code of the [failure](crate::Failure::code) of a step that knows no patch, by which a step of its
    /// `.on_error(..)` can distinguish it from a model that cannot be reached.
    pub const CODE: &str = "unpatched";
}

#[async_trait]
impl<C: Context, S: Coded> Handler<C, S> for Patch<C> {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        let code = program_of(&*state);
        let diagnosis = code.diagnosis().ok_or(Unpatched::NoDiagnosis).fatal()?;
        let program = code.program();
        // No effect: a cancel and a time limit would wait for a model that does not reply.
        let proposed = (self.0)(&cx).propose(diagnosis, program).await?;
        let count = proposed.len();
        let mut usable = proposed.into_iter().filter(|patch| is_new(patch, program));
        let Some(mut patch) = usable.next() else {
            let error = diagnosis.error();
            let unpatched: Result<_, StepError> =
                Err(Unpatched::NothingNew { proposed: count, error }).fatal();
            return unpatched.map_err(|error| error.code(Unpatched::CODE));
        };
        patch.provenance.run = Some(cx.run_id().to_string().into());
        let mut changes = code.edited(|program| program.patch(&patch).map(drop)).fatal()?;
        changes.push(CodeChange::Diagnosed(None));
        Ok(S::change(S::update(), changes))
    }
}

/// Whether it applies, and gives no code step a source that it had before.
pub(super) fn is_new(patch: &harness_esg::Patch, program: &Program) -> bool {
    let was_there = |id: &Arc<str>| {
        let source = program.step(id).ok().and_then(|step| patch.preview(id, &step.source).ok());
        source.is_none_or(|source| {
            let mut versions = program.versions().iter();
            versions.any(|version| version.step == *id && *version.source == *source)
        })
    };
    program.accepts(patch).is_ok() && !patch.steps().any(was_there)
}

impl<C: Context> fmt::Debug for Patch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Patch")
    }
}
