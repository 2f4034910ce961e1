//! The tools that a model can call, by name.

use super::{
    BadArguments, Tool, ToolCall, ToolCx, ToolFailure, ToolOutcome, ToolQuestion, ToolSpec,
};
use crate::llm::{Message, ToolName};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;

/// The greatest length of a tool's name.
const NAME: usize = 64;

/// The greatest number of tools listed in the error about an unknown one.
const LISTED: usize = 20;

/// The tools that a model can call, by name. Immutable; clones share the tools.
///
/// The default is an empty set. Tools keep the order in which they were added, so a provider
/// receives identical requests and can cache them.
///
/// ```
/// use harness::llm::{ToolCall, ToolSet, Transcript, Turn, tool, user};
/// use serde_json::Value;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tools = ToolSet::builder()
///     .with(tool("now", "Returns the time", |_: Value| async { Ok("noon") }))
///     .build()?;
///
/// let mut talk = Transcript::from_iter([
///     user("what time is it?"),
///     Turn::new([ToolCall::new("call-1-0", "now", "{}").into()]).into(),
/// ]);
/// talk.extend(tools.call_all(talk.open_calls()).await);
/// assert!(!talk.has_open_calls());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolSet(Arc<Inner>);

#[derive(Default)]
struct Inner {
    specs: Vec<ToolSpec>,
    /// In the order of the specs.
    tools: Vec<Arc<dyn Tool>>,
    index: HashMap<ToolName, usize>,
}

impl ToolSet {
    /// Creates a builder.
    pub fn builder() -> ToolSetBuilder {
        ToolSetBuilder::default()
    }

    /// The specs of the tools, in the order they were added.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.0.specs
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// The spec of a tool.
    pub fn spec(&self, name: &ToolName) -> Option<&ToolSpec> {
        self.0.index.get(name).map(|&index| &self.0.specs[index])
    }

    /// What a person is asked before a call, in the words of the tool. `None` if the tool has no such
    /// question, or there is no such tool.
    ///
    /// # Errors
    ///
    /// The arguments do not decode.
    pub fn approval(&self, call: &ToolCall) -> Result<Option<ToolQuestion>, BadArguments> {
        match self.0.index.get(&call.name) {
            Some(&index) => self.0.tools[index].approval(call),
            None => Ok(None),
        }
    }

    /// Runs one call. Every error is an outcome, including a panic of the tool.
    ///
    /// In a step, [`Cx::call_tools`](crate::Cx::call_tools) also protects the call from repetition.
    pub async fn call(&self, call: &ToolCall) -> ToolOutcome {
        self.call_with(call, &ToolCx::new()).await
    }

