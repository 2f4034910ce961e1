//! The program: files in, reports out.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use harness::Agent;
use harness::observe::Terminal;
use harness::{SessionId, Sessions};
use tokio::sync::watch;

use crate::repair::{Limits, Python, shown};
use crate::sessions::{Place, open, quoted};

use super::batch::{self, Batch, BatchError, Job};
use super::desk::Desk;
use super::report::{FileReport, Standing};
use super::state::Repair;
use super::{Ctx, file, repairer, replace::replace};

/// Exit code when nothing can be done with what was given.
const UNUSABLE: u8 = 2;
/// Exit code after Ctrl-C.
const STOPPED: u8 = 130;

/// What is asked of the program.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "repair",
    about = "Repairs Python scripts that fail, by rules, one approved step at a time",
    after_help = "Exit code: 0 every file runs and prints what it should; 1 some file could not \
                  be repaired; 2 bad usage, a file that cannot be read, or no python3; 3 an \
                  approval is needed and standard input is no terminal; 130 stopped by Ctrl-C. What \
                  was stopped, killed or not approved goes on with --resume."
)]
pub struct Options {
    /// Approve every proposal
    #[arg(long)]
    pub yes: bool,
    /// Replace a file of yours once it is fixed
    #[arg(long)]
    pub write: bool,
    /// Fingerprint one JSON object per file on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// How many faults of a file to take on
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Go on with what an earlier start was stopped at, with its files and rounds
    #[arg(long, value_name = "ID", conflicts_with_all = ["files", "rounds"])]
    pub resume: Option<String>,
    /// Where sessions are kept; without it, where the system keeps data of programs
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// The scripts; without any, those that ship with the program. What `a.py`
    /// should print is read from `a.expected`, if there is one
    #[arg(value_name = "FILE.py")]
    pub files: Vec<PathBuf>,
}

/// Runs the program; gives its exit code.
pub async fn run(options: Options) -> u8 {
    let stop = match interruptions() {
        Ok(stop) => stop,
        Err(error) => return refuse(&error),
    };
    let python = match Python::find() {
        Ok(python) => python,
        Err(error) => return refuse(&error),
    };
    let place = match open(options.store.as_deref(), "repair").await {
        Ok(place) => place,
        Err(error) => return refuse(&error),
    };
    let sessions = Sessions::new(place.store.clone());
    let batch = match &options.resume {
        Some(id) => batch::find(&sessions, &place.dir, id).await,
        None => begin(&place, &options).await,
    };
    let (id, batch) = match batch {
        Ok(batch) => batch,
        Err(error) => return refuse(&error),
    };
    let words = python.to_string();
    let harness = match repairer(Arc::new(python), Limits::default(), batch.rounds) {
        Ok(harness) => harness.observe(Terminal::stderr()),
        Err(error) => return refuse(&error),
    };
    let desk = Desk { yes: options.yes, json: options.json, stop };
    let again = command(&id, &options, &place);
    if !options.json {
        let count = batch.jobs.len();
        let plural = if count == 1 { "" } else { "s" };
        desk.say(&format!(
            "Repairing {count} script{plural} with {words}\n\
             Whatever ends this, it goes on with: {again}\n\n"
        ));
    }
    let work = Work { agent: harness.agent("repair", ()).store(place.store), sessions, id, batch };
    let reports = work.all(&options, &desk).await;
    let code = finish(&reports, &options, &desk);
    if is_open(&reports, &desk) {
        complain(&format!("go on with: {again}"));
    } else {
        batch::forget(&work.sessions, &work.id, work.batch.jobs.len()).await;
    }
    code
}

/// Keeps the list of what is to be done.
async fn begin(place: &Place, options: &Options) -> Result<(SessionId, Batch), BatchError> {
    let jobs = match &options.files[..] {
        [] => Job::shipped(),
        files => files.iter().map(|path| Job::file(path)).collect(),
    };
    let batch = Batch { jobs, rounds: options.rounds };
    Ok((batch::keep(&place.store, &batch).await?, batch))
}

/// The command line that goes on with this, to be copied.
fn command(id: &SessionId, options: &Options, place: &Place) -> String {
    let program = std::env::args_os().next().map_or_else(|| "repair".into(), PathBuf::from);
    let flags = [(options.yes, " --yes"), (options.write, " --write"), (options.json, " --json")];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
    format!("{} --resume {id}{flags}{}", quoted(&program), place.flag())
}

/// Whether there is something to go on with.
fn is_open(reports: &[FileReport], desk: &Desk) -> bool {
    reports.iter().any(|report| match report.standing {
        Standing::NotAsked | Standing::Stopped => true,
        // Whoever quits wants no further file; whoever stops may.
        Standing::NotStarted => desk.is_stopping(),
        Standing::Runs
        | Standing::Fixed
        | Standing::NotFixed
        | Standing::NotWritten
        | Standing::Unreadable => false,
    })
}

