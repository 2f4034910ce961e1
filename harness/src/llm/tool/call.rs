//! Tool calls.

use super::BadArguments;
use crate::llm::{ToolCallId, ToolName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call requested by a model.
///
/// The arguments are stored as the text that the model wrote. They are sent back to the model byte
/// for byte and parsed only on request. So malformed arguments cause an outcome that the model can
/// correct, not a lost reply.
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
    /// The id that an outcome refers to.
    pub id: ToolCallId,
    /// The name of the tool.
    pub name: ToolName,
    /// The arguments as the model wrote them. They are JSON if the model follows the protocol.
    pub arguments: String,
}

impl ToolCall {
    /// Creates a call from its id, the tool's name and the text of the arguments.
    pub fn new(
        id: impl Into<ToolCallId>,
        name: impl Into<ToolName>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    /// The arguments as a `T`. Blank text counts as `{}`, because some models write nothing for a
    /// tool without parameters.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON or does not decode as `T`.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, BadArguments> {
        let text = match self.arguments.trim() {
            "" => "{}",
            text => text,
        };
        serde_json::from_str(text).map_err(|cause| BadArguments::new(self.name.clone(), cause))
    }

    /// The arguments as JSON, by the rules of [`args`](Self::args).
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON.
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
    fn bad_arguments_report_the_cause() {
        insta::assert_snapshot!(
            ToolCall::new("c", "search", "{}").args::<Search>().unwrap_err(),
            @"the arguments of `search` do not match: missing field `query` at line 1 column 2 (call it again with arguments that match its input schema)"
        );
        insta::assert_snapshot!(
            ToolCall::new("c", "search", "{\"query").json().unwrap_err(),
            @"the arguments of `search` are not valid JSON: EOF while parsing a string at line 1 column 7 (call it again with arguments that match its input schema)"
        );
    }
}
