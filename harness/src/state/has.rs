//! What a step that works with any state requires of it.

use super::State;

/// A state with a field of type `T`. A step that requires it works with every such state.
///
/// `#[state(provides)]` on a field implements it. A step requires the type `T` that it reads, and
/// the type [`Change`](Self::Change) that updates it:
///
/// ```
/// use harness::llm::Message;
/// use harness::prelude::*;
///
/// // In a library: any context, and any state with a transcript.
/// pub trait Talks: Has<Transcript, Change = Vec<Message>> {}
/// impl<S: Has<Transcript, Change = Vec<Message>>> Talks for S {}
///
/// pub async fn greet<S: Talks, C: Context>(state: View<S>, _cx: Cx<C>) -> StepResult<S> {
///     let greeting = format!("greeting number {}", state.part().len() + 1);
///     Ok(S::change(S::update(), vec![user(greeting)]))
/// }
///
/// // Two programs with their own states.
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Chat {
///     #[state(provides, reduce = transcript)]
///     talk: Transcript,
/// }
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Support {
///     ticket: u32,
///     #[state(provides, reduce = transcript)]
///     history: Transcript,
/// }
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Greet, Again }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let chat = Harness::<(), Chat>::builder("chat")
///     .start(Step::Greet)
///     .steps(|define, step| match step {
///         Step::Greet => define.run(greet).then(Step::Again),
///         Step::Again => define.run(greet).end(),
///     })
///     .build()?;
/// let support = Harness::<(), Support>::builder("support")
///     .start(Step::Greet)
///     .steps(|define, step| match step {
///         Step::Greet => define.run(greet).then(Step::Again),
///         Step::Again => define.run(greet).end(),
///     })
///     .build()?;
///
/// let chat = chat.agent("a", ()).run(Chat::update(), ()).await?.ended()?.state;
/// let asked = Support::update().ticket(7).history([user("hello?")]);
/// let support = support.agent("b", ()).run(asked, ()).await?.ended()?.state;
/// assert_eq!(chat.talk.len(), 2);
/// assert_eq!(support.history.len(), 3);
/// # assert_eq!(support.ticket, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// # Several parts
///
/// With one part, `state.part()` and `S::change(..)` are unambiguous. With several, name the type:
/// annotate the variable that is read, and the trait that changes it.
///
/// ```
/// use harness::prelude::*;
///
/// #[derive(Clone, Debug, Default, Serialize, Deserialize)]
/// struct Pages(u32);
///
/// async fn turn_page<S, C>(state: View<S>, _cx: Cx<C>) -> StepResult<S>
/// where
///     S: Has<Pages, Change = Pages> + Has<Vec<String>, Change = Vec<String>>,
///     C: Context,
/// {
///     let page: &Pages = state.part();
///     let update = <S as Has<Pages>>::change(S::update(), Pages(page.0 + 1));
///     let line = format!("after page {}", page.0);
///     Ok(<S as Has<Vec<String>>>::change(update, vec![line]))
/// }
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Book {
/// #     #[state(provides)]
/// #     page: Pages,
/// #     #[state(provides, reduce = append)]
/// #     lines: Vec<String>,
/// # }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// # enum Step { Turn }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let book = Harness::<(), Book>::builder("book")
/// #     .start(Step::Turn)
/// #     .steps(|define, step| match step {
/// #         Step::Turn => define.run(turn_page).end(),
/// #     })
/// #     .build()?;
/// # let book = book.agent("b", ()).run(Book::update(), ()).await?.ended()?.state;
/// # assert_eq!((book.page.0, book.lines), (1, vec!["after page 0".to_owned()]));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// Only one field of a state can provide a type. A type that names its meaning (`Pages`, not `u32`)
/// keeps two fields apart.
#[diagnostic::on_unimplemented(
    message = "the state `{Self}` has no field that provides `{T}`",
    label = "no field provides `{T}`",
    note = "write `#[state(provides)]` above the field of type `{T}` in `{Self}`"
)]
pub trait Has<T>: State {
    /// The argument of the field's setter, as one value.
    ///
    /// | reducer | change |
    /// |---|---|
    /// | none, `replace`, `add` | `T` |
    /// | `append`, `union`, `upsert`, `transcript` | `Vec` of the items |
    /// | `merge` | `Vec` of the pairs |
    /// | `max`, `min`, `first` | the value inside the `Option` |
    /// | a path | the function's second parameter |
    type Change;

    /// The field.
    #[must_use]
    fn part(&self) -> &T;

    /// Adds a change of the field to an update, as the field's setter does.
    #[must_use = "an update has no effect until a step returns it"]
    fn change(update: Self::Update, change: Self::Change) -> Self::Update;
}
