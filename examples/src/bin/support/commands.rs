//! The commands: each opens the store, does one thing, and exits.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use examples::support::{self, ApproveRefund, Bank, NotBuilt, support};
use examples::{open, shown};
use harness::approval::Approval;
use harness::inspect::SessionsError;
use harness::loops::Conversation;
use harness::prelude::*;
use harness::store::StoreError;
use harness::worker::{Worker, WorkerError};
use harness::{Interrupt, OnBusy, RunError, Sessions};
use serde_json::json;

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "support", about = "Refunds that a person approves, from any process")]
pub(super) struct Options {
    #[command(subcommand)]
    command: Do,
    /// The directory of the store; by default where the system keeps the data of programs
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The model, such as `anthropic/claude-sonnet-4-5`; by default a script
    #[arg(long, global = true, value_name = "NAME")]
    model: Option<String>,
    /// Who gives the answers
    #[arg(long, global = true, value_name = "NAME", default_value = "operator")]
    by: String,
}

#[derive(Clone, Debug, Subcommand)]
enum Do {
    /// Starts a ticket with a message of the customer, or continues one
    Start { ticket: String, message: String },
    /// Lists the refunds that wait for an approval
    List,
    /// Approves a refund
    Approve {
        ticket: String,
        order: String,
        /// Another amount
        #[arg(long)]
        cents: Option<u64>,
    },
    /// Rejects a refund, for a reason that the model is sent
    Reject { ticket: String, order: String, reason: String },
    /// Prints what was said and done
    Show { ticket: String },
    /// Continues tickets with the answers that come from elsewhere, until it is interrupted
    Work,
}

/// Runs one command; returns the exit code.
pub(super) async fn run(options: Options) -> u8 {
    match work(options).await {
        Ok(()) => 0,
        Err(problem) => {
            // If standard error is closed, there is no other place to report to.
            let _ = writeln!(io::stderr(), "support: {problem}");
            1
        }
    }
}

async fn work(options: Options) -> Result<(), Problem> {
    let Options { command, store, model, by } = options;
    let open = open(store.as_deref(), "support").await?;
    let model: Arc<dyn Llm> = match model {
        Some(name) => harness_providers::from_env(&name)?,
        None => Arc::new(support::model()),
    };
    let bank = Bank { payments: open.dir.join("payments.txt") };
    let agent = support(model, bank)?.agent("support", ()).store(open.store.clone());
    let sessions = Sessions::new(open.store);
    match command {
        Do::Start { ticket, message } => {
            report(agent.run(Conversation::say(message), ()).session(ticket).await?)
        }
        Do::List => {
            for row in sessions.pending_interrupts().await?.rows {
                if let Ok(refund) = row.interrupt.as_question::<ApproveRefund>() {
                    let ApproveRefund { order, cents } = refund.question;
                    say(&format!("{} {} {cents} cents", row.session, shown(&order)))?;
                }
            }
            Ok(())
        }
        Do::Approve { ticket, order, cents } => {
            let answer = match cents {
                Some(cents) => Approval::approve().edited(json!({"order": order, "cents": cents})),
                None => Approval::approve(),
            };
            decide(&agent, &sessions, &ticket, &order, answer, &by).await
        }
        Do::Reject { ticket, order, reason } => {
            let answer = Approval::reject_because(reason);
            decide(&agent, &sessions, &ticket, &order, answer, &by).await
        }
        Do::Show { ticket } => {
            let state = sessions.state(&ticket).await?;
            let state: Conversation = serde_json::from_value(state)?;
            show(&state)
        }
        Do::Work => {
            let worker = Worker::new().serve(&agent, |_ticket| async { Ok(()) });
            say("waiting for answers")?;
            Ok(worker.run_until(interrupted()).await?)
        }
    }
}

async fn interrupted() {
    // Without the signal it works until it is killed, which loses nothing.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Answers the question about an order, and resumes the ticket.
async fn decide(
    agent: &Agent<(), Conversation>,
    sessions: &Sessions,
    ticket: &str,
    order: &str,
    answer: Approval,
    by: &str,
) -> Result<(), Problem> {
    let open = sessions.status(ticket).await?.questions;
    let about = |asked: &Interrupt| {
        asked.as_question::<ApproveRefund>().ok().filter(|refund| refund.question.order == order)
    };
    let Some(refund) = open.iter().find_map(about) else {
        return Err(Problem::NotAsked(order.to_owned()));
    };
    let answers = refund.answer(answer).by(by);
    match agent.resume(ticket, answers, ()).on_busy(OnBusy::Reject).await {
        Ok(outcome) => report(outcome),
        Err(busy) if busy.is_busy() && busy.answers_recorded() => {
            say("recorded, and applied by another process")
        }
        Err(error) => Err(error.into()),
    }
}

fn report(outcome: Outcome<Conversation>) -> Result<(), Problem> {
    match outcome {
        Outcome::Ended(ended) => say(&ended.state.answer().unwrap_or_default()),
        Outcome::Interrupted(waiting) => {
            say(&format!("{} refunds wait for an approval", waiting.questions.len()))
        }
        other => say(&format!("{other:?}")),
    }
}

fn show(state: &Conversation) -> Result<(), Problem> {
    use harness::llm::{Block, Entry};
    for entry in state.talk.entries() {
        match entry {
            Entry::User(said) => say(&format!("customer: {}", said.text().unwrap_or_default()))?,
            Entry::Assistant(turn) => {
                for block in &turn.blocks {
                    match block {
                        Block::Text(text) => say(&format!("agent: {text}"))?,
                        Block::Call { call, outcome } => {
                            let outcome = match outcome {
                                Some(outcome) => outcome.content().text().unwrap_or_default(),
                                None => "..".to_owned(),
                            };
                            say(&format!("  {} {}: {outcome}", call.name, call.arguments))?;
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn say(text: &str) -> Result<(), Problem> {
    let lines = text.lines().map(shown).collect::<Vec<_>>().join("\n");
    Ok(writeln!(io::stdout(), "{lines}")?)
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Build(#[from] NotBuilt),
    #[error(transparent)]
    Model(#[from] harness_providers::EnvError),
    #[error("failed to open the store: {0}")]
    Open(#[from] StoreError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    #[error("the ticket does not decode: {0}")]
    Decode(#[from] serde_json::Error),
    #[error("no refund of `{0}` waits for an approval (`list` prints those that do)")]
    NotAsked(String),
    #[error(transparent)]
    Work(#[from] WorkerError),
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}
