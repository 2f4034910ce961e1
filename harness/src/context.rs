//! The resources of steps, which are not stored.

/// Derives [`Context`](trait@Context), with a builder for each time at which slots are filled.
///
/// ```
/// use harness::Context;
///
/// #[derive(Context)]
/// struct Ctx {
///     tools: Vec<&'static str>,
///     #[slot(required)]
///     prompt: String,
///     #[slot(runtime)]
///     seed: u64,
/// }
///
/// let fixed = Ctx::fixed().tools(vec!["search"]).build();
/// let required = Ctx::required().prompt("Be brief.".to_owned()).build();
/// let runtime = Ctx::runtime().seed(7).build();
/// let ctx = Ctx::assemble(fixed, required, runtime);
/// assert_eq!(ctx.prompt, "Be brief.");
/// # let _ = (ctx.tools, ctx.seed);
/// ```
///
/// # Times
///
/// | attribute | filled | by | type must be |
/// |---|---|---|---|
/// | none, `#[slot(fixed)]` | when the harness is built | `Ctx::fixed()` | `Clone` |
/// | `#[slot(required)]` | when the agent is created | `Ctx::required()` | `Clone` |
/// | `#[slot(runtime)]` | when a run starts | `Ctx::runtime()` | `Send` |
///
/// A time without slots has no builder; its value is `()`. The setters take exactly the type of the
/// field. A slot cannot have the name of a method of `Cx` or of the builders.
pub use harness_macros::Context;

// The compiler names it in the error about a missing slot.
#[doc(hidden)]
pub use typed_builder::TypedBuilder as Slots;

/// The resources that steps use, in slots that are filled at three times.
///
/// Derive it. `()` is the context of a loop without resources.
///
/// ```
/// use harness::Context;
/// use harness::context::When;
///
/// #[derive(Context)]
/// struct Ctx {
///     #[slot(required)]
///     prompt: String,
/// }
///
/// let ctx = Ctx::assemble((), Ctx::required().prompt("Hi.".to_owned()).build(), ());
/// assert_eq!(ctx.prompt, "Hi.");
/// assert_eq!(Ctx::slots()[0].when, When::Required);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the context of a loop",
    note = "write `#[derive(Context)]` above the struct, or use `()`"
)]
pub trait Context: Sized + Send + Sync + 'static {
    /// The slots filled when the harness is built, or `()`.
    type Fixed: Clone + Send + Sync + 'static;
    /// The slots filled when an agent is created, or `()`.
    type Required: Clone + Send + Sync + 'static;
    /// The slots filled when a run starts, or `()`.
    type Runtime: Send + 'static;

    /// Builds the context from its slots.
    fn assemble(fixed: Self::Fixed, required: Self::Required, runtime: Self::Runtime) -> Self;

    /// The slots, in the order of declaration.
    #[must_use]
    fn slots() -> &'static [Slot];
}

impl Context for () {
    type Fixed = ();
    type Required = ();
    type Runtime = ();

    fn assemble((): (), (): (), (): ()) {}

    fn slots() -> &'static [Slot] {
        &[]
    }
}

/// What [`HarnessBuilder::provide`](crate::declare::HarnessBuilder::provide) takes for a context: its fixed slots, or `()` if it has none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not fill the fixed slots of `{C}`",
    label = "expected the fixed slots of `{C}`",
    note = "a context with fixed slots takes `{C}::fixed()..build()`, with a call for each slot that is neither `#[slot(required)]` nor `#[slot(runtime)]`; one without takes `()`"
)]
pub trait FixedSlots<C: Context> {
    #[doc(hidden)]
    fn filled(self) -> C::Fixed;
}

#[diagnostic::do_not_recommend]
impl<C: Context<Fixed = T>, T> FixedSlots<C> for T {
    fn filled(self) -> T {
        self
    }
}

/// What [`Harness::agent`](crate::Harness::agent) takes for a context: its required slots, or `()` if it has none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not fill the required slots of `{C}`",
    label = "expected the required slots of `{C}`",
    note = "a context with `#[slot(required)]` takes `{C}::required()..build()`, with a call for each such slot; one without takes `()`"
)]
pub trait RequiredSlots<C: Context> {
    #[doc(hidden)]
    fn filled(self) -> C::Required;
}

#[diagnostic::do_not_recommend]
impl<C: Context<Required = T>, T> RequiredSlots<C> for T {
    fn filled(self) -> T {
        self
    }
}

/// What [`Agent::run`](crate::Agent::run) takes for a context: its runtime slots, or `()` if it has none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not fill the runtime slots of `{C}`",
    label = "expected the runtime slots of `{C}`",
    note = "a context with `#[slot(runtime)]` takes `{C}::runtime()..build()`, with a call for each such slot; one without takes `()`"
)]
pub trait RuntimeSlots<C: Context> {
    #[doc(hidden)]
    fn filled(self) -> C::Runtime;
}

#[diagnostic::do_not_recommend]
impl<C: Context<Runtime = T>, T> RuntimeSlots<C> for T {
    fn filled(self) -> T {
        self
    }
}

/// A slot of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The name of the field.
    pub name: &'static str,
    /// When it is filled.
    pub when: When,
    /// The type of the field, as written.
    pub type_name: &'static str,
}

/// When a slot is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// When the harness is built.
    Fixed,
    /// When an agent is created.
    Required,
    /// When a run starts.
    Runtime,
}
