//! The builder: `Harness::builder(name).provide(..).start(..).steps(..).build()`.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::context::{Context, FixedSlots};
use crate::graph::{
    Budget, BuildError, Edge, Executable, Graph, Program, Rule, Violation, Wiring,
    violations as check,
};
use crate::observe::Observers;
use crate::state::State;
use crate::step::StepId;

use super::step::EndsPlainly;
use super::{About, Define, Harness, StepDef};

/// The fixed slots are not provided yet.
#[derive(Debug)]
pub struct Unprovided(pub(super) ());

/// The fixed slots of `C` are provided, or `C` has none.
#[diagnostic::on_unimplemented(
    message = "the fixed slots of `{C}` are not provided",
    label = "call `.provide(..)` before this",
    note = "provide them with `.provide({C}::fixed()..build())`, with one call for each slot of `{C}` that is neither `#[slot(required)]` nor `#[slot(runtime)]`"
)]
pub trait Provided<C: Context> {
    #[doc(hidden)]
    fn take(self) -> C::Fixed;
}

#[diagnostic::do_not_recommend]
impl<C: Context<Fixed: NothingFixed>> Provided<C> for Unprovided {
    fn take(self) -> C::Fixed {
        C::Fixed::nothing()
    }
}

/// The fixed slots of a context without fixed slots.
mod nothing {
    /// Implemented for `()`: there is nothing to provide.
    pub trait NothingFixed {
        #[doc(hidden)]
        fn nothing() -> Self;
    }

    impl NothingFixed for () {
        fn nothing() {}
    }
}

use nothing::NothingFixed;

/// The fixed slots are provided.
pub struct Given<C: Context>(pub(super) C::Fixed);

impl<C: Context> fmt::Debug for Given<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}

impl<C: Context> Provided<C> for Given<C> {
    fn take(self) -> C::Fixed {
        self.0
    }
}

/// A loop with a name. Call `.provide(..)` next if the context has fixed slots, then `.start(..)`.
#[must_use = "a builder does nothing until `.build()`"]
pub struct HarnessBuilder<C, S, P> {
    name: String,
    fixed: P,
    at: &'static Location<'static>,
    state: About<(C, S)>,
}

impl<C: Context, S: State> HarnessBuilder<C, S, Unprovided> {
    pub(super) fn new(name: String, at: &'static Location<'static>) -> Self {
        Self { name, fixed: Unprovided(()), at, state: PhantomData }
    }

    /// Provides the fixed slots, which all agents of this harness share.
    pub fn provide(self, fixed: impl FixedSlots<C>) -> HarnessBuilder<C, S, Given<C>> {
        HarnessBuilder {
            name: self.name,
            fixed: Given(fixed.filled()),
            at: self.at,
            state: PhantomData,
        }
    }
}

impl<C: Context, S: State, P> HarnessBuilder<C, S, P> {
    /// Sets the step that a turn starts with. Its type is the step enum of the loop.
    pub fn start<St: StepId + EndsPlainly>(self, step: St) -> LoopBuilder<C, S, St, NeedsSteps>
    where
        P: Provided<C>,
    {
        LoopBuilder {
            name: self.name,
            fixed: self.fixed.take(),
            start: step,
            on_error: None,
            finally: None,
            budget: Budget::default(),
            at: self.at,
            steps: NeedsSteps(()),
            state: PhantomData,
        }
    }
}

impl<C, S, P> fmt::Debug for HarnessBuilder<C, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The steps are not declared yet. Call `.steps(..)` next.
#[derive(Debug)]
pub struct NeedsSteps(());

/// The steps are declared.
pub struct Stepped<C: Context, S: State, St>(Vec<StepDef<C, S, St>>);

impl<C: Context, S: State, St> fmt::Debug for Stepped<C, S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stepped({})", self.0.len())
    }
}

/// The steps are declared.
#[diagnostic::on_unimplemented(
    message = "the steps of `{St}` are not declared",
    label = "call `.steps(..)` before this",
    note = "declare them with `.steps(|define, step| match step {{ .. }})`: one arm for each variant of `{St}`"
)]
pub trait HasSteps<C: Context, S: State, St> {
    #[doc(hidden)]
    fn take(self) -> Vec<StepDef<C, S, St>>;
}

impl<C: Context, S: State, St> HasSteps<C, S, St> for Stepped<C, S, St> {
    fn take(self) -> Vec<StepDef<C, S, St>> {
        self.0
    }
}

/// A loop with a start. `T` records whether its steps are declared.
#[must_use = "a builder does nothing until `.build()`"]
pub struct LoopBuilder<C: Context, S, St, T> {
    name: String,
    fixed: C::Fixed,
    start: St,
    on_error: Option<(St, &'static Location<'static>)>,
    finally: Option<(St, &'static Location<'static>)>,
    budget: Budget,
    at: &'static Location<'static>,
    steps: T,
    state: About<S>,
}

