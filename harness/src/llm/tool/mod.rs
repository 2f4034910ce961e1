//! Tools: what a model may call, and how a call comes out.
//!
//! A [`ToolCall`] is a wish of the model. A [`ToolSet`] looks the [`Tool`] up, runs it and always
//! gives a [`ToolOutcome`]: an unknown name, arguments that do not fit, an error and a panic are all
//! outcomes that the model is told about, never errors of the step.

mod call;
mod error;
mod function;
mod outcome;
mod set;

pub use call::ToolCall;
pub use error::{BadArguments, ToolError};
pub use function::{FnTool, tool};
pub use outcome::{ToolFailure, ToolOutcome};
pub use set::{ToolSet, ToolSetBuilder, ToolSetError};

use super::{Content, ToolName};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Something a model may call.
///
/// Most tools are an async function given to [`tool`]; the trait is for tools that know their
/// schema only at run time, or whose name and schema come from elsewhere.
///
/// ```
/// use harness::llm::{Content, Tool, ToolCall, ToolError, ToolSpec};
/// use serde_json::{Value, json};
///
/// /// Answers with its arguments.
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl Tool for Echo {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("echo", "Answers with its arguments", json!({"type": "object"}))
///     }
///
///     async fn call(&self, call: &ToolCall) -> Result<Content, ToolError> {
///         Ok(call.json()?.into())
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What a model is told about the tool. A [`ToolSet`] asks once, when it is built.
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. The call's name is the one under which the tool was found.
    ///
    /// # Errors
    ///
    /// Any error; the model is told its text. Arguments are read with [`ToolCall::args`] and `?`,
    /// so that the model is told what was expected.
    async fn call(&self, call: &ToolCall) -> Result<Content, ToolError>;
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    async fn call(&self, call: &ToolCall) -> Result<Content, ToolError> {
        (**self).call(call).await
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Box<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    async fn call(&self, call: &ToolCall) -> Result<Content, ToolError> {
        (**self).call(call).await
    }
}

/// What a model is told about a tool.
///
/// ```
/// use harness::llm::ToolSpec;
/// use serde_json::json;
///
/// let spec = ToolSpec::new("now", "Tells the time", json!({"type": "object"}));
/// assert_eq!(spec.name.as_str(), "now");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: ToolName,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON schema of the arguments; its type is `object`.
    pub input_schema: Value,
}

impl ToolSpec {
    /// Makes a description of a tool.
    pub fn new(
        name: impl Into<ToolName>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self { name: name.into(), description: description.into(), input_schema }
    }
}
