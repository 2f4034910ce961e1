//! The parts of a step: its id, its body, its result, its policies, and [`Cx`], through which its
//! body accesses resources and effects.
//!
//! Nothing in this module runs a step. A body reads the state through a [`View`] and everything
//! else through a [`Cx`]. Beyond reading the context, a `Cx` does everything through one private
//! trait, `Effects`, which the executor implements.

mod action;
pub mod ag_ui;
mod ask;
mod ask_error;
mod body;
mod calling;
mod cx;
mod each;
mod effects;
mod error;
mod extract;
mod handler;
mod id;
mod interrupt;
mod name;
mod once;
mod part;
mod policy;
mod scope;
mod sleep;
mod tools;
mod view;

pub use ask::Ask;
pub use ask_error::AskError;
pub use calling::{Calling, Recorded};
pub use cx::Cx;
pub use effects::{EffectScope, Payload};
pub use error::{Failure, FailureKind, ResultExt, StepError, StepResult};
pub use extract::ExtractError;
pub use handler::Handler;
pub use id::{LoopEnd, StepId};
pub use interrupt::{Answered, Answers, Interrupt, NotThisQuestion, Pending};
pub use name::StepName;
pub use once::{Decided, InDoubt, Once, Undecided};
pub use policy::Retry;
pub use scope::{Scope, Scoped, current};
pub use sleep::Sleep;
pub use tools::CallTools;
pub use view::View;

pub(crate) use action::{Action, AskHalf, Route};
pub(crate) use body::BoxFuture;
pub(crate) use cx::{CxParts, Shared};
pub(crate) use each::{
    EachBody, ItemBody, ItemEnd, KeyBody, decoded, item_body, key_body, merged, plan_body,
};
pub(crate) use effects::{
    AskReply, Asked, CallEnd, Effects, Guard, Ids, OnceReply, Place, SleepReply, ToolEnd, Wake,
};
pub(crate) use interrupt::{APPROVE, Answer, QuestionType};
pub(crate) use part::Lens;
pub(crate) use policy::Policy;
pub(crate) use scope::RunScope;
#[cfg(feature = "report")]
pub(crate) use tools::TOOL;
