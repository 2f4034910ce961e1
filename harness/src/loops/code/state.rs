//! What a code loop keeps in the state of its session.

use harness::State;
use harness::code::{Code, Coded};
use harness::state::Has;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the code loop keeps beside the program.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// What the program is to do.
    pub task: String,
    /// The parts that the model has planned.
    pub plan: Vec<Part>,
}

/// A part of a planned program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// One word, which names the code step.
    pub name: String,
    /// What it does, in a sentence.
    pub does: String,
}

/// A state that the code loop works on: it provides a [`Code`] and an [`Assignment`].
#[diagnostic::on_unimplemented(
    message = "the code loop cannot work on the state `{Self}`",
    note = "give it two fields: `#[state(esg)] code: Code` and `#[state(provides, nest)] assignment: Assignment`"
)]
pub trait Assigned: Coded + Has<Assignment, Change = AssignmentUpdate> {}

// The note above says more than the bounds.
#[diagnostic::do_not_recommend]
impl<S> Assigned for S where S: Coded + Has<Assignment, Change = AssignmentUpdate> {}

/// The state of a plain code loop, for programs that need no other.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coding {
    /// The task and the plan.
    #[state(provides, nest)]
    pub assignment: Assignment,
    /// The program.
    #[state(esg)]
    pub code: Code,
}

impl Coding {
    /// The input of a turn: what the program is to do.
    pub fn task(text: impl Into<String>) -> CodingUpdate {
        Self::update().assignment(Assignment::update().task(text.into()))
    }
}

/// The program of a state.
pub(super) fn code_of<S: Assigned>(state: &S) -> &Code {
    state.part()
}

/// What the loop keeps in a state.
pub(super) fn assignment<S: Assigned>(state: &S) -> &Assignment {
    state.part()
}

pub(super) fn update<S: Assigned>(change: AssignmentUpdate) -> S::Update {
    <S as Has<Assignment>>::change(S::update(), change)
}
