//! Announcements that are sent only after a person approves them. Each command is a process of its
//! own: the session waits in a file store between them, and a kill at any point sends no
//! announcement twice.
//!
//! ```text
//! cargo run -p examples --bin approval -- start "Dear all"       # prints the session's id
//! cargo run -p examples --bin approval -- list
//! cargo run -p examples --bin approval -- answer ID approve      # sends it, at most once
//! cargo run -p examples --bin approval -- resume ID              # after a process was killed
//! cargo run -p examples --bin approval -- history ID
//! ```

#![deny(clippy::wildcard_enum_match_arm)]

mod commands;
mod outbox;

use std::process::ExitCode;

use clap::Parser;
use harness::BuildError;
use harness::prelude::*;
use schemars::JsonSchema;

use outbox::Outbox;

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(commands::run(commands::Options::parse()).await)
}

/// The state of a session: one announcement.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Announcement {
    text: String,
    decision: Option<Decision>,
    /// The user who decided.
    by: Option<String>,
    /// Its line in the outbox, once it is sent.
    sent: Option<String>,
}

/// The question: may this announcement be sent?
#[derive(Question, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Decision)]
struct Approve {
    text: String,
}

/// The answer to [`Approve`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Decision {
    approved: bool,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What the steps use and no snapshot contains.
#[derive(Context, Debug)]
struct Ctx {
    #[slot(required)]
    outbox: Outbox,
}

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step { Check, Approve, Send }

#[rustfmt::skip]
#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
enum Decided { Approved, Rejected }

/// Declares the loop.
fn approval() -> Result<Harness<Ctx, Announcement>, BuildError> {
    Harness::<Ctx, Announcement>::builder("approval")
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

async fn check(announcement: View<Announcement>, _cx: Cx<Ctx>) -> StepResult<Announcement> {
    match announcement.text.trim() {
        "" => Err(StepError::fatal("the announcement is empty (give it a text)")),
        text => Ok(Announcement::update().text(text)),
    }
}

async fn ask(announcement: View<Announcement>, _cx: Cx<Ctx>) -> Result<Approve, StepError> {
    Ok(Approve { text: announcement.text.clone() })
}

async fn hear(
    _: View<Announcement>,
    _cx: Cx<Ctx>,
    said: Answered<Approve>,
) -> StepResult<Announcement> {
    Ok(Announcement::update().decision(Some(said.answer)).by(said.by))
}

fn decided(announcement: &Announcement) -> Decided {
    match &announcement.decision {
        Some(decision) if decision.approved => Decided::Approved,
        Some(_) | None => Decided::Rejected,
    }
}

/// If a process is killed while it sends, the next run cannot know from the log whether the
/// announcement was sent. The probe asks the outbox, by the operation's id.
async fn send(announcement: View<Announcement>, cx: Cx<Ctx>) -> StepResult<Announcement> {
    let (op, text, outbox) = (cx.op_id().to_string(), announcement.text.clone(), cx.outbox.clone());
    let (same_op, same_outbox) = (op.clone(), outbox.clone());
    let line = cx
        .once("send", async move || Ok(outbox.send(&op, &text).await?))
        .at_most_once()
        .probe(async move || Ok(same_outbox.find(&same_op).await?))
        .await?;
    Ok(Announcement::update().sent(Some(line)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loop_is_sound() {
        super::approval().unwrap();
    }
}
