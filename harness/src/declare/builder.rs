//! The builder: `Harness::builder(name).provide(..).start(..).steps(..).build()`.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::context::Context;
use crate::graph::{
    Budget, BuildError, Edge, Executable, Graph, Program, Rule, Violation, Wiring,
    violations as check,
};
use crate::observe::Observers;
use crate::state::State;
use crate::step::StepId;

use super::{About, Define, Harness, StepDef};

/// The fixed slots are not given yet.
#[derive(Debug)]
pub struct Unprovided(pub(super) ());

/// Says that the fixed slots of `C` are given, or that it has none.
#[diagnostic::on_unimplemented(
    message = "the fixed slots of `{C}` are not provided",
    label = "call `.provide(..)` before this",
    note = "give them with `.provide({C}::fixed()..build())`: one call for each slot of `{C}` that is neither `#[slot(required)]` nor `#[slot(runtime)]`"
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

/// The fixed slots of a context that has none.
mod nothing {
    /// Says that there is nothing to provide.
    pub trait NothingFixed {
        #[doc(hidden)]
        fn nothing() -> Self;
    }

    impl NothingFixed for () {
        fn nothing() {}
    }
}

use nothing::NothingFixed;

/// The fixed slots, given.
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

/// A loop that has a name. Next come `.provide(..)`, unless there are no fixed slots, and
/// `.start(..)`.
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

    /// Gives the fixed slots: those that every agent of this harness shares.
    pub fn provide(self, fixed: C::Fixed) -> HarnessBuilder<C, S, Given<C>> {
        HarnessBuilder { name: self.name, fixed: Given(fixed), at: self.at, state: PhantomData }
    }
}

impl<C: Context, S: State, P> HarnessBuilder<C, S, P> {
    /// Says which step a turn starts with, and with it which enum the steps are.
    pub fn start<St: StepId>(self, step: St) -> LoopBuilder<C, S, St, NeedsSteps>
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

/// The steps are not declared yet: `.steps(..)` comes next.
#[derive(Debug)]
pub struct NeedsSteps(());

/// The steps are declared.
pub struct Stepped<C: Context, S: State, St>(Vec<StepDef<C, S, St>>);

impl<C: Context, S: State, St> fmt::Debug for Stepped<C, S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stepped({})", self.0.len())
    }
}

/// Says that the steps are declared.
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

/// A loop that has a start. `T` says whether its steps are declared.
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
    /// Where the failures of steps go that have no `.on_error(..)` of their own, once their
    /// retries are used up. That step reads [`cx.failure()`](crate::Cx::failure).
    #[track_caller]
    pub fn on_error(mut self, step: St) -> Self {
        self.on_error = Some((step, Location::caller()));
        self
    }

    /// The step that runs before the run settles as ended, failed or exhausted; not when it is
    /// interrupted, stopped, cancelled or dropped. It may lead to further steps, asks nothing, and
    /// has a small budget of its own (100 steps, one minute). Its failure does not replace the
    /// outcome, but is told with it.
    #[track_caller]
    pub fn finally(mut self, step: St) -> Self {
        self.finally = Some((step, Location::caller()));
        self
    }

    /// What one turn may spend. Without it: 1,000 steps.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

impl<C: Context, S: State, St: StepId> LoopBuilder<C, S, St, NeedsSteps> {
    /// Declares the steps: called once for each variant of the step enum, so that a `match` over
    /// it is checked by rustc to define every step, and none twice.
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
    /// Checks the loop.
    ///
    /// # Errors
    /// [`BuildError`] with every broken rule at once.
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
            // Where the numbers are wrong, edges may lead to no node.
            Some(misnumbered) => vec![misnumbered],
            None => check(&wiring),
        };
        finish(wiring, steps, violations, self.fixed)
    }
}

/// The harness of a loop, or what is wrong with the loop.
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

/// Finds what no derived `StepId` does: numbers that are not those of `all()`.
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
            "`{}::index()` must number the steps as `{0}::all()` lists them, from 0, but {but} \
             (derive `StepId`)",
            St::NAME,
        ),
    })
}
