//! What steps may use but what is never saved.

/// Derives [`Context`](trait@Context): a builder for each time at which slots
/// are filled.
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
/// | `#[slot(required)]` | when an agent is made | `Ctx::required()` | `Clone` |
/// | `#[slot(runtime)]` | at each run | `Ctx::runtime()` | anything that is `Send` |
///
/// A time without slots has no builder; its value is `()`. The setters take
/// exactly the type of the field. A slot cannot be called like a method of `Cx`
/// or of the builders.
pub use harness_macros::Context;

// The compiler names it when a slot is missing.
#[doc(hidden)]
pub use typed_builder::TypedBuilder as Slots;

/// The slots that steps may use, and the three times at which they are filled.
///
/// Derive it. `()` is the context of a loop that needs none.
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
    /// The slots filled when the harness is built; `()` when there are none.
    type Fixed: Clone + Send + Sync + 'static;
    /// The slots filled when an agent is made; `()` when there are none.
    type Required: Clone + Send + Sync + 'static;
    /// The slots filled at each run; `()` when there are none.
    type Runtime: Send + 'static;

    /// Puts the slots together.
    fn assemble(fixed: Self::Fixed, required: Self::Required, runtime: Self::Runtime) -> Self;

    /// What the slots are, in the order of declaration.
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

/// One slot of a context.
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
    /// When an agent is made.
    Required,
    /// At each run.
    Runtime,
}
