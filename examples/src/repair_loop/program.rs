//! The program: files in, reports out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::Agent;
use harness::observe::Terminal;
use tokio::sync::watch;

use crate::repair::{Limits, LoadError, Python, Script, load, shipped, shown};

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
                  approval is needed and standard input is no terminal; 130 stopped by Ctrl-C."
)]
pub struct Options {
    /// Approve every proposal
    #[arg(long)]
    pub yes: bool,
    /// Replace a file of yours once it is fixed
    #[arg(long)]
    pub write: bool,
    /// Print one JSON object per file on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// How many faults of a file to take on
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The scripts; without any, those that ship with the program. What `a.py`
    /// should print is read from `a.expected`, if there is one
    #[arg(value_name = "FILE.py")]
    pub files: Vec<PathBuf>,
}

/// A file that is to be repaired.
enum Job {
    Shipped(Script),
    File(PathBuf),
}

impl Job {
    fn name(&self) -> String {
        match self {
            Job::Shipped(script) => script.name.clone(),
            Job::File(path) => path.display().to_string(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Job::Shipped(_) => None,
            Job::File(path) => Some(path),
        }
    }

    fn script(&self) -> Result<Repair, LoadError> {
        let script = match self {
            Job::Shipped(script) => script.clone(),
            Job::File(path) => load(path)?,
        };
        Ok(Repair {
            name: self.name(),
            original: script.source.clone(),
            copy: script.source,
            expected: script.expected,
            ..Repair::default()
        })
    }
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
    let words = python.to_string();
    let harness = match repairer(Arc::new(python), Limits::default(), options.rounds) {
        Ok(harness) => harness.observe(Terminal::stderr()),
        Err(error) => return refuse(&error),
    };
    let desk = Desk { yes: options.yes, json: options.json, stop };
    let jobs: Vec<Job> = match &options.files[..] {
        [] => shipped().into_iter().map(Job::Shipped).collect(),
        files => files.iter().cloned().map(Job::File).collect(),
    };
    if !options.json {
        let plural = if jobs.len() == 1 { "" } else { "s" };
        desk.say(&format!("Repairing {} script{plural} with {words}\n\n", jobs.len()));
    }
    let reports = all(&harness.agent("repair", ()), &jobs, &options, &desk).await;
    finish(&reports, &options, &desk)
}

/// Repairs one file after the other, until the person has enough.
async fn all(
    agent: &Agent<Ctx, Repair>,
    jobs: &[Job],
    options: &Options,
    desk: &Desk,
) -> Vec<FileReport> {
    let mut reports: Vec<FileReport> = Vec::with_capacity(jobs.len());
    let mut quit = false;
    for job in jobs {
        if quit || desk.is_stopping() {
            reports.push(FileReport::bare(job.name(), Standing::NotStarted, None));
            continue;
        }
        let script = match job.script() {
            Ok(script) => script,
            Err(error) => {
                complain(&shown(&error.to_string()));
                let why = Some(error.to_string());
                reports.push(FileReport::bare(job.name(), Standing::Unreadable, why));
                continue;
            }
        };
        let mut report = file::repair(agent, script, desk).await;
        quit = report.repair.has_quit();
        if let (true, Standing::Fixed, Some(path)) = (options.write, report.standing, job.path()) {
            match replace(path, &report.repair.original, &report.repair.copy) {
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
