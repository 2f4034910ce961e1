//! The loop of the `approval` program: a letter that leaves only once a person has approved it.
//!
//! [`letters`] is the loop; [`program`] starts it, lists what waits, and answers, each in a process
//! of its own.

#![deny(clippy::wildcard_enum_match_arm)]

mod outbox;
pub mod program;

use harness::prelude::*;
use harness::{Answered, BuildError};
use schemars::JsonSchema;

pub use outbox::Outbox;

/// A letter.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// What it says.
    pub text: String,
    /// What was decided about it.
    pub decision: Option<Decision>,
    /// Who decided.
    pub by: Option<String>,
    /// The line of the outbox that it became.
    pub sent: Option<String>,
}

/// May this letter leave?
#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Decision)]
pub struct Approve {
    /// What it says.
    pub text: String,
}

/// The answer to [`Approve`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Whether it may.
    pub approved: bool,
    /// Why, or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the steps use and nothing saves.
#[derive(Context, Debug)]
pub struct Ctx {
    /// Where letters go.
    #[slot(required)]
    pub outbox: Outbox,
}

/// The steps.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Looks through the letter.
    Check,
    /// Asks a person.
    Approve,
    /// Sends it.
    Send,
}

/// What was decided.
#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It may leave.
    Approved,
    /// It may not.
    Rejected,
}

/// Declares the loop.
///
/// # Errors
/// If the loop is not sound, which a test rules out.
pub fn letters() -> Result<Harness<Ctx, Letter>, BuildError> {
    Harness::<Ctx, Letter>::builder("approval")
        .start(Step::Check)
        .steps(|define, step| match step {
            Step::Check => define.run(check).then(Step::Approve),
            Step::Approve => define.ask(ask).answer(hear).route(decided, |said| match said {
                Decided::Approved => to(Step::Send),
                Decided::Rejected => end(),
            }),
            Step::Send => define.run(send).end(),
        })
        .build()
}

async fn check(letter: View<Letter>, _cx: Cx<Ctx>) -> StepResult<Letter> {
    match letter.text.trim() {
        "" => Err(StepError::fatal("the letter is empty (say something)")),
        text => Ok(Letter::update().text(text)),
    }
}

async fn ask(letter: View<Letter>, _cx: Cx<Ctx>) -> Result<Approve, StepError> {
    Ok(Approve { text: letter.text.clone() })
}

async fn hear(_: View<Letter>, _cx: Cx<Ctx>, said: Answered<Approve>) -> StepResult<Letter> {
    Ok(Letter::update().decision(Some(said.answer)).by(said.by))
}

fn decided(letter: &Letter) -> Decided {
    match &letter.decision {
        Some(decision) if decision.approved => Decided::Approved,
        Some(_) | None => Decided::Rejected,
    }
}

/// A process that is killed while it sends leaves the next one in doubt whether the letter has
/// left. The outbox knows, by the name of the operation.
async fn send(letter: View<Letter>, cx: Cx<Ctx>) -> StepResult<Letter> {
    let (op, text, outbox) = (cx.op_id().to_string(), letter.text.clone(), cx.outbox.clone());
    let (same_op, same_outbox) = (op.clone(), outbox.clone());
    let line = cx
        .once("send", async move || Ok(outbox.send(&op, &text).await?))
        .at_most_once()
        .probe(async move || Ok(same_outbox.find(&same_op).await?))
        .await?;
    Ok(Letter::update().sent(Some(line)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loop_is_sound() {
        super::letters().unwrap();
    }
}