/// What is to be done, and with what.
struct Work {
    agent: Agent<Ctx, Repair>,
    sessions: Sessions,
    id: SessionId,
    batch: Batch,
}

impl Work {
    /// Repairs one file after the other, until the person has enough.
    async fn all(&self, options: &Options, desk: &Desk) -> Vec<FileReport> {
        let mut reports: Vec<FileReport> = Vec::with_capacity(self.batch.jobs.len());
        let mut quit = false;
        for (place, job) in self.batch.jobs.iter().enumerate() {
            if quit || desk.is_stopping() {
                reports.push(FileReport::bare(&job.name, Standing::NotStarted, None));
                continue;
            }
            let session = batch::script_session(&self.id, place);
            let repaired = file::repair(&self.agent, &self.sessions, &session, job, desk).await;
            let mut report = match repaired {
                Ok(report) => report,
                Err(error) => {
                    complain(&shown(&error.to_string()));
                    let why = Some(error.to_string());
                    reports.push(FileReport::bare(&job.name, Standing::Unreadable, why));
                    continue;
                }
            };
            quit = report.repair.has_quit();
            if let (true, Standing::Fixed, Some(path)) =
                (options.write, report.standing, job.path())
            {
                match replace(&path, &report.repair.original, &report.repair.copy) {
                    Ok(()) => report.written = true,
                    Err(error) => {
                        report.standing = Standing::NotWritten;
                        report.why = Some(error.to_string());
                    }
                }
            }
            reports.push(report);
        }
        reports
    }
}

/// Tells what came of it all.
fn finish(reports: &[FileReport], options: &Options, desk: &Desk) -> u8 {
    if options.json {
        let mut out = io::stdout().lock();
        let printed = reports.iter().try_for_each(|report| writeln!(out, "{}", report.to_json()));
        if let Err(error) = printed.and_then(|()| out.flush()) {
            return refuse(&error);
        }
    } else {
        for report in reports.iter().filter(|report| report.standing != Standing::Unreadable) {
            desk.say(&format!("{}\n", report.to_text()));
        }
        desk.say(&summary(reports));
    }
    if reports.iter().any(|report| report.standing == Standing::NotAsked) {
        complain(
            "nobody can approve, as standard input is no terminal (--yes approves every \
             proposal); nothing was applied",
        );
    }
    if desk.is_stopping() {
        complain(&banner(reports));
        return STOPPED;
    }
    reports.iter().map(|report| report.standing.code()).max().unwrap_or(0)
}

fn summary(reports: &[FileReport]) -> String {
    let run = reports.iter().filter(|report| report.standing.code() == 0).count();
    let (repairs, written) = (repairs(reports), written(reports));
    format!("{run} of {} run; {repairs}; {written}\n", reports.len())
}

/// What was done before Ctrl-C.
fn banner(reports: &[FileReport]) -> String {
    let ended =
        |report: &&FileReport| !matches!(report.standing, Standing::NotStarted | Standing::Stopped);
    let done = reports.iter().filter(ended).count();
    format!(
        "stopped by Ctrl-C: {done} of {} files done; {}; {}",
        reports.len(),
        repairs(reports),
        written(reports)
    )
}

fn repairs(reports: &[FileReport]) -> String {
    match reports.iter().map(FileReport::applied).sum::<usize>() {
        1 => "1 repair applied".to_owned(),
        count => format!("{count} repairs applied"),
    }
}

fn written(reports: &[FileReport]) -> String {
    match reports.iter().filter(|report| report.written).count() {
        0 => "no file of yours was changed".to_owned(),
        1 => "1 file of yours was replaced".to_owned(),
        count => format!("{count} files of yours were replaced"),
    }
}

fn complain(line: &str) {
    // There is nowhere left to say that this failed.
    let _ = writeln!(io::stderr(), "repair: {line}");
}

fn refuse(error: &dyn std::error::Error) -> u8 {
    complain(&error.to_string());
    UNUSABLE
}

/// Counts the Ctrl-Cs from now on.
fn interruptions() -> io::Result<watch::Receiver<u32>> {
    // Registered here and once: none is missed before or between the waits.
    #[cfg(unix)]
    let mut signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    #[cfg(windows)]
    let mut signals = tokio::signal::windows::ctrl_c()?;
    let (send, receive) = watch::channel(0);
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            send.send_modify(|times| *times += 1);
            if *send.borrow() == 1 {
                complain("stopping after this step (Ctrl-C again stops at once)");
            }
        }
    });
    Ok(receive)
}
