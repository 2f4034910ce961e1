//! Runs a script with the machine's Python, under limits.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use harness::esg::diagnosis::FACTS;

use super::fault::{Ending, Ran};
use super::group::Group;
use super::report;

const BOOTSTRAP: &str = include_str!("bootstrap.py");
const OLDEST: (u32, u32) = (3, 8);
/// How long the query for the version may take.
const FIND_WAIT: Duration = Duration::from_secs(10);
/// How long the pipes of an ended script are still read.
const DRAIN_WAIT: Duration = Duration::from_millis(500);

/// The signal for too much CPU time.
const SIGXCPU: i32 = 24;

/// What one run may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Time on the clock.
    pub(crate) wall: Duration,
    /// Time on the CPU, in whole seconds (rounded up).
    pub(crate) cpu: Duration,
    /// Bytes written to standard output and standard error together.
    pub(crate) output_bytes: usize,
    /// Bytes of address space.
    pub(crate) memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall: Duration::from_secs(5),
            cpu: Duration::from_secs(5),
            output_bytes: 1024 * 1024,
            memory_bytes: 512 * 1024 * 1024,
        }
    }
}

/// Why a script could not be run at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PythonError {
    /// There is no `python3`.
    #[error("no python3 found on PATH: install Python 3.8 or later")]
    Missing,
    /// The one there is does not work.
    #[error("python3 does not work: {0}")]
    Broken(String),
    /// The one there is is too old.
    #[error("python3 is version {0}, but 3.8 or later is needed")]
    TooOld(String),
    /// The scratch directory or the process failed.
    #[error("could not run the script: {0}")]
    Io(#[from] io::Error),
}

/// The Python of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    executable: PathBuf,
    version: String,
}

impl fmt::Display for Python {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Python {} ({})", self.version, self.executable.display())
    }
}

enum Stop {
    Exited(ExitStatus),
    TimedOut,
    Flooded,
}

impl Python {
    /// Looks for `python3` on `PATH` and asks for its version.
    pub(crate) fn find() -> Result<Python, PythonError> {
        Python::at(Path::new("python3"))
    }

    /// Uses the Python at `path` (or of that name on `PATH`).
    ///
    /// It may be a script that chooses a version by the environment. Runs have no environment, so this
    /// asks the interpreter for its own path.
    pub(crate) fn at(path: &Path) -> Result<Python, PythonError> {
        let question =
            "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
        let answer = ask(path, question)?;
        let mut lines = answer.lines();
        let version = lines.next().unwrap_or_default().to_owned();
        let executable = lines.next().unwrap_or_default();
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return Err(PythonError::Broken("it does not print its version".into()));
        };
        if (major, minor) < OLDEST {
            return Err(PythonError::TooOld(version));
        }
        let executable = match executable {
            "" => path.to_owned(),
            known => PathBuf::from(known),
        };
        Ok(Python { executable, version })
    }

    /// Runs `source` as `file_name` in a fresh scratch directory.
    ///
    /// Dropping the future kills the script and every process it started.
    pub(crate) async fn run(
        &self,
        source: &str,
        file_name: &str,
        limits: &Limits,
    ) -> Result<Ran, PythonError> {
        let scratch = tempfile::Builder::new().prefix("repair-").tempdir()?;
        // The real path, for the script's own view of where it is.
        let root = scratch.path().canonicalize()?;
        let folder = root.join("run");
        tokio::fs::create_dir(&folder).await?;
        let script = folder.join(plain_name(file_name));
        let report = root.join("report.json");
        tokio::fs::write(&script, source).await?;
        tokio::fs::write(root.join("bootstrap.py"), [FACTS, BOOTSTRAP].concat()).await?;

        let started = Instant::now();
        let mut child = self.command(&root, &script, &report, limits).spawn()?;
        let mut group = Group::of(child.id());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let stop = watch(&mut child, &mut group, limits, (&mut stdout, &mut stderr)).await?;
        let elapsed = started.elapsed();
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let ending = match stop {
            Stop::TimedOut => Ending::TimedOut,
            Stop::Flooded => Ending::TooMuchOutput,
            Stop::Exited(status) => ending(status, &report, &stderr),
        };
        Ok(Ran { ending, stdout, stderr, elapsed })
    }

    fn command(&self, root: &Path, script: &Path, report: &Path, limits: &Limits) -> Command {
        let cpu = limits.cpu.as_secs() + u64::from(limits.cpu.subsec_nanos() > 0);
        let mut command = Command::new(&self.executable);
        // Not `-I`: it would ignore the fixed hash seed as well. With an empty
        // environment and a home without packages there is nothing to isolate.
        command
            .args(["-B", "-s"])
            .arg(root.join("bootstrap.py"))
            .args([script, report])
            .args([cpu.max(1).to_string(), limits.memory_bytes.to_string()])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", root)
            .env("TMPDIR", root)
            .env("TZ", "UTC")
            .env("PYTHONHASHSEED", "0")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUTF8", "1")
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// Only the last part of a name, as the script lives alone in its directory.
fn plain_name(file_name: &str) -> &str {
    Path::new(file_name)
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| !name.contains('\0') && name.len() < 200)
        .unwrap_or("script.py")
}

