//! Names and ids: distinct types for distinct strings.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            #[doc = concat!("Creates a `", stringify!($name), "` from its text.")]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// The id of a tool call, from the model or, if its protocol has none, from the adapter.
    ///
    /// Ids are unique within a transcript, but not across transcripts.
    ///
    /// ```
    /// use harness::llm::ToolCallId;
    ///
    /// assert_eq!(ToolCallId::from("call-1-0").as_str(), "call-1-0");
    /// ```
    ToolCallId;

    /// The name of a tool.
    ///
    /// ```
    /// use harness::llm::ToolName;
    ///
    /// assert_eq!(ToolName::from("search").to_string(), "search");
    /// ```
    ToolName;

    /// The wire protocol of an opaque block, such as `anthropic-messages`.
    ///
    /// ```
    /// use harness::llm::Protocol;
    ///
    /// assert_eq!(Protocol::from("anthropic-messages").as_str(), "anthropic-messages");
    /// ```
    Protocol;

    /// The id of a model call, set by the caller.
    ///
    /// ```
    /// use harness::llm::CallId;
    ///
    /// assert_eq!(CallId::from("think-7").as_str(), "think-7");
    /// ```
    CallId;
}

/// The id of a model: its provider and its name.
///
/// ```
/// use harness::llm::ModelId;
///
/// let id = ModelId::new("ollama", "llama3.2");
/// assert_eq!(id.provider(), "ollama");
/// assert_eq!(id.to_string(), "ollama/llama3.2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelId {
    provider: String,
    model: String,
}

impl ModelId {
    /// Creates the id of a provider's model.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// The provider of the model.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model's name at its provider.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_string_in_json() {
        let id = ToolCallId::new("call-1-0");
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""call-1-0""#);
        assert_eq!(serde_json::from_str::<ToolCallId>(r#""call-1-0""#).unwrap(), id);
    }

    #[test]
    fn a_model_id_keeps_slashes_in_the_model_name() {
        let id = ModelId::new("openrouter", "meta/llama");
        assert_eq!(id.model(), "meta/llama");
        assert_eq!(id.to_string(), "openrouter/meta/llama");
    }
}
