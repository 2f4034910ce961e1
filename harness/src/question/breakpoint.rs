//! The question of a breakpoint.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Question;

/// The question that a run asks at a breakpoint: see
/// [`RunRequest::break_before`](crate::RunRequest::break_before) and
/// [`break_after`](crate::RunRequest::break_after).
///
/// ```
/// use harness::Question;
/// use harness::question::{Breakpoint, BreakpointAnswer};
///
/// assert_eq!(Breakpoint::NAME, "breakpoint");
/// assert_eq!(serde_json::to_value(BreakpointAnswer::Continue)?, "continue");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Breakpoint {
    /// The step that has the breakpoint.
    pub step: String,
    /// Whether the step is about to begin or has committed.
    pub at: BreakpointAt,
}

impl Breakpoint {
    pub(crate) fn new(step: &str, at: BreakpointAt) -> Self {
        Self { step: step.to_owned(), at }
    }
}

/// On which side of its step a breakpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakpointAt {
    /// The step is about to begin.
    Before,
    /// The step has committed.
    After,
}

impl BreakpointAt {
    /// The key of the question at its position.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Before => "breakpoint/before",
            Self::After => "breakpoint/after",
        }
    }
}

// Not derived, as for `EffectInDoubt`.
#[diagnostic::do_not_recommend]
impl Question for Breakpoint {
    const NAME: &'static str = "breakpoint";
    type Answer = BreakpointAnswer;
}

/// What to do at a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreakpointAnswer {
    /// Continue the turn.
    Continue,
}

// What the derive makes, without which no program needs to build it.
impl JsonSchema for BreakpointAnswer {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("BreakpointAnswer")
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Borrowed(concat!(module_path!(), "::BreakpointAnswer"))
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What to do at a breakpoint.",
            "oneOf": [
                {"description": "Continue the turn.", "type": "string", "const": "continue"},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    /// The schema is stored, and part of the ids of interrupts.
    #[test]
    fn the_schema_of_the_answer_is_the_derived_one() {
        /// What to do at a breakpoint.
        #[derive(schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(dead_code, reason = "only its schema is read")]
        enum BreakpointAnswer {
            /// Continue the turn.
            Continue,
        }
        let schema = schemars::schema_for!(super::BreakpointAnswer);
        assert_eq!(schema, schemars::schema_for!(BreakpointAnswer));
    }
}
