//! What a loop with tools keeps in the state of its session.

use harness::State;
use harness::approval::{Rule, Ruling};
use harness::llm::{Message, Transcript, user};
use harness::state::Has;
use serde::{Deserialize, Serialize};

/// What the tool loop keeps beside the transcript.
///
/// Session rules are here: an approval adds one, and an update with a
/// [revoked](Rule::revoked) rule takes its effect back.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The rulings on the calls of the last turn of the model, until they have outcomes.
    pub rulings: Vec<Ruling>,
    /// The rules of this session.
    #[state(reduce = upsert(id))]
    pub rules: Vec<Rule>,
    /// The tokens of the last request and its reply, if the provider has reported them.
    pub tokens: Option<u64>,
}

/// A state that the tool loop works on: it provides a [`Transcript`] and a [`ToolUse`].
///
/// ```
/// use harness::loops::{ToolUse, tool_loop};
/// use harness::prelude::*;
/// # use harness::llm::Scripted;
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Ticket {
///     customer: String,
///     #[state(provides, reduce = transcript)]
///     talk: Transcript,
///     #[state(provides, nest)]
///     tools: ToolUse,
/// }
///
/// # let (model, tools) = (Scripted::new(["hello"]), ToolSet::default());
/// let support = tool_loop::<Ticket>(model, tools)
///     .system_with(|ticket| format!("You help {}.", ticket.customer))
///     .build()?;
/// # let _ = support;
/// # Ok::<(), harness::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the tool loop cannot work on the state `{Self}`",
    note = "give it two fields: `#[state(provides, reduce = transcript)] talk: Transcript` and `#[state(provides, nest)] tools: ToolUse`"
)]
pub trait Converses:
    Has<Transcript, Change = Vec<Message>> + Has<ToolUse, Change = ToolUseUpdate>
{
}

// The note above says more than the bounds.
#[diagnostic::do_not_recommend]
impl<S> Converses for S where
    S: Has<Transcript, Change = Vec<Message>> + Has<ToolUse, Change = ToolUseUpdate>
{
}

/// The state of a plain conversation, for programs that need no other.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// What was said and done.
    #[state(provides, reduce = transcript)]
    pub talk: Transcript,
    /// What the tool loop keeps.
    #[state(provides, nest)]
    pub tools: ToolUse,
}

impl Conversation {
    /// The input of a turn: a message of the user.
    pub fn say(text: impl Into<String>) -> ConversationUpdate {
        Self::update().talk([user(text.into())])
    }

    /// The text of the model's last turn.
    pub fn answer(&self) -> Option<String> {
        self.talk.last_text()
    }
}

/// The transcript of a state.
pub(super) fn talk<S: Converses>(state: &S) -> &Transcript {
    state.part()
}

/// What the loop keeps in a state.
pub(super) fn kept<S: Converses>(state: &S) -> &ToolUse {
    state.part()
}

/// An update of both.
pub(super) fn update<S: Converses>(talk: Vec<Message>, tools: ToolUseUpdate) -> S::Update {
    let update = <S as Has<Transcript>>::change(S::update(), talk);
    <S as Has<ToolUse>>::change(update, tools)
}
