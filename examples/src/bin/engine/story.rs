//! The whole story in one command: a service that is killed while it works, another one that takes its
//! place, and processes that decide.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use harness::Sessions;
use harness::inspect::Phase;
use harness::llm::Scripted;
use harness::llm::scripted::Line;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use super::commands::refund_of;
use super::{Fallible, Options};

/// The story fails if nothing happens for so long.
const LONGEST: Duration = Duration::from_secs(60);
const TICKET: &str = "t-1";
const THINKS: &str = "asks the model";

/// A model that never answers.
pub(super) fn hanging_model() -> Scripted {
    fn never(_: harness::llm::Request<'_>) -> Line {
        println!("{THINKS}");
        loop {
            std::thread::park();
        }
    }
    Scripted::from_fn(never)
}

pub(super) async fn run(mut options: Options) -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    options.payments = dir.path().join("payments.txt");
    // The tickets of an earlier story are on the server.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    options.agent = format!("support-{}", since.as_micros());
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let listen = format!("127.0.0.1:{port}");
    let tickets = options.tickets()?;

    let mut first = Process::start(&options, &["serve", "--listen", &listen, "--hangs"])?;
    first.says("works at").await?;
    Process::start(&options, &["start", TICKET, "o-7 and o-9 are broken"])?.ends().await?;
    first.says(THINKS).await?;
    first.kill().await?;
    println!("the service is killed, in the middle of a step");

    let mut second = Process::start(&options, &["serve", "--listen", &listen])?;
    second.says("works at").await?;
    until(async || {
        let both = (refund_of(&tickets, TICKET, "o-7"), refund_of(&tickets, TICKET, "o-9"));
        Ok(both.0.await?.is_some() && both.1.await?.is_some())
    })
    .await?;
    println!("another one has continued the ticket, and asks for two refunds");

    Process::start(&options, &["approve", TICKET, "o-7"])?.ends().await?;
    let reject = ["reject", TICKET, "o-9", "it was never paid"];
    Process::start(&options, &reject)?.ends().await?;
    let sessions = Sessions::new(tickets);
    until(async || Ok(sessions.status(TICKET).await?.phase == Phase::Ended)).await?;
    second.kill().await?;

    let paid = std::fs::read_to_string(&options.payments)?;
    println!("paid: {}", paid.trim());
    match paid.lines().count() {
        1 => Ok(()),
        times => Err(format!("it paid {times} times, instead of once").into()),
    }
}

/// Waits until it is so.
async fn until(so: impl AsyncFn() -> Fallible<bool>) -> Fallible<()> {
    let wait = async {
        while !so().await? {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    timeout(LONGEST, wait).await.map_err(|_| "nothing happens")?
}

/// This program, started again.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(options: &Options, arguments: &[&str]) -> Fallible<Self> {
        let Options { agent, payments, .. } = options;
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .args(["--agent", agent, "--payments"])
            .arg(payments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("the process has no output")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    /// Waits until it prints a line that begins so.
    async fn says(&mut self, begin: &str) -> Fallible<()> {
        let wait = async {
            while let Some(line) = self.lines.next_line().await? {
                if line.starts_with(begin) {
                    return Ok(());
                }
            }
            Err(format!("the process has ended and never said `{begin}`").into())
        };
        timeout(LONGEST, wait).await.map_err(|_| format!("it never said `{begin}`"))?
    }

    /// Waits until it has done its work.
    async fn ends(mut self) -> Fallible<()> {
        while let Some(line) = timeout(LONGEST, self.lines.next_line()).await?? {
            println!("  {line}");
        }
        let status = self.child.wait().await?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("a process has failed: {status}").into()),
        }
    }

    /// As `kill -9` does.
    async fn kill(&mut self) -> Fallible<()> {
        Ok(self.child.kill().await?)
    }
}
