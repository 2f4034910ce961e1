//! The worker processes: this program, started again.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Duration;

use harness::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::parcels::Parcels;

/// The program fails if it hears nothing for so long.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

const NAME: &str = "ORDERS_WORKER";
const STORE: &str = "ORDERS_STORE";
const PARCELS: &str = "ORDERS_PARCELS";

/// The store and the parcels of this process, if it is a worker. They are in its environment, because
/// everyone on the machine may read its arguments.
pub(super) fn role() -> Option<(String, Parcels)> {
    let (name, store) = (env::var(NAME).ok()?, env::var(STORE).ok()?);
    Some((store, Parcels::new(env::var_os(PARCELS)?, name)))
}

/// In a worker: reports what it does to an order.
pub(super) fn say(what: &str, order: &SessionId) {
    // If the program reads no more, the worker still finishes its work.
    let _ = writeln!(io::stdout(), "{what} {order}");
}

/// In a worker: waits until the program closes its standard input, or has ended.
pub(super) async fn dismissed() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}

/// What a worker has reported.
pub(super) struct Report {
    pub(super) worker: usize,
    /// What, and of which order; `None` at the end of the process.
    pub(super) said: Option<(String, String)>,
}

/// The processes. They are killed when this is dropped.
pub(super) struct Processes {
    children: BTreeMap<usize, Child>,
    reports: Receiver<Report>,
}

impl Processes {
    pub(super) fn start(count: usize, store: &str, parcels: &Parcels) -> io::Result<Self> {
        let (send, reports) = channel(64);
        let mut children = BTreeMap::new();
        for worker in 1..=count {
            let mut child = Command::new(env::current_exe()?)
                .env(NAME, format!("worker {worker}"))
                .env(STORE, store)
                .env(PARCELS, parcels.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            tokio::spawn(listen(worker, child.stdout.take(), send.clone()));
            children.insert(worker, child);
        }
        Ok(Self { children, reports })
    }

    /// What a worker reports next.
    pub(super) async fn next(&mut self) -> io::Result<Report> {
        let report = timeout(SILENCE, self.reports.recv()).await.ok().flatten();
        report.ok_or_else(|| io::Error::other("the workers report nothing"))
    }

    /// Kills a worker (SIGKILL): it does nothing more, and does not even release its sessions.
    pub(super) async fn kill(&mut self, worker: usize) -> io::Result<()> {
        match self.children.remove(&worker) {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    /// Lets the workers finish what they run, and waits for their end.
    pub(super) async fn dismiss(self) -> io::Result<()> {
        for (worker, mut child) in self.children {
            // `wait` closes its standard input.
            let status = child.wait().await?;
            if !status.success() {
                return Err(io::Error::other(format!("worker {worker}: {status}")));
            }
        }
        Ok(())
    }
}

async fn listen(worker: usize, from: Option<ChildStdout>, to: Sender<Report>) {
    let Some(from) = from else { return };
    let mut lines = BufReader::new(from).lines();
    loop {
        let line = lines.next_line().await.ok().flatten();
        let said = line.map(|line| match line.split_once(' ') {
            Some((what, order)) => (what.to_owned(), order.to_owned()),
            None => (line, String::new()),
        });
        let over = said.is_none();
        if to.send(Report { worker, said }).await.is_err() || over {
            return;
        }
    }
}
