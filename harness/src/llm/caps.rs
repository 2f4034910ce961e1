//! What a model can do.

use serde::{Deserialize, Serialize};

/// What a model can do. The default is nothing but text, with an unknown context size.
///
/// It informs, and forbids nothing: an adapter fails with
/// [`Unsupported`](super::LlmErrorKind::Unsupported) if it cannot express a request.
///
/// ```
/// use harness::llm::Caps;
///
/// let caps = Caps::default().tools(true).context_tokens(200_000);
/// assert!(caps.tools && !caps.images);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Caps {
    /// Replies arrive in parts.
    pub streaming: bool,
    /// It calls tools.
    pub tools: bool,
    /// It can be made to call a tool, or one by name.
    pub tool_choice: bool,
    /// It calls several tools in one turn.
    pub parallel_calls: bool,
    /// Its replies can follow a JSON schema.
    pub structured_output: bool,
    /// It reads images.
    pub images: bool,
    /// It reads documents.
    pub documents: bool,
    /// It reasons before it replies.
    pub reasoning: bool,
    /// The most tokens of a request and its reply, if known.
    pub context_tokens: Option<u64>,
}

macro_rules! setters {
    ($($name:ident),+) => {$(
        #[doc = concat!("Sets `", stringify!($name), "`.")]
        #[must_use]
        pub const fn $name(mut self, can: bool) -> Self {
            self.$name = can;
            self
        }
    )+};
}

macro_rules! flags {
    ($($name:ident),+) => {
        impl Caps {
            setters!($($name),+);

            /// What both can do.
            #[must_use]
            pub fn and(self, other: Self) -> Self {
                let smaller = match (self.context_tokens, other.context_tokens) {
                    (Some(one), Some(two)) => Some(one.min(two)),
                    _ => None,
                };
                Self { $($name: self.$name && other.$name,)+ context_tokens: smaller }
            }

            /// What at least one of the two can do.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                let context_tokens = self.context_tokens.max(other.context_tokens);
                Self { $($name: self.$name || other.$name,)+ context_tokens }
            }

            /// The names of what `needed` has and this has not. A context of unknown size is large
            /// enough.
            ///
            /// ```
            /// use harness::llm::Caps;
            ///
            /// let needed = Caps::default().tools(true).images(true);
            /// assert_eq!(Caps::default().tools(true).missing(needed), ["images"]);
            /// ```
            pub fn missing(self, needed: Self) -> Vec<&'static str> {
                let mut missing = Vec::new();
                $(if needed.$name && !self.$name {
                    missing.push(stringify!($name));
                })+
                if self.context_tokens.is_some_and(|has| Some(has) < needed.context_tokens) {
                    missing.push("context_tokens");
                }
                missing
            }
        }
    };
}

flags!(
    streaming,
    tools,
    tool_choice,
    parallel_calls,
    structured_output,
    images,
    documents,
    reasoning
);

impl Caps {
    /// Sets `context_tokens`.
    #[must_use]
    pub const fn context_tokens(mut self, tokens: u64) -> Self {
        self.context_tokens = Some(tokens);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_can_do_and_what_one_can() {
        let one = Caps::default().tools(true).images(true).context_tokens(8);
        let two = Caps::default().tools(true).streaming(true).context_tokens(5);
        assert_eq!(one.and(two), Caps::default().tools(true).context_tokens(5));
        let either = Caps::default().tools(true).images(true).streaming(true).context_tokens(8);
        assert_eq!(one.or(two), either);
        assert_eq!(one.and(Caps::default()), Caps::default());
        assert_eq!(one.missing(two), ["streaming"]);
        assert_eq!(two.missing(one), ["images", "context_tokens"]);
        assert!(Caps::default().missing(Caps::default().context_tokens(9)).is_empty());
    }
}
