//! The tools a model may call, by name.

use super::{Tool, ToolCall, ToolFailure, ToolOutcome, ToolSpec};
use crate::llm::{Message, ToolName};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;

/// How long a tool's name may be.
const NAME: usize = 64;

/// How many tools a model is reminded of when it calls one that is not there.
const LISTED: usize = 20;

/// The tools a model may call, by name. Immutable, and a clone shares them.
///
/// The default is no tool at all. Tools keep the order in which they were given, so that a provider
/// sees the same request each time and can cache it.
///
/// ```
/// use harness::llm::{ToolCall, ToolSet, Transcript, Turn, tool, user};
/// use serde_json::Value;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tools = ToolSet::builder()
///     .with(tool("now", "Tells the time", |_: Value| async { Ok("noon") }))
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
    /// The tool at index i is described by the spec at index i.
    tools: Vec<Arc<dyn Tool>>,
    index: HashMap<ToolName, usize>,
}

impl ToolSet {
    /// Starts a set.
    pub fn builder() -> ToolSetBuilder {
        ToolSetBuilder::default()
    }

    /// What a model is told, in the order in which the tools were given.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.0.specs
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// Runs one call. Whatever goes wrong is an outcome, a panic of the tool included.
    pub async fn call(&self, call: &ToolCall) -> ToolOutcome {
        let Some(&index) = self.0.index.get(&call.name) else {
            return ToolOutcome::failed(ToolFailure::UnknownTool, self.unknown(&call.name));
        };
        let tool: &dyn Tool = &*self.0.tools[index];
        // The block makes a panic before the first await a panic of the future.
        let run = async { tool.call(call).await };
        let error = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(content)) => return ToolOutcome::Ok(content),
            Ok(Err(error)) => error,
            Err(_) => {
                let text = format!("tool `{}` panicked", call.name);
                return ToolOutcome::failed(ToolFailure::Panicked, text);
            }
        };
        let text = match error.bad_arguments() {
            Some(bad) => {
                let schema = &self.0.specs[index].input_schema;
                format!("{} (call it again with arguments that match {schema})", bad.reason())
            }
            None => error.to_string(),
        };
        ToolOutcome::failed(error.failure(), text)
    }

    /// Runs all calls at once, on the task that awaits, and gives their outcomes in call order,
    /// ready to be folded into the transcript that made the calls.
    ///
    /// Dropping the future drops the tools where they are.
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

    /// What a model is told that called a tool which is not there. Neither the name it made up nor
    /// the list of what there is may grow without bound.
    fn unknown(&self, name: &ToolName) -> String {
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
            _ if self.is_empty() => format!("there is no tool `{name}` (answer without tools)"),
            None => format!("there is no tool `{name}` (there are {there})"),
            Some((_, near)) => {
                format!("there is no tool `{name}` (did you mean `{near}`? there are {there})")
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

/// Collects the tools of a [`ToolSet`].
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
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

    /// Makes the set.
    ///
    /// # Errors
    ///
    /// Reports every tool whose name is taken or that no provider would accept (names are 1 to 64
    /// ASCII letters, digits, `_` or `-`; the type of the input schema is `object`).
    pub fn build(self) -> Result<ToolSet, ToolSetError> {
        let mut set = Inner::default();
        let mut problems = Vec::new();
        for (tool, at) in self.tools {
            let spec = tool.spec();
            let name = &spec.name;
            if !is_legal(name.as_str()) {
                problems.push(format!(
                    "`{name}` is not a tool name (use 1 to 64 ASCII letters, digits, `_` or `-`), at {at}"
                ));
            }
            if spec.input_schema["type"] != "object" {
                problems.push(format!(
                    "the input schema of `{name}` is not of type `object` (make its argument a struct), at {at}"
                ));
            }
            let index = set.tools.len();
            if set.index.insert(name.clone(), index).is_some() {
                problems.push(format!(
                    "there are two tools `{name}` (rename or remove one), the second at {at}"
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

/// Why a [`ToolSet`] cannot be built: every problem, each with where the tool was added.
#[derive(Debug, thiserror::Error)]
#[error("the tools do not make a set: {}", problems.join("; "))]
pub struct ToolSetError {
    problems: Vec<String>,
}

impl ToolSetError {
    /// The problems, one text each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

#[cfg(test)]
mod tests;