fn ask(path: &Path, question: &str) -> Result<String, PythonError> {
    let mut child = std::process::Command::new(path)
        .args(["-I", "-c", question])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => PythonError::Missing,
            _ => PythonError::Broken(error.to_string()),
        })?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > FIND_WAIT {
            child.kill()?;
            child.wait()?;
            return Err(PythonError::Broken("it does not answer".into()));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        return Err(PythonError::Broken(format!("it ended with {status}")));
    }
    let mut answer = String::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(8192).read_to_string(&mut answer)?;
    }
    Ok(answer)
}

/// Waits for the child within the limits and collects its output. Afterwards its process group is
/// empty.
async fn watch(
    child: &mut Child,
    group: &mut Group,
    limits: &Limits,
    into: (&mut Vec<u8>, &mut Vec<u8>),
) -> io::Result<Stop> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let left = AtomicUsize::new(limits.output_bytes);
    let reading = async {
        let out = pump(stdout, into.0, &left);
        let err = pump(stderr, into.1, &left);
        tokio::try_join!(out, err).is_err()
    };
    tokio::pin!(reading);
    let mut read = false;
    let stop = {
        let deadline = tokio::time::sleep(limits.wall);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                status = child.wait() => break Stop::Exited(status?),
                () = &mut deadline => break Stop::TimedOut,
                flooded = &mut reading, if !read => {
                    read = true;
                    if flooded {
                        break Stop::Flooded;
                    }
                }
            }
        }
    };
    // After a normal end too: processes that the script left running hold the pipes.
    group.kill();
    if !matches!(stop, Stop::Exited(_)) {
        child.start_kill()?;
        child.wait().await?;
    }
    // A process that left the group may still hold a pipe: wait no longer than this.
    let flooded = !read && tokio::time::timeout(DRAIN_WAIT, reading).await == Ok(true);
    match stop {
        Stop::Exited(_) if flooded => Ok(Stop::Flooded),
        stop => Ok(stop),
    }
}

struct Full;

/// Reads until the end, or until both pipes together have used up what is
/// left.
async fn pump(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    left: &AtomicUsize,
) -> Result<(), Full> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut buffer = [0; 8192];
    loop {
        let count = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        // Both readers take turns on one task, so this is no race.
        let taken = left.load(Ordering::Relaxed).min(count);
        into.extend_from_slice(&buffer[..taken]);
        left.fetch_sub(taken, Ordering::Relaxed);
        if taken < count {
            return Err(Full);
        }
    }
}

fn ending(status: ExitStatus, report: &Path, stderr: &str) -> Ending {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return match signal {
            SIGXCPU => Ending::TimedOut,
            signal => Ending::Signalled(signal),
        };
    }
    match status.code() {
        Some(0) => Ending::Ok,
        Some(1) => match report::read(report) {
            Some(fault) if fault.kind == "MemoryError" => Ending::OutOfMemory,
            Some(fault) => Ending::Raised(Box::new(fault)),
            // Too little memory was left even for the report.
            None if stderr.trim_end().ends_with("MemoryError") => Ending::OutOfMemory,
            None => Ending::Exited(1),
        },
        code => Ending::Exited(code.unwrap_or(-1)),
    }
}
