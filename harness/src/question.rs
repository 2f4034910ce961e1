//! What a loop asks and waits for.

use serde::{Serialize, de::DeserializeOwned};

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
