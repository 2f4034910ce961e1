//! Declaring a loop: [`Harness::builder`] returns a builder, and its `build()` a [`Harness`].
//!
//! A program writes [`Harness`] and [`Define`]. The other types are the stages of a declaration, which
//! the compiler names in its messages: what a step still [needs](NeedsThenEndOrRoute), or which slots and steps a
//! [builder](HarnessBuilder) still expects. [`Dynamic`] and [`Registry`] declare loops at run time.

mod builder;
mod define;
mod draft;
mod dynamic;
mod each;
mod named;
mod nest;
mod registry;
mod step;

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::context::Context;
use crate::graph::{Graph, Program};
use crate::observe::{Observer, Observers};
use crate::state::State;

pub use crate::step::StepName;
pub use builder::{
    Given, HarnessBuilder, HasSteps, LoopBuilder, NeedsSteps, Provided, Stepped, Unprovided,
};
pub use define::{Define, DefinePart};
pub use dynamic::Dynamic;
pub use each::{NeedsFold, NeedsItemBody};
pub use nest::NeedsEnds;
pub use registry::Registry;
pub use step::{EndsPlainly, NeedsAnswer, NeedsThenEndOrRoute, OfGate, OfStep, StepDef};

/// Binds a builder to types without holding values of them.
type About<T> = PhantomData<fn() -> T>;

/// A validated loop with its fixed slots. It is immutable, cheap to clone, and shared by any number
/// of agents.
///
/// `C` is the [`Context`]: the resources of the steps. `S` is the [`State`]: the data of the
/// session.
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
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Add }
///
/// #[derive(Signal, Clone, Copy, Debug)]
/// enum Next { More, Enough }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let harness = Harness::<(), Count>::builder("counter")
///     .start(Step::Add)
///     .steps(|define, step| match step {
///         Step::Add => define
///             .run(|_count, _cx| async move { Ok(Count::update().n(1)) })
///             .route(|count| if count.n < 3 { Next::More } else { Next::Enough }, |next| match next {
///                 Next::More => to(Step::Add),
///                 Next::Enough => end(),
///             }),
///     })
///     .build()?;
///
/// let ended = harness.agent("counter", ()).run(Count::update(), ()).await?.ended()?;
/// assert_eq!(ended.state.n, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Harness<C: Context, S: State> {
    pub(crate) program: Arc<Program<C, S>>,
    pub(crate) fixed: C::Fixed,
    pub(crate) observers: Observers,
}

impl<C: Context, S: State> Harness<C, S> {
    /// Starts to declare a loop.
    #[track_caller]
    pub fn builder(name: impl Into<String>) -> HarnessBuilder<C, S, Unprovided> {
        HarnessBuilder::new(name.into(), Location::caller())
    }

    /// Starts to declare a loop at run time. Steps are names, and `build()` checks what rustc
    /// checks for a loop of an enum. The harness works the same.
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
    /// #[derive(Signal, Clone, Copy, Debug)]
    /// enum Next { More, Enough }
    ///
    /// let next = |count: &Count| if count.n < 3 { Next::More } else { Next::Enough };
    /// let harness = Harness::<(), Count>::dynamic("counter")
    ///     .start("add")
    ///     .step("add", |define| {
    ///         define
    ///             .run(|_count, _cx| async move { Ok(Count::update().n(1)) })
    ///             .route(next, [("More", to("add")), ("Enough", end())])
    ///     })
    ///     .build()?;
    /// # Ok::<(), harness::BuildError>(())
    /// ```
    #[track_caller]
    pub fn dynamic(name: impl Into<String>) -> Dynamic<C, S, Unprovided> {
        Dynamic::new(name.into(), Location::caller())
    }

    /// The graph of the loop: its drawing and the names of its steps.
    pub fn graph(&self) -> &Graph {
        &self.program.graph
    }

    /// Adds an observer for every run of every agent of this harness. Can be called more than once;
    /// each observer receives every event.
    #[must_use = "it returns the harness with the observer"]
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }
}

impl<C: Context, S: State> Clone for Harness<C, S> {
    fn clone(&self) -> Self {
        Self {
            program: Arc::clone(&self.program),
            fixed: self.fixed.clone(),
            observers: self.observers.clone(),
        }
    }
}

impl<C: Context, S: State> fmt::Debug for Harness<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.program.graph, f)
    }
}
