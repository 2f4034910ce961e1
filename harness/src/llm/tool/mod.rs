//! Tools that a model can call, and the outcomes of calls.
//!
//! A [`ToolCall`] is requested by the model. A [`ToolSet`] looks up the [`Tool`], runs it, and
//! always returns a [`ToolOutcome`]. An unknown name, invalid arguments, an error and a panic are
//! outcomes that are sent to the model, not errors of the step.

mod call;
mod context;
mod effect;
mod error;
mod function;
mod outcome;
mod set;

pub use call::ToolCall;
pub use context::{MissingValue, ToolCx};
pub use effect::EffectClass;
pub use error::{BadArguments, ToolError};
pub(crate) use function::schema;
pub use function::{FnTool, tool};
pub use outcome::{ToolFailure, ToolOutcome};
pub use set::{ToolSet, ToolSetBuilder, ToolSetError};

use super::{Content, ToolName};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A tool that a model can call.
///
/// Most tools are async functions with the attribute [`#[tool]`](macro@crate::llm::tool), or passed to
/// [`tool`]. Implement the trait for tools whose name or schema is known only at run time.
///
/// ```
/// use harness::llm::{Content, Tool, ToolCall, ToolCx, ToolError, ToolSpec};
/// use serde_json::{Value, json};
///
/// /// Returns its arguments.
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl Tool for Echo {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("echo", "Returns its arguments", json!({"type": "object"}))
///     }
///
///     async fn call(&self, call: &ToolCall, _cx: &ToolCx) -> Result<Content, ToolError> {
///         Ok(call.json()?.into())
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The description for the model. A [`ToolSet`] calls this once, when it is built.
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. The name in `call` is the name under which the tool was found. `cx` has the
    /// values that the caller gives to its tools.
    ///
    /// # Errors
    ///
    /// Any error; its text is sent to the model. Read the arguments with [`ToolCall::args`] and
    /// `?`, so that the model receives the expected schema.
    async fn call(&self, call: &ToolCall, cx: &ToolCx) -> Result<Content, ToolError>;

    /// What a person is asked before a call, in place of the general question, if the tool wants a
    /// person to approve it. [`Approve::approve_with`](crate::approval::Approve::approve_with) sets it.
    ///
    /// # Errors
    ///
    /// The arguments do not decode: the call gets this as its outcome, and no person is asked.
    fn approval(&self, call: &ToolCall) -> Result<Option<ToolQuestion>, BadArguments> {
        let _ = call;
        Ok(None)
    }
}

/// The question that a tool asks before a call: a name and JSON, as
/// [`Question`](trait@crate::Question) defines them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolQuestion {
    /// The stored name of the question.
    pub name: &'static str,
    /// The question as JSON.
    pub question: Value,
}

impl ToolQuestion {
    /// Creates a question from its name and its JSON.
    pub fn new(name: &'static str, question: Value) -> Self {
        Self { name, question }
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    async fn call(&self, call: &ToolCall, cx: &ToolCx) -> Result<Content, ToolError> {
        (**self).call(call, cx).await
    }

    fn approval(&self, call: &ToolCall) -> Result<Option<ToolQuestion>, BadArguments> {
        (**self).approval(call)
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Box<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }

    async fn call(&self, call: &ToolCall, cx: &ToolCx) -> Result<Content, ToolError> {
        (**self).call(call, cx).await
    }

    fn approval(&self, call: &ToolCall) -> Result<Option<ToolQuestion>, BadArguments> {
        (**self).approval(call)
    }
}

/// The description of a tool for the model.
///
/// ```
/// use harness::llm::{EffectClass, ToolSpec};
/// use serde_json::json;
///
/// let spec = ToolSpec::new("now", "Returns the time", json!({"type": "object"}))
///     .effect(EffectClass::Read);
/// assert_eq!(spec.name.as_str(), "now");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name of the tool.
    pub name: ToolName,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON schema of the arguments. Its type is `object`.
    pub input_schema: Value,
    /// What a call does to the world. Models do not see it.
    #[serde(default)]
    pub effect: EffectClass,
    /// How long a call may take. Models do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// Creates a description of a tool that acts on the world outside
    /// ([`EffectClass::External`]) without a time limit.
    pub fn new(
        name: impl Into<ToolName>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            effect: EffectClass::default(),
            timeout: None,
        }
    }

    /// Sets what a call does to the world.
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = effect;
        self
    }

    /// Bounds how long a call may take.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}
