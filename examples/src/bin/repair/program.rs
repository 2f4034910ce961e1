//! The program: files in, reports out.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use examples::{OpenStore, open, quoted, shown};
use harness::observe::Terminal;
use harness::{Agent, Harness, esg};
use harness::{SessionId, Sessions};
use tokio::sync::watch;

use super::batch::{self, Batch, BatchError, Job};
use super::console::Console;
use super::report::{FileReport, Standing};
use super::state::Repair;
use super::worker;
use super::{Ctx, file, repairer, replace::replace};

/// Exit code for input that cannot be used.
const UNUSABLE: u8 = 2;
/// Exit code after Ctrl-C.
const STOPPED: u8 = 130;

/// The command line.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "repair",
    about = "Repairs Python scripts and notebooks that fail, one approved patch at a time",
    after_help = "Exit code: 0 every file runs and prints what it should; 1 some file could not \
                  be repaired; 2 bad usage, a file that cannot be read, no CPython 3.11 to 3.13, or no \
                  sandbox; 3 an \
                  approval is needed and standard input is no terminal; 130 stopped by Ctrl-C. After a \
                  stop, a kill or an open approval, --resume continues."
)]
pub(crate) struct Options {
    /// Approve every proposal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Replace a file of yours once it is fixed
    #[arg(long)]
    pub(crate) write: bool,
    /// Print one JSON object per file on standard output, and nothing else on it
    #[arg(long)]
    pub(crate) json: bool,
    /// How many faults of a file to repair
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// How long a part of a program may take
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Tests that a fixed program must pass: functions `test_..` without arguments, which run after the
    /// program and see its names. They are never changed
    #[arg(long, value_name = "FILE.py", requires = "files")]
    pub(crate) test: Option<PathBuf>,
    /// The Python that runs the programs; by default that of the active virtual environment, or the newest of
    /// 3.11 to 3.13 in PATH. Programs can import what is installed for it
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// A directory that programs may read, and in which they run. Without it they run in an empty one. In a
    /// sandbox they cannot write there
    #[arg(long, value_name = "DIR", requires = "files")]
    pub(crate) data: Option<PathBuf>,
    /// The model to ask where no rule knows a patch, such as `anthropic/claude-sonnet-4-5`; its key is read
    /// from the environment
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Whether programs run in a sandbox, or may do whatever you may do
    #[arg(long, value_enum, default_value_t)]
    pub(crate) trust: Trust,
    /// Resume an earlier start of the program, with its files and settings
    #[arg(long, value_name = "ID")]
    #[arg(conflicts_with_all = ["files", "rounds", "seconds", "test", "python", "data", "model", "trust"])]
    pub(crate) resume: Option<String>,
    /// The directory of the store; by default where the system keeps the data of programs
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The scripts and notebooks; without any, the scripts that ship with the program. What `a.py`
    /// should print is read from `a.expected`, if there is one
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// Whose code the programs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// Of others: they run in a sandbox.
    #[default]
    Untrusted,
    /// Yours: they may do whatever you may do.
    Mine,
}

/// Runs the program; returns its exit code.
pub(crate) async fn run(options: Options) -> u8 {
    let stop = match interruptions() {
        Ok(stop) => stop,
        Err(error) => return refuse(&error),
    };
    let open = match open(options.store.as_deref(), "repair").await {
        Ok(open) => open,
        Err(error) => return refuse(&error),
    };
    let sessions = Sessions::new(open.store.clone());
    let batch = match &options.resume {
        Some(id) => batch::find(&sessions, &open.dir, id).await,
        None => begin(&open, &options).await,
    };
    let (id, batch) = match batch {
        Ok(batch) => batch,
        Err(error) => return refuse(&error),
    };
    let values = values(&open, &id);
    let harness = match prepared(&batch, &values) {
        Ok(harness) => harness.observe(Terminal::stderr()),
        Err(error) => return refuse(&*error),
    };
    let console = Console { yes: options.yes, json: options.json, stop };
    let again = command(&id, &options, &open);
    if !options.json {
        let count = batch.jobs.len();
        let plural = if count == 1 { "" } else { "s" };
        console.say(&format!(
            "Repairing {count} file{plural}\n\
             If this is interrupted, resume with: {again}\n\n"
        ));
    }
    let work = Work { agent: harness.agent("repair", ()).store(open.store), sessions, id, batch };
    let reports = work.all(&options, &console).await;
    let code = finish(&reports, &options, &console);
    if is_open(&reports, &console) {
        complain(&format!("resume with: {again}"));
    } else {
        batch::forget(&work.sessions, &work.id, work.batch.jobs.len()).await;
        // Values that cannot be removed only use space.
        let _ = std::fs::remove_dir_all(values);
    }
    code
}

/// Saves the list of scripts.
async fn begin(open: &OpenStore, options: &Options) -> Result<(SessionId, Batch), BatchError> {
    let jobs = match &options.files[..] {
        [] => Job::shipped(),
        files => files.iter().map(|path| Job::file(path)).collect(),
    };
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let batch = Batch {
        jobs,
        rounds: options.rounds,
        seconds: options.seconds,
        tests: options.test.as_ref().map(|path| absolute(path).into_os_string()),
        python: python(options).map(|path| absolute(&path).into_os_string()),
        data: options.data.as_ref().map(|path| absolute(path).into_os_string()),
        model: options.model.clone(),
        mine: options.trust == Trust::Mine,
    };
    Ok((batch::save(&open.store, &batch).await?, batch))
}

