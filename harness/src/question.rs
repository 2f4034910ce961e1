//! Questions that a loop asks and waits for.

mod schema;

#[allow(unused_imports, reason = "for sessions opened without their types")]
pub(crate) use schema::mismatch;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
/// fn answer<Q: Question>(json: &str) -> serde_json::Result<Q::Answer> {
///     serde_json::from_str(json)
/// }
/// assert!(answer::<MayProceed>("true")?);
/// assert_eq!(MayProceed::NAME, "proceed");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a question",
    note = "write `#[derive(Question, Serialize, Deserialize)]` and `#[question(answer = ..)]` above the type"
)]
pub trait Question: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The stored name of the question.
    const NAME: &'static str;

    /// The type of the answer.
    type Answer: Serialize + DeserializeOwned + schemars::JsonSchema + Send + Sync + 'static;
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
