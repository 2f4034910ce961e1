//! A conversation in the terminal, with any model, tools, and approvals. It is kept in a file store:
//! `--session` continues it, also after a kill.
//!
//! ```text
//! cargo run -p examples --bin chat                                       # a script, without a key
//! cargo run -p examples --bin chat -- --model anthropic/claude-sonnet-4-5
//! CHAT_MODEL=anthropic/claude-sonnet-4-5 cargo run -p examples --bin chat -- --session work
//! ```

mod console;
mod script;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use examples::{open, shown};
use harness::llm::{Delta, ToolError};
use harness::loops::{Conversation, tool_loop};
use harness::observe::{self, EventKind};
use harness::prelude::*;

/// A conversation with a model, in the terminal.
#[derive(Clone, Debug, Parser)]
#[command(name = "chat")]
struct Options {
    /// The model, such as `anthropic/claude-sonnet-4-5`; by default `CHAT_MODEL`, or else a script
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The session to begin or to continue
    #[arg(long, value_name = "ID", default_value = "chat")]
    session: String,
    /// The directory of the store; by default where the system keeps the data of programs
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match chat(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // If standard error is closed, there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "chat: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Where notes are written.
#[derive(Clone, Debug)]
struct Notes(PathBuf);

/// Writes a note down, where the user finds it later.
#[tool(external)]
async fn write_note(text: String, #[inject] notes: Notes) -> Result<String, ToolError> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&notes.0)?;
    writeln!(file, "{text}")?;
    Ok("written".to_owned())
}

/// Reads all notes.
#[tool(read)]
async fn read_notes(#[inject] notes: Notes) -> Result<String, ToolError> {
    Ok(std::fs::read_to_string(&notes.0).unwrap_or_else(|_| "there are none".to_owned()))
}

async fn chat(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let Options { model, session, store } = options;
    let model: Arc<dyn Llm> = match model.or_else(|| std::env::var("CHAT_MODEL").ok()) {
        Some(name) => harness_providers::from_env(&name)?,
        None => Arc::new(script::model()),
    };
    let open = open(store.as_deref(), "chat").await?;
    let tools = ToolSet::builder().with(write_note).with(read_notes).build()?;
    let agent = tool_loop::<Conversation>(model, tools)
        .named("chat")
        .system("Be brief. Use the tools for notes.")
        .with(Notes(open.dir.join("notes.txt")))
        .build()?
        .agent("chat", ())
        .store(open.store.clone())
        .observe(printed());

    // What an earlier process has left: an open question, or a turn that was cut short.
    let mut outcome = match agent.resume(&*session, Answers::none(), ()).await {
        Ok(outcome) => Some(outcome),
        Err(error) if error.is_not_found() || error.is_not_waiting() => None,
        Err(error) => return Err(error.into()),
    };
    loop {
        outcome = match outcome {
            Some(Outcome::Interrupted(waiting)) => match console::answers(&waiting.questions)? {
                Some(answers) => match agent.resume(&*session, answers, ()).await {
                    Ok(outcome) => Some(outcome),
                    // An edit that does not fit the tool: nothing was recorded.
                    Err(error) if error.answer_error().is_some() => {
                        console::say(&format!("refused: {error}"))?;
                        Some(Outcome::Interrupted(waiting))
                    }
                    Err(error) => return Err(error.into()),
                },
                None => break,
            },
            Some(Outcome::Failed(failed)) => {
                console::say(&format!("failed: {} (the next start tries again)", failed.failure))?;
                return Err("the turn failed".into());
            }
            // A tool loop ends with an answer, which was printed as it came.
            Some(_) | None => match console::line("\n> ")? {
                Some(text) if text.trim().is_empty() => None,
                Some(text) => {
                    Some(agent.run(Conversation::say(text), ()).session(&*session).await?)
                }
                None => break,
            },
        };
    }
    console::say(&format!("\ncontinue with --session {session}{}", open.flag()))?;
    Ok(())
}

/// Prints what the model says as it comes, and the calls of tools.
fn printed() -> impl observe::Observer {
    observe::from_fn(|event| {
        let mut out = std::io::stdout();
        // An observer cannot report that its terminal is closed.
        let _ = match &event.kind {
            EventKind::Token { delta: Delta::Text(text), .. } => {
                let lines: Vec<String> = text.split('\n').map(shown).collect();
                write!(out, "{}", lines.join("\n"))
            }
            EventKind::Token { delta: Delta::Restart, .. } => writeln!(out, "\n(again)"),
            EventKind::CallEnded { .. } => writeln!(out),
            EventKind::ToolEnded { tool, outcome, .. } => writeln!(out, "[{tool}: {outcome}]"),
            _ => Ok(()),
        };
        let _ = out.flush();
    })
    .with_tokens()
}
