//! What a program that declares a loop needs: `use harness::prelude::*;`.

pub use crate::llm::{Llm, ToolSet, Transcript, tool, user};
pub use crate::step::Handler;
pub use crate::{
    Agent, Answered, Answers, Budget, Context, Cx, Harness, Has, Outcome, Question, ResultExt,
    Retry, Signal, State, StepError, StepId, StepResult, View, end, end_with, to,
};
pub use async_trait::async_trait;
pub use serde::{Deserialize, Serialize};
