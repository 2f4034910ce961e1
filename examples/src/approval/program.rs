//! The program: one command, one process.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use harness::inspect::{Filter, Phase, SessionsError};
use harness::prelude::*;
use harness::session::Entry;
use harness::store::StoreError;
use harness::{BuildError, OnBusy, RunError, Seq, Sessions};

use crate::repair::shown;
use crate::sessions::{Place, default_dir, last_question, log, moment, open, tell};

use super::{Approve, Ctx, Decision, Letter, Outbox, letters};

/// What is asked of the program.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "approval",
    about = "Sends letters that a person has approved, from any process, at most once each",
    after_help = "Exit code: 0 done; 1 it failed; 2 bad usage, or no such session; 3 the question \
                  was answered already, differently."
)]
pub struct Options {
    /// What to do
    #[command(subcommand)]
    pub command: Do,
    /// Where sessions are kept; without it, where the system keeps data of programs
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Run this program when a letter is sent, with the operation's name; what it does happens at
    /// most once, too
    #[arg(long, global = true, value_name = "PROGRAM")]
    pub notify: Option<PathBuf>,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Do {
    /// Begins with a letter, until it needs a person; prints the session's id
    Start {
        /// What the letter says
        text: String,
    },
    /// Shows what waits: for a person, or for somebody who goes on with it
    List,
    /// Answers, goes on, and prints what came of it
    Answer {
        /// The session
        id: String,
        /// The answer
        verdict: Verdict,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Goes on with a session whose process was ended in the middle
    Resume {
        /// The session
        id: String,
    },
    /// Shows what happened in a session
    History {
        /// The session
        id: String,
    },
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verdict {
    /// It may leave
    Approve,
    /// It may not
    Reject,
}

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("there is no session `{}` in {} (see `approval list`)", shown(id), dir.display())]
    NoSession { id: String, dir: PathBuf },
    #[error("session `{}` has asked nothing yet (see `approval resume`)", shown(id))]
    NothingAsked { id: String },
    #[error("session `{}` was answered already: {}", shown(id), told(recorded))]
    Answered { id: String, recorded: Decision },
    #[error("session `{}` failed: {why}", shown(id))]
    Failed { id: String, why: String },
    #[error("the store in {}: {source}", dir.display())]
    Open { dir: PathBuf, source: StoreError },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    #[error("the question is not one of this program: {0}")]
    Question(#[from] harness::NotThisQuestion),
    #[error("cannot write: {0}")]
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

/// Runs the program; gives its exit code.
pub async fn run(options: Options) -> u8 {
    match work(options).await {
        Ok(()) => 0,
        Err(problem) => {
            // There is nowhere left to say that this failed.
            let _ = writeln!(io::stderr(), "approval: {problem}");
            problem.code()
        }
    }
}

async fn work(options: Options) -> Result<(), Problem> {
    let Options { command, store, notify } = options;
    let place = open(store.as_deref(), "approval").await.map_err(|source| Problem::Open {
        dir: store.unwrap_or_else(|| default_dir("approval")),
        source,
    })?;
    let outbox = Outbox { path: place.dir.join("outbox.jsonl"), notify };
    let slots = Ctx::required().outbox(outbox).build();
    let agent = letters()?.agent("approval", slots).store(place.store.clone());
    let desk = Desk { agent, sessions: Sessions::new(place.store.clone()), place };
    match command {
        Do::Start { text } => desk.start(text).await,
        Do::List => desk.list().await,
        Do::Answer { id, verdict, note } => {
            desk.answer(id, Decision { approved: verdict == Verdict::Approve, note }).await
        }
        Do::Resume { id } => desk.resume(id).await,
        Do::History { id } => desk.history(id).await,
    }
}

/// The loop with its store.
struct Desk {
    agent: Agent<Ctx, Letter>,
    sessions: Sessions,
    place: Place,
}

impl Desk {
    async fn start(&self, text: String) -> Result<(), Problem> {
        let outcome = self.agent.run(Letter::update().text(text), ()).await?;
        let id = outcome.session().to_string();
        if let Outcome::Interrupted(_) = outcome {
            // The id alone goes to standard output, for scripts.
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
            let page = self.sessions.pending_interrupts(&mine, after.as_deref(), 100).await?;
            for row in page.rows {
                let question = match row.interrupt.as_question::<Approve>() {
                    Ok(asked) => format!("may this leave? {}", shown(&asked.question.text)),
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
            let told = match self.sessions.status(&row.session).await?.holder {
                Some(_) => "is at work",
                None => "was cut off (see `approval resume`)",
            };
            writeln!(out, "{}  {}  {told}", shown(row.session.as_str()), moment(row.updated))?;
            found += 1;
        }
        if found == 0 {
            writeln!(io::stderr(), "nothing waits in {}", self.place.dir.display())?;
        }
        Ok(())
    }

    async fn answer(&self, id: String, decision: Decision) -> Result<(), Problem> {
        let log = self.log(&id).await?;
        let question = last_question(&log).ok_or(Problem::NothingAsked { id: id.clone() })?;
        let question = question.as_question::<Approve>()?;
        let answers = question.answer(decision).by(user());
        // Whoever answers the same at the same moment is told what came of it as well.
        let outcome = self.agent.resume(id.as_str(), answers, ()).on_busy(OnBusy::Wait).await;
        match outcome {
            Ok(outcome) => self.print(outcome),
            Err(error) if error.answer_error().is_some_and(|it| it.is_conflict()) => Err(match recorded(&error) {
                Some(recorded) => Problem::Answered { id, recorded },
                None => error.into(),
            }),
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
            writeln!(out, "{:>4}  {}  {}", seq.0, moment(entry.at), tell(entry))?;
        }
        Ok(())
    }

    async fn log(&self, id: &str) -> Result<Vec<(Seq, Entry)>, Problem> {
        log(&self.sessions, id).await.map_err(|error| match error.is_not_found() {
            true => Problem::NoSession { id: id.to_owned(), dir: self.place.dir.clone() },
            false => error.into(),
        })
    }

    /// Says what came of a run.
    fn print(&self, outcome: Outcome<Letter>) -> Result<(), Problem> {
        let id = outcome.session().to_string();
        match outcome {
            Outcome::Ended(ended) => {
                let letter = ended.state;
                let decision = letter.decision.as_ref().map(told).unwrap_or_default();
                let by = letter.by.as_deref().map(shown).unwrap_or_default();
                match letter.sent {
                    Some(line) => writeln!(io::stdout(), "{decision} by {by}; sent: {line}")?,
                    None => writeln!(io::stdout(), "{decision} by {by}; not sent")?,
                }
                Ok(())
            }
            Outcome::Failed(failed) => {
                Err(Problem::Failed { id, why: format!("{:#}", failed.failure) })
            }
            Outcome::Interrupted(_) => self.hint(&id),
            other @ (Outcome::Waiting(_) | Outcome::Stopped(_) | Outcome::Exhausted(_)) => {
                let why = other.ended().err().map(|why| why.to_string()).unwrap_or_default();
                Err(Problem::Failed { id, why })
            }
        }
    }

    /// Tells a person how to answer.
    fn hint(&self, id: &str) -> Result<(), Problem> {
        let dir = self.place.dir.display();
        let flag = self.place.flag();
        writeln!(
            io::stderr(),
            "it waits for an approval, in {dir}\n  approval answer {id} approve|reject{flag}"
        )?;
        Ok(())
    }
}

/// The answer that holds, of an error that says that another was given.
fn recorded(error: &RunError) -> Option<Decision> {
    Decision::deserialize(error.answer_error().and_then(|it| it.recorded_answer())?).ok()
}

fn told(decision: &Decision) -> String {
    let verdict = if decision.approved { "approved" } else { "rejected" };
    match &decision.note {
        Some(note) => format!("{verdict} ({})", shown(note)),
        None => verdict.to_owned(),
    }
}

fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|who| !who.is_empty()))
        .unwrap_or_else(|| "somebody".to_owned())
}
