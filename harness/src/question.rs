//! Questions that a loop asks and waits for.

mod breakpoint;
mod schema;

use std::borrow::Cow;

pub use breakpoint::{Breakpoint, BreakpointAnswer, BreakpointAt};
#[allow(unused_imports, reason = "for sessions opened without their types")]
pub(crate) use schema::{DENIED, mismatch};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::Stored;
use crate::store::FormerHolder;

/// Derives [`Question`](trait@Question).
///
/// ```
/// use harness::Question;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, schemars::JsonSchema)]
/// enum Decision { Approve, Reject }
///
/// #[derive(Question, Serialize, Deserialize)]
/// #[question(answer = Decision)]
/// struct ApproveCall { tool: String }
///
/// assert_eq!(ApproveCall::NAME, "approve_call");
/// ```
///
/// # Options
///
/// - `answer = Decision` (required): the type of the answer.
/// - `name = "approve"`: the stored name of the question. The default is the name of the type in
///   snake case.
pub use harness_macros::Question;

/// A typed question that a loop waits for.
///
/// The question and its answer are stored. The schema of the answer is part of the interrupt, for
/// the program that asks the person.
///
/// ```
/// use harness::Question;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Question, Serialize, Deserialize)]
/// #[question(answer = bool, name = "proceed")]
/// struct MayProceed { cost: u32 }
///
/// fn yes<Q: Question<Answer = bool>>(_: &Q) -> Q::Answer {
///     true
/// }
/// assert!(yes(&MayProceed { cost: 70 }));
/// assert_eq!(MayProceed::NAME, "proceed");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a question",
    note = "write `#[derive(Question, Serialize, Deserialize)]` and `#[question(answer = ..)]` above the type"
)]
pub trait Question: Stored + Send + Sync + 'static {
    /// The stored name of the question.
    const NAME: &'static str;

    /// The type of the answer.
    type Answer: Stored + Described + Send + Sync + 'static;
}

/// A type with a JSON schema, which a program that collects answers reads. Every
/// `schemars::JsonSchema` is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON schema, so it cannot be an answer",
    label = "`{Self}` is not `schemars::JsonSchema`",
    note = "write `#[derive(schemars::JsonSchema)]` above `{Self}`, and add `schemars` to the dependencies"
)]
pub trait Described {
    #[doc(hidden)]
    fn schema() -> schemars::Schema;
}

#[diagnostic::do_not_recommend]
impl<T: schemars::JsonSchema> Described for T {
    fn schema() -> schemars::Schema {
        schemars::schema_for!(T)
    }
}

/// The question that a step asks, inline, when it is unknown whether an effect happened that must
/// not happen twice: see [`InDoubt::Ask`](crate::step::InDoubt::Ask). Each answer settles one effect.
///
/// ```
/// use harness::Question;
/// use harness::question::EffectInDoubt;
///
/// assert_eq!(EffectInDoubt::NAME, "effect_in_doubt");
///
/// /// Whether what the outside system shows now is final.
/// fn is_final(asked: &EffectInDoubt) -> bool {
///     use harness::store::FormerHolder;
///     matches!(asked.former, FormerHolder::Dead | FormerHolder::Released)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EffectInDoubt {
    /// The effect's key.
    pub key: String,
    /// The step it belongs to.
    pub step: String,
    /// The entry into that step, as [`OpId`](crate::id::OpId) prints it. The outside system may have
    /// seen it with the effect.
    pub op_id: String,
    /// What is known of the process that began the effect. Unless it is
    /// [dead](FormerHolder::Dead) or has [released](FormerHolder::Released) the session, it may still
    /// finish the effect after it was looked for: make sure that the process has ended before the
    /// answer is [`Doubt::Repeat`].
    #[serde(default)]
    pub former: FormerHolder,
}

// Not derived, for the attribute: without it the compiler suggests this question where a user's
// type lacks its derive.
#[diagnostic::do_not_recommend]
impl Question for EffectInDoubt {
    const NAME: &'static str = "effect_in_doubt";
    type Answer = Doubt;
}

/// What to do with an effect in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// It did not happen: run it again.
    Repeat,
    /// Fail the step.
    Fail,
    /// It happened.
    Done {
        /// Its result, as the effect would have returned it.
        result: Value,
    },
}

// What the derive makes, without which no program needs to build it.
impl JsonSchema for Doubt {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Doubt")
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Borrowed(concat!(module_path!(), "::Doubt"))
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What to do with an effect in doubt.",
            "oneOf": [
                {
                    "description": "It did not happen: run it again.",
                    "type": "string",
                    "const": "repeat",
                },
                {"description": "Fail the step.", "type": "string", "const": "fail"},
                {
                    "description": "It happened.",
                    "type": "object",
                    "properties": {
                        "done": {
                            "type": "object",
                            "properties": {
                                "result": {
                                    "description":
                                        "Its result, as the effect would have returned it.",
                                },
                            },
                            "required": ["result"],
                        },
                    },
                    "required": ["done"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    /// The schema is stored, and part of the ids of interrupts.
    #[test]
    fn the_schema_of_doubt_is_the_derived_one() {
        /// What to do with an effect in doubt.
        #[derive(schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(dead_code, reason = "only its schema is read")]
        enum Doubt {
            /// It did not happen: run it again.
            Repeat,
            /// Fail the step.
            Fail,
            /// It happened.
            Done {
                /// Its result, as the effect would have returned it.
                result: serde_json::Value,
            },
        }
        assert_eq!(schemars::schema_for!(super::Doubt), schemars::schema_for!(Doubt));
    }
}
