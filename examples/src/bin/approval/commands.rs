//! The commands: each opens the store, does one thing, and exits.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use examples::{OpenStore, default_dir, describe, last_question, moment, open, shown};
use harness::inspect::{Filter, Phase, SessionsError};
use harness::prelude::*;
use harness::session::Entry;
use harness::store::StoreError;
use harness::{BuildError, OnBusy, RunError, Seq, Sessions};

use super::outbox::Outbox;
use super::{Announcement, Approve, Ctx, Decision, approval};

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "approval",
    about = "Sends announcements that a person has approved, from any process, at most once each",
    after_help = "Exit code: 0 done; 1 it failed; 2 bad usage, or no such session; 3 the question \
                  already has a different answer."
)]
pub(super) struct Options {
    /// What to do
    #[command(subcommand)]
    command: Do,
    /// The directory of the store; by default where the system keeps the data of programs
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Run this program with the operation's id when an announcement is sent, at most once too
    #[arg(long, global = true, value_name = "PROGRAM")]
    notify: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
enum Do {
    /// Starts a session with an announcement; prints the session's id
    Start {
        /// The announcement
        text: String,
    },
    /// Lists the sessions that wait for an answer or did not settle
    List,
    /// Answers, resumes the session, and prints how it ended
    Answer {
        /// The session
        id: String,
        /// The answer
        verdict: Verdict,
        /// The reason
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Resumes a session whose process was killed
    Resume {
        /// The session
        id: String,
    },
    /// Prints the log of a session
    History {
        /// The session
        id: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verdict {
    /// Send it
    Approve,
    /// Do not send it
    Reject,
}

/// Runs one command; returns the exit code.
pub(super) async fn run(options: Options) -> u8 {
    match work(options).await {
        Ok(()) => 0,
        Err(problem) => {
            // If standard error is closed, there is no other place to report to.
            let _ = writeln!(io::stderr(), "approval: {problem}");
            problem.code()
        }
    }
}

async fn work(options: Options) -> Result<(), Problem> {
    let Options { command, store, notify } = options;
    let open = open(store.as_deref(), "approval").await.map_err(|source| Problem::Open {
        dir: store.unwrap_or_else(|| default_dir("approval")),
        source,
    })?;
    let outbox = Outbox { path: open.dir.join("outbox.jsonl"), notify };
    let slots = Ctx::required().outbox(outbox).build();
    let agent = approval()?.agent("approval", slots).store(open.store.clone());
    let program = Program { agent, sessions: Sessions::new(open.store.clone()), open };
    match command {
        Do::Start { text } => program.start(text).await,
        Do::List => program.list().await,
        Do::Answer { id, verdict, note } => {
            program.answer(id, Decision { approved: verdict == Verdict::Approve, note }).await
        }
        Do::Resume { id } => program.resume(id).await,
        Do::History { id } => program.history(id).await,
    }
}

/// The agent and its store.
struct Program {
    agent: Agent<Ctx, Announcement>,
    sessions: Sessions,
    open: OpenStore,
}

impl Program {
    async fn start(&self, text: String) -> Result<(), Problem> {
        let outcome = self.agent.run(Announcement::update().text(text), ()).await?;
        let id = outcome.session().to_string();
        if let Outcome::Interrupted(_) = outcome {
            // Standard output gets the id alone, for scripts.
            writeln!(io::stdout(), "{id}")?;
        }
        self.print(outcome)
    }

    async fn list(&self) -> Result<(), Problem> {
        let mut out = io::stdout().lock();
        let mut found = 0;
        let mine = Filter::sessions().agent(self.agent.id().clone());
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.sessions.list_interrupts(&mine, after.as_deref(), 100).await?;
            for row in page.rows {
                let question = match row.interrupt.as_question::<Approve>() {
                    Ok(asked) => format!("send this? {}", shown(&asked.question.text)),
                    Err(_) => format!("asks {}", shown(&row.interrupt.name)),
                };
                let id = shown(row.session.as_str());
                writeln!(out, "{id}  {}  {question}", moment(row.since))?;
                found += 1;
            }
            for (session, error) in page.unreadable {
                writeln!(io::stderr(), "approval: {}: {error}", shown(session.as_str()))?;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for row in self.sessions.all(&mine.phase(Phase::Running)).await? {
            let status = match self.sessions.status(&row.session).await?.holder {
                Some(_) => "is running",
                None => "did not settle (see `approval resume`)",
            };
            writeln!(out, "{}  {}  {status}", shown(row.session.as_str()), moment(row.updated))?;
            found += 1;
        }
        if found == 0 {
            writeln!(io::stderr(), "no open session in {}", self.open.dir.display())?;
        }
        Ok(())
    }

    async fn answer(&self, id: String, decision: Decision) -> Result<(), Problem> {
        let log = self.log(&id).await?;
        let question = last_question(&log).ok_or(Problem::NothingAsked { id: id.clone() })?;
        let question = question.as_question::<Approve>()?;
        let answers = question.answer(decision).by(user());
        // A process that gives the same answer at the same time waits and prints the same outcome.
        let outcome = self.agent.resume(id.as_str(), answers, ()).on_busy(OnBusy::Wait).await;
        match outcome {
            Ok(outcome) => self.print(outcome),
            Err(error) if error.answer_error().is_some_and(|it| it.is_conflict()) => {
                Err(match recorded(&error) {
                    Some(recorded) => Problem::Answered { id, recorded },
                    None => error.into(),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn resume(&self, id: String) -> Result<(), Problem> {
        self.log(&id).await?;
        let run = self.agent.resume(id.as_str(), Answers::none(), ()).on_busy(OnBusy::Wait);
        self.print(run.await?)
    }

    async fn history(&self, id: String) -> Result<(), Problem> {
        let log = self.log(&id).await?;
        let mut out = io::stdout().lock();
        for (seq, entry) in &log {
            writeln!(out, "{:>4}  {}  {}", seq.0, moment(entry.at), describe(entry))?;
        }
        Ok(())
    }

    async fn log(&self, id: &str) -> Result<Vec<(Seq, Entry)>, Problem> {
        examples::log(&self.sessions, id).await.map_err(|error| match error.is_not_found() {
            true => Problem::NoSession { id: id.to_owned(), dir: self.open.dir.clone() },
            false => error.into(),
        })
    }

    /// Prints the outcome of a run.
    fn print(&self, outcome: Outcome<Announcement>) -> Result<(), Problem> {
        let id = outcome.session().to_string();
        match outcome {
            Outcome::Ended(ended) => {
                let announcement = ended.state;
                let decision = announcement.decision.as_ref().map(in_words).unwrap_or_default();
                let by = announcement.by.as_deref().map(shown).unwrap_or_default();
                match announcement.sent {
                    Some(line) => writeln!(io::stdout(), "{decision} by {by}; sent: {line}")?,
                    None => writeln!(io::stdout(), "{decision} by {by}; not sent")?,
                }
                Ok(())
            }
            Outcome::Failed(failed) => {
                Err(Problem::Failed { id, why: format!("{:#}", failed.failure) })
            }
            Outcome::Interrupted(_) => self.hint(&id),
            other @ (Outcome::Waiting(_)
            | Outcome::Stopped(_)
            | Outcome::Exhausted(_)
            | Outcome::Queued(_)) => {
                let why = other.ended().err().map(|why| why.to_string()).unwrap_or_default();
                Err(Problem::Failed { id, why })
            }
        }
    }

    /// Prints the command that answers.
    fn hint(&self, id: &str) -> Result<(), Problem> {
        let dir = self.open.dir.display();
        let flag = self.open.flag();
        writeln!(
            io::stderr(),
            "waits for an approval, in {dir}\n  approval answer {id} approve|reject{flag}"
        )?;
        Ok(())
    }
}

/// The recorded answer, from an error that reports a conflict with it.
fn recorded(error: &RunError) -> Option<Decision> {
    Decision::deserialize(error.answer_error()?.recorded_answer()?).ok()
}

fn in_words(decision: &Decision) -> String {
    let verdict = if decision.approved { "approved" } else { "rejected" };
    match &decision.note {
        Some(note) => format!("{verdict} ({})", shown(note)),
        None => verdict.to_owned(),
    }
}

fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("no session `{}` in {} (see `approval list`)", shown(id), dir.display())]
    NoSession { id: String, dir: PathBuf },
    #[error("no question in session `{}` yet (see `approval resume`)", shown(id))]
    NothingAsked { id: String },
    #[error("session `{}` already has an answer: {}", shown(id), in_words(recorded))]
    Answered { id: String, recorded: Decision },
    #[error("session `{}` failed: {why}", shown(id))]
    Failed { id: String, why: String },
    #[error("failed to open the store in {}: {source}", dir.display())]
    Open { dir: PathBuf, source: StoreError },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    #[error("the question is not one of this program: {0}")]
    Question(#[from] harness::step::NotThisQuestion),
    #[error("failed to write: {0}")]
    Output(#[from] io::Error),
}

impl Problem {
    fn code(&self) -> u8 {
        match self {
            Problem::NoSession { .. } | Problem::NothingAsked { .. } => 2,
            Problem::Sessions(error) if error.is_invalid_session_id() => 2,
            Problem::Answered { .. } => 3,
            Problem::Failed { .. }
            | Problem::Open { .. }
            | Problem::Build(_)
            | Problem::Run(_)
            | Problem::Sessions(_)
            | Problem::Question(_)
            | Problem::Output(_) => 1,
        }
    }
}
