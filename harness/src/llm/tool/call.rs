//! A model's wish to use a tool.

use super::BadArguments;
use crate::llm::{ToolCallId, ToolName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model's wish to use a tool.
///
/// The arguments stay the text that the model wrote: they go back to the model byte for byte, and
/// are parsed only when somebody asks, so that malformed text is an outcome the model can repair
/// and not a lost reply.
///
/// ```
/// use harness::llm::ToolCall;
///
/// #[derive(serde::Deserialize)]
/// struct Search { query: String }
///
/// let call = ToolCall::new("call-1-0", "search", r#"{"query": "rust"}"#);
/// assert_eq!(call.args::<Search>()?.query, "rust");
/// # Ok::<(), harness::llm::BadArguments>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What an outcome names the call by.
    pub id: ToolCallId,
    /// The tool that is meant.
    pub name: ToolName,
    /// The arguments as the model wrote them; JSON if it kept to the protocol.
    pub arguments: String,
}

impl ToolCall {
    /// Makes a call from its id, the tool's name and the text of the arguments.
    pub fn new(
        id: impl Into<ToolCallId>,
        name: impl Into<ToolName>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    /// The arguments as a `T`. Blank text counts as `{}`: some models write nothing for a tool
    /// without parameters.
    ///
    /// # Errors
    ///
    /// Fails when the text is not JSON or does not fit `T`.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, BadArguments> {
        let text = match self.arguments.trim() {
            "" => "{}",
            text => text,
        };
        serde_json::from_str(text).map_err(|cause| BadArguments::new(self.name.clone(), cause))
    }

    /// The arguments as JSON, under the rules of [`args`](Self::args).
    ///
    /// # Errors
    ///
    /// Fails when the text is not JSON.
    pub fn json(&self) -> Result<Value, BadArguments> {
        self.args()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    struct Search {
        #[allow(dead_code)]
        query: String,
    }

    #[test]
    fn blank_arguments_are_an_empty_object() {
        for blank in ["", "  \n"] {
            assert_eq!(ToolCall::new("c", "t", blank).json().unwrap(), json!({}));
        }
    }

    #[test]
    fn malformed_arguments_survive_storage_byte_for_byte() {
        let call = ToolCall::new("c", "t", "{\"query\" :\t\"a");
        let stored = serde_json::to_string(&call).unwrap();
        assert_eq!(serde_json::from_str::<ToolCall>(&stored).unwrap(), call);
    }

    #[test]
    fn bad_arguments_say_what_is_wrong() {
        insta::assert_snapshot!(
            ToolCall::new("c", "search", "{}").args::<Search>().unwrap_err(),
            @"the arguments of `search` do not fit: missing field `query` at line 1 column 2 (call it again with arguments that match its input schema)"
        );
        insta::assert_snapshot!(
            ToolCall::new("c", "search", "{\"query").json().unwrap_err(),
            @"the arguments of `search` are not valid JSON: EOF while parsing a string at line 1 column 7 (call it again with arguments that match its input schema)"
        );
    }
}
