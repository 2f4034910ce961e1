//! Errors of tools and of their arguments.

use super::{ToolFailure, ToolOutcome};
use crate::llm::ToolName;
use std::error::Error;
use std::fmt;

/// The arguments of a tool call are not JSON, or do not match the type requested.
///
/// Returned by a tool with `?`, it becomes [`ToolFailure::BadArguments`], and the model receives
/// the expected schema. The message may quote the invalid value.
#[derive(Debug)]
pub struct BadArguments {
    tool: ToolName,
    cause: serde_json::Error,
}

impl BadArguments {
    pub(super) fn new(tool: ToolName, cause: serde_json::Error) -> Self {
        Self { tool, cause }
    }

    /// The tool that was called.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Whether the text is not valid JSON.
    pub fn is_syntax(&self) -> bool {
        !self.cause.is_data()
    }

    /// The cause, without the remedy.
    pub(super) fn reason(&self) -> String {
        let Self { tool, cause } = self;
        let how = if self.is_syntax() { "are not valid JSON" } else { "do not match" };
        format!("the arguments of `{tool}` {how}: {cause}")
    }
}

impl fmt::Display for BadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (call it again with arguments that match its input schema)", self.reason())
    }
}

/// The message contains the parser's error, so it is not a source.
impl Error for BadArguments {}

/// The error of a tool: any error, by `?`, or a text.
///
/// The error and its sources are sent to the model, so they must hold no secrets. It does not
/// implement [`Error`], so that every error can convert into it.
///
/// ```
/// use harness::llm::{ToolError, ToolFailure};
///
/// fn parse(text: &str) -> Result<u32, ToolError> {
///     if text.is_empty() {
///         return Err(ToolError::new("there is nothing to parse (give a number)"));
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(parse("").unwrap_err().failure(), ToolFailure::Errored);
/// ```
#[derive(Debug)]
pub struct ToolError(Box<dyn Error + Send + Sync>);

impl ToolError {
    /// Creates an error from a text for the model.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// Creates an error that becomes this outcome, for a tool that knows more than a text: that it is
    /// unknown whether the call took effect, or an error with an image.
    ///
    /// ```
    /// use harness::llm::{ToolError, ToolOutcome};
    ///
    /// let error = ToolError::outcome(ToolOutcome::InDoubt);
    /// assert!(error.to_string().starts_with("the call was started and its result is not known"));
    /// ```
    pub fn outcome(outcome: ToolOutcome) -> Self {
        Self(Box::new(Known(outcome)))
    }

    /// The failure that the call gets as its outcome.
    pub fn failure(&self) -> ToolFailure {
        match (self.bad_arguments(), self.known()) {
            (Some(_), _) => ToolFailure::BadArguments,
            (None, Some(ToolOutcome::Failed { kind, .. })) => *kind,
            (None, _) => ToolFailure::Errored,
        }
    }

    pub(super) fn known(&self) -> Option<&ToolOutcome> {
        self.0.downcast_ref::<Known>().map(|known| &known.0)
    }

    pub(super) fn bad_arguments(&self) -> Option<&BadArguments> {
        self.0.downcast_ref()
    }
}

/// An outcome on its way to the set of tools.
#[derive(Debug)]
struct Known(ToolOutcome);

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.content().text().unwrap_or_else(|| self.0.kind().to_owned()))
    }
}

impl Error for Known {}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

/// The error and its sources, outermost first, separated by colons.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(source) = next {
            write!(f, ": {source}")?;
            next = source.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the page")]
    struct Page(#[source] std::num::ParseIntError);

    #[test]
    fn the_text_holds_the_sources() {
        let error = ToolError::from(Page("x".parse::<u8>().unwrap_err()));
        insta::assert_snapshot!(error, @"cannot read the page: invalid digit found in string");
        assert_eq!(error.failure(), ToolFailure::Errored);
    }
}