    /// Runs one call of a tool that uses values of its caller, as [`call`](Self::call) does.
    pub async fn call_with(&self, call: &ToolCall, cx: &ToolCx) -> ToolOutcome {
        let Some(&index) = self.0.index.get(&call.name) else {
            return ToolOutcome::failed(ToolFailure::UnknownTool, self.unknown(&call.name));
        };
        let tool: &dyn Tool = &*self.0.tools[index];
        // Inside a block, a panic before the first await is a panic of the future.
        let run = async { tool.call(call, cx).await };
        let error = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(content)) => return ToolOutcome::Ok(content),
            Ok(Err(error)) => error,
            Err(_) => {
                let text = format!("tool `{}` panicked", call.name);
                return ToolOutcome::failed(ToolFailure::Panicked, text);
            }
        };
        if let Some(outcome) = error.known() {
            return outcome.clone();
        }
        let text = match error.bad_arguments() {
            Some(bad) => {
                let schema = &self.0.specs[index].input_schema;
                format!("{} (call it again with arguments that match {schema})", bad.reason())
            }
            None => error.to_string(),
        };
        ToolOutcome::failed(error.failure(), text)
    }

    /// Runs all calls concurrently, on the current task. Returns their outcomes in the order of the
    /// calls, as messages for the transcript that made the calls.
    ///
    /// Dropping the future drops the running tools.
    pub fn call_all(
        &self,
        calls: impl IntoIterator<Item = ToolCall>,
    ) -> BoxFuture<'static, Vec<Message>> {
        let runs: Vec<_> = calls
            .into_iter()
            .map(|call| {
                let tools = self.clone();
                async move {
                    let outcome = tools.call(&call).await;
                    let call = call.id;
                    Message::Outcome { call, outcome }
                }
            })
            .collect();
        join_all(runs).boxed()
    }

    /// The error for the model when it calls an unknown tool. The invented name and the list of
    /// tools are bounded.
    pub(crate) fn unknown(&self, name: &ToolName) -> String {
        let name: String = name.as_str().chars().take(NAME).collect();
        let names = || self.0.specs.iter().map(|spec| spec.name.as_str());
        let near = names()
            .map(|known| (strsim::jaro_winkler(known, &name), known))
            .filter(|(score, _)| *score >= 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let listed: Vec<_> = names().take(LISTED).map(|known| format!("`{known}`")).collect();
        let mut there = listed.join(", ");
        if let more @ 1.. = self.0.specs.len() - listed.len() {
            there.push_str(&format!(" and {more} more"));
        }
        match near {
            _ if self.is_empty() => format!("unknown tool `{name}` (answer without tools)"),
            None => format!("unknown tool `{name}` (available: {there})"),
            Some((_, near)) => {
                format!("unknown tool `{name}` (did you mean `{near}`? available: {there})")
            }
        }
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.specs.iter().map(|spec| spec.name.as_str());
        f.write_str("ToolSet ")?;
        f.debug_set().entries(names).finish()
    }
}

/// Builds a [`ToolSet`].
#[derive(Default)]
#[must_use = "a builder has no effect until `build`"]
pub struct ToolSetBuilder {
    tools: Vec<(Arc<dyn Tool>, &'static Location<'static>)>,
}

impl ToolSetBuilder {
    /// Adds a tool.
    #[track_caller]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.tools.push((Arc::new(tool), Location::caller()));
        self
    }

    /// Adds several tools of one type.
    #[track_caller]
    pub fn with_all(mut self, tools: impl IntoIterator<Item = impl Tool>) -> Self {
        for tool in tools {
            self = self.with(tool);
        }
        self
    }

    /// Builds the set.
    ///
    /// # Errors
    ///
    /// Reports every tool whose name is already used, or that providers do not accept: a name must
    /// be 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`, and the type of the input schema
    /// must be `object`.
    pub fn build(self) -> Result<ToolSet, ToolSetError> {
        let mut set = Inner::default();
        let mut problems = Vec::new();
        for (tool, at) in self.tools {
            let spec = tool.spec();
            let name = &spec.name;
            if !is_legal(name.as_str()) {
                problems.push(format!(
                    "`{name}` is not a valid tool name (use 1 to 64 characters of `a-z`, `A-Z`, \
                     `0-9`, `_` and `-`), at {at}"
                ));
            }
            if spec.input_schema["type"] != "object" {
                problems.push(format!(
                    "the input schema of `{name}` is not of type `object` (make its argument a \
                     struct), at {at}"
                ));
            }
            let index = set.tools.len();
            if set.index.insert(name.clone(), index).is_some() {
                problems.push(format!(
                    "tool `{name}` is added twice (rename or remove one), the second at {at}"
                ));
            }
            set.specs.push(spec);
            set.tools.push(tool);
        }
        if problems.is_empty() {
            Ok(ToolSet(Arc::new(set)))
        } else {
            Err(ToolSetError { problems })
        }
    }
}

impl fmt::Debug for ToolSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSetBuilder").field("tools", &self.tools.len()).finish()
    }
}

fn is_legal(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME).contains(&name.len()) && name.bytes().all(legal)
}

/// A [`ToolSet`] that cannot be built: every problem, with where the tool was added.
#[derive(Debug, thiserror::Error)]
#[error("invalid tool set: {}", problems.join("; "))]
pub struct ToolSetError {
    problems: Vec<String>,
}

impl ToolSetError {
    /// The problems, one message each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

#[cfg(test)]
mod tests;
