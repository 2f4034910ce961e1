//! What a loop asks and waits for.

mod schema;

#[allow(unused_imports, reason = "for sessions whose types are elsewhere")]
pub(crate) use schema::mismatch;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
/// - `name = "approve"`: the name under which the question is stored; without
///   it, the name of the type in snake case.
pub use harness_macros::Question;

/// A typed question that a loop waits on.
///
/// Both the question and its answer are stored; the schema of the answer goes
/// to whoever asks the person.
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
    /// The name under which the question is stored.
    const NAME: &'static str;

    /// What is to be answered.
    type Answer: Serialize + DeserializeOwned + schemars::JsonSchema + Send + Sync + 'static;
}

/// What a step asks, inline, when nobody knows whether an effect happened that must not happen
/// twice: see [`InDoubt::Ask`](crate::InDoubt::Ask). Each answer settles one doubt.
///
/// ```
/// use harness::Question;
/// use harness::question::EffectInDoubt;
///
/// assert_eq!(EffectInDoubt::NAME, "effect_in_doubt");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EffectInDoubt {
    /// The effect's key.
    pub key: String,
    /// The step it belongs to.
    pub step: String,
    /// The entry into that step, as [`OpId`](crate::OpId) prints it: what the effect may have left
    /// behind where it acts.
    pub op_id: String,
}

// Not derived, for the attribute: without it the compiler offers this question where somebody's own
// lacks its derive.
#[diagnostic::do_not_recommend]
impl Question for EffectInDoubt {
    const NAME: &'static str = "effect_in_doubt";
    type Answer = Doubt;
}

/// What to do about an effect in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// It did not happen: run it.
    Repeat,
    /// The step is to fail.
    Fail,
    /// It happened.
    Done {
        /// Its result, as the effect would have returned it.
        result: Value,
    },
}
