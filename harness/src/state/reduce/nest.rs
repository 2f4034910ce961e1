use crate::state::{FieldOps, Ops, State};

/// `#[state(nest)]`: a field whose type is a state, and folds by the reducers of its own fields. Every
/// [`State`] is one.
///
/// ```
/// use harness::State;
/// use harness::state::{Nest, Ops};
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Essay {
///     #[state(reduce = append)]
///     paragraphs: Vec<String>,
/// }
///
/// let mut essay = Essay::default();
/// let mut ops = Ops::on();
/// essay.nest([Essay::update().paragraphs(["One.".to_owned()])], &mut ops.field("essay"));
/// assert_eq!(essay.paragraphs, ["One."]);
/// assert_eq!(ops.finish()?[0].path().to_string(), "essay.paragraphs");
/// # Ok::<(), harness::state::OpsError>(())
/// ```
pub trait Nest: State {
    /// Folds updates of the field, in order, and records what its reducers do below the field.
    fn nest(&mut self, updates: impl IntoIterator<Item = Self::Update>, ops: &mut FieldOps<'_>) {
        let mut below = if ops.is_on() { Ops::on() } else { Ops::off() };
        updates.into_iter().for_each(|update| self.apply(update, &mut below));
        ops.adopt(below);
    }
}

impl<S: State> Nest for S {}