impl<C: Context, S: State, St: StepId, T> LoopBuilder<C, S, St, T> {
    /// The step to run when a step fails, its retries are used up, and it has no `.on_error(..)` of
    /// its own. The error step reads [`cx.failure()`](crate::Cx::failure).
    #[track_caller]
    pub fn on_error(mut self, step: St) -> Self {
        self.on_error = Some((step, Location::caller()));
        self
    }

    /// The step to run before the run settles as ended, failed or exhausted. It does not run when
    /// the run is interrupted, stopped, cancelled or dropped.
    ///
    /// The step may lead to further steps, cannot ask a question, and has its own budget (100
    /// steps, one minute). If it fails, the outcome does not change and
    /// carries the failure.
    #[track_caller]
    pub fn finally(mut self, step: St) -> Self {
        self.finally = Some((step, Location::caller()));
        self
    }

    /// The budget of one turn. The default is 1,000 steps.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

impl<C: Context, S: State, St: StepId> LoopBuilder<C, S, St, NeedsSteps> {
    /// Declares the steps. `declare` is called once for each variant of the step enum. With a
    /// `match`, rustc checks that every step is defined exactly once.
    pub fn steps<F>(self, mut declare: F) -> LoopBuilder<C, S, St, Stepped<C, S, St>>
    where
        F: FnMut(Define<C, S, St>, St) -> StepDef<C, S, St>,
    {
        let steps = St::all().into_iter().map(|step| declare(Define::new(), step)).collect();
        LoopBuilder {
            name: self.name,
            fixed: self.fixed,
            start: self.start,
            on_error: self.on_error,
            finally: self.finally,
            budget: self.budget,
            at: self.at,
            steps: Stepped(steps),
            state: PhantomData,
        }
    }
}

impl<C: Context, S: State, St: StepId, T> LoopBuilder<C, S, St, T> {
    /// Validates the loop.
    ///
    /// # Errors
    /// [`BuildError`] lists every violation.
    pub fn build(self) -> Result<Harness<C, S>, BuildError>
    where
        T: HasSteps<C, S, St>,
    {
        let edge = |step: &St, at| Edge { to: step.index(), at };
        let ids = St::all();
        let mut nodes = Vec::with_capacity(ids.len());
        let mut steps = Vec::with_capacity(ids.len());
        for (id, def) in ids.iter().zip(self.steps.take()) {
            let name = Arc::from(&*id.name());
            let (mut node, executable) = def.draft.into_parts(name, |link| Some(link.to.index()));
            node.aliases.extend(id.aliases().iter().map(|alias| Arc::from(&**alias)));
            nodes.push(node);
            steps.push(executable);
        }
        let wiring = Wiring {
            name: self.name.into(),
            nodes,
            start: self.start.index(),
            on_error: self.on_error.map(|(step, at)| edge(&step, at)),
            finally: self.finally.map(|(step, at)| edge(&step, at)),
            budget: self.budget,
            at: self.at,
        };
        let violations = match misnumbered(&ids, &wiring) {
            // With wrong numbers, edges may lead to no node.
            Some(misnumbered) => vec![misnumbered],
            None => check(&wiring),
        };
        finish(wiring, steps, violations, self.fixed)
    }
}

/// Builds the harness, or reports the violations.
pub(super) fn finish<C: Context, S: State>(
    wiring: Wiring,
    steps: Vec<Executable<C, S>>,
    violations: Vec<Violation>,
    fixed: C::Fixed,
) -> Result<Harness<C, S>, BuildError> {
    let graph = Graph { wiring: Arc::new(wiring) };
    if !violations.is_empty() {
        return Err(BuildError { graph, violations });
    }
    let program = Arc::new(Program { graph, steps });
    Ok(Harness { program, fixed, observers: Observers::default() })
}

impl<C: Context, S, St: fmt::Debug, T: fmt::Debug> fmt::Debug for LoopBuilder<C, S, St, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopBuilder")
            .field("name", &self.name)
            .field("start", &self.start)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Finds numbers that differ from the order of `all()`. A derived `StepId` has none.
fn misnumbered<St: StepId>(ids: &[St], wiring: &Wiring) -> Option<Violation> {
    let wrong = ids.iter().enumerate().find(|(at, id)| id.index() != *at);
    let outside = || wiring.targets().find(|step| *step >= ids.len());
    let (steps, but) = match wrong {
        Some((at, id)) => {
            let but = format!("the one listed at {at} is numbered {}", id.index());
            (vec![id.name().into_owned()], but)
        }
        None => (Vec::new(), format!("an edge leads to number {} of {}", outside()?, ids.len())),
    };
    Some(Violation {
        rule: Rule::StepIds,
        steps,
        declared: wiring.at.into(),
        first: None,
        near: None,
        message: format!(
            "`{}::index()` must number the steps in the order of `{0}::all()`, from 0, but {but} \
             (derive `StepId`)",
            St::NAME,
        ),
    })
}
