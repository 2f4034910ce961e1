//! Tools with a question of their own.

use std::fmt;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use crate::llm::{
    BadArguments, Content, Tool, ToolCall, ToolCx, ToolError, ToolQuestion, ToolSpec,
};
use crate::question::Question;
use crate::state::to_json;

use super::Approval;

/// Gives a tool a question that a person has to answer before each call.
pub trait Approve: Tool + Sized {
    /// Asks a person before each call, with a question made of the arguments. It works for every tool,
    /// also a function with `#[tool]`.
    ///
    /// The same arguments have to make the same question: it is made again when the answer is applied.
    /// Arguments that do not decode as `A` are never asked about.
    ///
    /// ```
    /// use harness::approval::{Approval, Approve};
    /// use harness::llm::ToolError;
    /// use harness::prelude::*;
    ///
    /// /// Deletes an account.
    /// #[tool(destructive)]
    /// async fn delete_account(account: String) -> Result<String, ToolError> {
    ///     Ok(format!("deleted {account}"))
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Account { account: String }
    ///
    /// #[derive(Question, Serialize, Deserialize)]
    /// #[question(answer = Approval)]
    /// struct ApproveDeletion { account: String }
    ///
    /// let tools = ToolSet::builder()
    ///     .with(delete_account.approve_with(|args: &Account| ApproveDeletion {
    ///         account: args.account.clone(),
    ///     }))
    ///     .build()?;
    /// # let _ = tools;
    /// # Ok::<(), harness::llm::ToolSetError>(())
    /// ```
    fn approve_with<A, Q>(
        self,
        question: impl Fn(&A) -> Q + Send + Sync + 'static,
    ) -> Approved<Self>
    where
        A: DeserializeOwned + 'static,
        Q: Question<Answer = Approval>,
    {
        let question = move |call: &ToolCall| {
            let question = question(&call.args::<A>()?);
            // A question that does not encode is shown as null: it is asked all the same.
            let json = to_json(&question).unwrap_or_default();
            Ok(ToolQuestion::new(Q::NAME, json))
        };
        Approved { tool: self, question: Box::new(question) }
    }
}

impl<T: Tool> Approve for T {}

type Ask = Box<dyn Fn(&ToolCall) -> Result<ToolQuestion, BadArguments> + Send + Sync>;

/// A tool with a question that a person answers before each call. [`Approve::approve_with`] creates
/// it.
pub struct Approved<T> {
    tool: T,
    question: Ask,
}

#[async_trait]
impl<T: Tool> Tool for Approved<T> {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, call: &ToolCall, cx: &ToolCx) -> Result<Content, ToolError> {
        self.tool.call(call, cx).await
    }

    fn approval(&self, call: &ToolCall) -> Result<Option<ToolQuestion>, BadArguments> {
        (self.question)(call).map(Some)
    }
}

impl<T: fmt::Debug> fmt::Debug for Approved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Approved").field(&self.tool).finish()
    }
}
