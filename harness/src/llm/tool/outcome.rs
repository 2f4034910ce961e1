//! Outcomes of tool calls.

use crate::llm::Content;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The outcome of a tool call. Every call gets exactly one.
///
/// ```
/// use harness::llm::ToolOutcome;
///
/// let outcome = ToolOutcome::Denied { reason: Some("not on a Friday".into()) };
/// assert!(!outcome.is_ok());
/// assert_eq!(
///     outcome.content().text().as_deref(),
///     Some("the call was denied and has not run: not on a Friday"),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The tool ran and returned a result.
    Ok(Content),
    /// The tool did not run or did not finish. The model may correct the call.
    Failed {
        /// What went wrong.
        kind: ToolFailure,
        /// The error for the model.
        content: Content,
    },
    /// A person or a policy denied the call. It did not run.
    Denied {
        /// The reason, if there is one.
        reason: Option<String>,
    },
    /// The model was given instructions in place of a result. The tool did not run.
    Steered {
        /// The instructions for the model.
        content: Content,
    },
    /// The call was started, and it is unknown whether it took effect. It is never run again.
    InDoubt,
    /// The call was skipped. It did not run.
    Skipped,
}

/// Why a tool call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFailure {
    /// There is no tool of that name.
    UnknownTool,
    /// The arguments are not JSON or do not match the tool.
    BadArguments,
    /// The tool returned an error.
    Errored,
    /// The tool panicked.
    Panicked,
    /// The tool, which changes nothing, took longer than its time limit.
    TimedOut,
}

impl ToolFailure {
    /// The name that it has in JSON, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::BadArguments => "bad_arguments",
            Self::Errored => "errored",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
        }
    }
}

impl ToolOutcome {
    /// Creates an outcome from a tool's result.
    pub fn ok(content: impl Into<Content>) -> Self {
        Self::Ok(content.into())
    }

    /// Creates a failure from its kind and the error for the model.
    pub fn failed(kind: ToolFailure, content: impl Into<Content>) -> Self {
        Self::Failed { kind, content: content.into() }
    }

    /// Whether the tool ran and returned a result.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }

    /// The name of the outcome, as in its JSON: `ok`, `failed`, `denied`, `steered`, `in_doubt` or
    /// `skipped`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Failed { .. } => "failed",
            Self::Denied { .. } => "denied",
            Self::Steered { .. } => "steered",
            Self::InDoubt => "in_doubt",
            Self::Skipped => "skipped",
        }
    }

    /// The content for the model. Outcomes without content have a fixed text.
    pub fn content(&self) -> Cow<'_, Content> {
        let text = match self {
            Self::Ok(content) | Self::Failed { content, .. } | Self::Steered { content } => {
                return Cow::Borrowed(content);
            }
            Self::Denied { reason: None } => "the call was denied and has not run".to_owned(),
            Self::Denied { reason: Some(reason) } => {
                format!("the call was denied and has not run: {reason}")
            }
            Self::InDoubt => "the call was started and its result is not known, it will not be \
                              run again (check whether it took effect before calling it again)"
                .to_owned(),
            Self::Skipped => "the call was skipped and has not run".to_owned(),
        };
        Cow::Owned(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(outcome: &ToolOutcome) -> String {
        outcome.content().text().unwrap()
    }

    #[test]
    fn every_outcome_has_content_for_the_model() {
        assert_eq!(text(&ToolOutcome::ok("42")), "42");
        assert_eq!(text(&ToolOutcome::failed(ToolFailure::Errored, "no network")), "no network");
        let content = "use the cache".into();
        assert_eq!(text(&ToolOutcome::Steered { content }), "use the cache");
        insta::assert_snapshot!(
            text(&ToolOutcome::Denied { reason: None }),
            @"the call was denied and has not run"
        );
        insta::assert_snapshot!(
            text(&ToolOutcome::InDoubt),
            @"the call was started and its result is not known, it will not be run again (check whether it took effect before calling it again)"
        );
        insta::assert_snapshot!(text(&ToolOutcome::Skipped), @"the call was skipped and has not run");
    }

    #[test]
    fn outcomes_are_tagged_in_json() {
        let outcomes = [
            ToolOutcome::ok("42"),
            ToolOutcome::failed(ToolFailure::BadArguments, "no"),
            ToolOutcome::Denied { reason: None },
            ToolOutcome::InDoubt,
        ];
        let text = serde_json::to_string(&outcomes).unwrap();
        insta::assert_snapshot!(text, @r#"[{"ok":[{"text":"42"}]},{"failed":{"kind":"bad_arguments","content":[{"text":"no"}]}},{"denied":{"reason":null}},"in_doubt"]"#);
        assert_eq!(serde_json::from_str::<Vec<ToolOutcome>>(&text).unwrap(), outcomes);
    }
}
