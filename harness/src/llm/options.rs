//! Options of requests.

use super::{LlmError, LlmErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether a model may or must call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice<N = String> {
    /// It decides.
    #[default]
    Auto,
    /// It calls none.
    None,
    /// It calls at least one.
    Required,
    /// It calls the tool of this name.
    Tool(N),
}

impl ToolChoice<&str> {
    /// The same with a name of its own.
    pub fn to_owned(self) -> ToolChoice {
        match self {
            Self::Auto => ToolChoice::Auto,
            Self::None => ToolChoice::None,
            Self::Required => ToolChoice::Required,
            Self::Tool(name) => ToolChoice::Tool(name.to_owned()),
        }
    }
}

/// The JSON schema that a reply has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ResponseSchema<'a> {
    /// Its name, of `a-z`, `A-Z`, `0-9`, `_` and `-`.
    pub name: &'a str,
    /// The schema.
    pub schema: &'a Value,
}

impl<'a> ResponseSchema<'a> {
    pub(super) fn new(name: &'a str, schema: &'a Value) -> Self {
        Self { name, schema }
    }
}

/// How much a model reasons before it replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// Not at all.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// Moderately.
    Medium,
    /// Much.
    High,
}

/// Up to where a provider caches a request. Order: tools, system prompt, entries.
///
/// A mark saves cost and changes no reply, so protocols that cache by themselves ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheMark {
    /// Up to the last tool.
    Tools,
    /// Up to the end of the system prompt.
    System,
    /// Up to the end of this entry of the transcript.
    Entry(usize),
}

/// Options of single protocols, by the name of the protocol.
///
/// An adapter adds its own options to the body of the request, and ignores those of other
/// protocols. Objects are merged by field, lists are appended to, and everything else is replaced. A
/// field that the adapter depends on, such as the messages, cannot be set.
///
/// ```
/// use harness::llm::Options;
/// use serde_json::json;
///
/// let options = Options::new().with("anthropic-messages", json!({"top_k": 5}));
/// assert_eq!(options.of("anthropic-messages")?.map(|own| own.len()), Some(1));
/// assert!(options.of("openai-chat")?.is_none());
/// # Ok::<(), harness::llm::LlmError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(Map<String, Value>);

impl Options {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of a protocol: a JSON object.
    #[must_use]
    pub fn with(mut self, protocol: impl Into<String>, options: Value) -> Self {
        self.0.insert(protocol.into(), options);
        self
    }

    /// The options of a protocol.
    ///
    /// # Errors
    ///
    /// [`LlmErrorKind::InvalidRequest`] if they are not a JSON object.
    pub fn of(&self, protocol: &str) -> Result<Option<&Map<String, Value>>, LlmError> {
        match self.0.get(protocol) {
            None => Ok(None),
            Some(Value::Object(options)) => Ok(Some(options)),
            Some(_) => Err(LlmError::new(LlmErrorKind::InvalidRequest)
                .with_detail(format!("the options of `{protocol}` are not a JSON object"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_other_protocols_are_not_seen() {
        let options = Options::new().with("a", json!({"x": 1})).with("b", json!(7));
        assert_eq!(options.of("a").unwrap().unwrap()["x"], 1);
        assert!(options.of("c").unwrap().is_none());
        let error = options.of("b").unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::InvalidRequest);
    }
}