/// The interpreter that was named, or that of the active virtual environment.
fn python(options: &Options) -> Option<PathBuf> {
    let active = || {
        let venv = std::env::var_os("VIRTUAL_ENV").filter(|venv| !venv.is_empty())?;
        Some(PathBuf::from(venv).join("bin/python")).filter(|python| python.exists())
    };
    options.python.clone().or_else(active)
}

/// Where the values of a batch are.
fn values(open: &OpenStore, id: &SessionId) -> PathBuf {
    open.dir.join("values").join(id.as_str())
}

/// The loop, with a worker that has started and the model.
fn prepared(batch: &Batch, values: &Path) -> Result<Harness<Ctx, Repair>, Box<dyn Error>> {
    let trust = if batch.mine { esg::Trust::Mine } else { esg::Trust::Untrusted };
    let python = batch.python.as_ref().map(Path::new);
    let data = batch.data.as_ref().map(Path::new);
    let bench = worker::bench(python, data, trust, Duration::from_secs(batch.seconds), values)?;
    let model = batch.model.as_deref().map(harness_providers::from_env).transpose()?;
    Ok(repairer(bench, model, batch.rounds)?)
}

/// The command line that resumes this batch, to be copied.
fn command(id: &SessionId, options: &Options, open: &OpenStore) -> String {
    let program = std::env::args_os().next().map_or_else(|| "repair".into(), PathBuf::from);
    let flags = [(options.yes, " --yes"), (options.write, " --write"), (options.json, " --json")];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
    format!("{} --resume {id}{flags}{}", quoted(&program), open.flag())
}

/// Whether something is left to resume.
fn is_open(reports: &[FileReport], console: &Console) -> bool {
    reports.iter().any(|report| match report.standing {
        Standing::NotAsked | Standing::Stopped => true,
        // A person who quits wants no further file; after Ctrl-C they may.
        Standing::NotStarted => console.is_stopping(),
        Standing::Runs
        | Standing::Fixed
        | Standing::NotFixed
        | Standing::NotWritten
        | Standing::Unreadable => false,
    })
}

/// The batch, and the agent that repairs its scripts.
struct Work {
    agent: Agent<Ctx, Repair>,
    sessions: Sessions,
    id: SessionId,
    batch: Batch,
}

impl Work {
    /// Repairs one file after the other, until the person quits.
    async fn all(&self, options: &Options, console: &Console) -> Vec<FileReport> {
        let mut reports: Vec<FileReport> = Vec::with_capacity(self.batch.jobs.len());
        let mut quit = false;
        for (place, job) in self.batch.jobs.iter().enumerate() {
            if quit || console.is_stopping() {
                reports.push(FileReport::bare(&job.name, Standing::NotStarted, None));
                continue;
            }
            let session = batch::script_session(&self.id, place);
            let Self { agent, sessions, batch, .. } = self;
            let repaired = file::repair(agent, sessions, &session, job, batch, console).await;
            let mut report = match repaired {
                Ok(report) => report,
                Err(error) => {
                    complain(&shown(&error.to_string()));
                    let why = Some(error.to_string());
                    reports.push(FileReport::bare(&job.name, Standing::Unreadable, why));
                    continue;
                }
            };
            if batch.data.is_none()
                && report.repair.lacks_a_file()
                && let (Standing::NotFixed, Some(why)) = (report.standing, &mut report.why)
            {
                why.push_str("; programs run in an empty directory (see --data)");
            }
            quit = report.repair.has_quit();
            if let (true, Standing::Fixed, Some(path)) =
                (options.write, report.standing, job.path())
            {
                let Repair { document, original, code, .. } = &report.repair;
                let fixed = document.file(code.program());
                match replace(&path, document.original(original), &fixed) {
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

/// Prints the reports; returns the exit code.
fn finish(reports: &[FileReport], options: &Options, console: &Console) -> u8 {
    if options.json {
        let mut out = io::stdout().lock();
        let printed = reports.iter().try_for_each(|report| writeln!(out, "{}", report.to_json()));
        if let Err(error) = printed.and_then(|()| out.flush()) {
            return refuse(&error);
        }
    } else {
        for report in reports.iter().filter(|report| report.standing != Standing::Unreadable) {
            console.say(&format!("{}\n", report.to_text()));
        }
        console.say(&summary(reports));
    }
    if reports.iter().any(|report| report.standing == Standing::NotAsked) {
        complain(
            "no approval: standard input is no terminal (--yes approves every proposal); nothing \
             was applied",
        );
    }
    if console.is_stopping() {
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

/// What happened before Ctrl-C.
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
    // If standard error is closed, there is no other place to report to.
    let _ = writeln!(io::stderr(), "repair: {line}");
}

fn refuse(error: &dyn std::error::Error) -> u8 {
    complain(&error.to_string());
    UNUSABLE
}

/// Counts the Ctrl-Cs from now on.
fn interruptions() -> io::Result<watch::Receiver<u32>> {
    // One registration for all waits: no signal is missed before or between them.
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
