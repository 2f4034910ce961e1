//! Processes of the test server.

use harness_providers::mcp::{Client, Http, Server, Stdio};
use std::path::{Path, PathBuf};
use std::process::Stdio as Pipes;
use std::{env, fs};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const PYTHON: &str = "HARNESS_MCP_PYTHON";

/// A Python that has the SDK.
pub(crate) fn python() -> String {
    env::var(PYTHON).unwrap_or_else(|_| {
        panic!(
            "{PYTHON} is not set: run `.ci/test`, or `python3 -m venv VENV && VENV/bin/pip install \
             mcp==$(sed -n 's/^mcp=//p' .ci/test)` and set it to VENV/bin/python"
        )
    })
}

pub(crate) fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py")
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    /// With the handshake of versions before 2026-07-28.
    StdioInitialize,
    Http,
    HttpInitialize,
}

pub(crate) const WAYS: [Way; 4] =
    [Way::Stdio, Way::StdioInitialize, Way::Http, Way::HttpInitialize];

/// A folder with a ledger, and a process if the client does not start it itself.
pub(crate) struct Place {
    way: Way,
    folder: TempDir,
    process: Option<Child>,
    port: u16,
}

impl Place {
    pub(crate) async fn new(way: Way) -> Self {
        let folder = TempDir::new().unwrap();
        let mut place = Self { way, folder, process: None, port: 0 };
        if matches!(way, Way::Http | Way::HttpInitialize) {
            place.start(&[]).await;
        }
        place
    }

    /// Starts a process behind HTTP: at the same port, if there was one before.
    pub(crate) async fn start(&mut self, options: &[&str]) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.unwrap();
        }
        let mut process = Command::new(python())
            .arg(script())
            .arg(self.ledger())
            .args(["--port", &self.port.to_string()])
            .args(options)
            .stdout(Pipes::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).await.unwrap();
        self.port =
            line.trim().parse().expect("the server prints its port (is the SDK installed?)");
        self.process = Some(process);
    }

    /// Waits until the process behind HTTP has ended by itself.
    pub(crate) async fn ended(&mut self) {
        if let Some(process) = &mut self.process {
            process.wait().await.unwrap();
        }
    }

    /// Whether the client starts the process.
    pub(crate) fn is_stdio(&self) -> bool {
        matches!(self.way, Way::Stdio | Way::StdioInitialize)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// What the tools noted.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.ledger()).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }

    pub(crate) fn stdio(&self) -> Stdio {
        Stdio::new(python()).arg(script()).arg(self.ledger())
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(format!("http://127.0.0.1:{}/mcp", self.port))
    }

    pub(crate) fn server(&self, name: &str) -> Server {
        let server = match self.is_stdio() {
            true => Server::stdio(name, self.stdio()),
            false => Server::http(name, self.http()),
        };
        match self.way {
            Way::StdioInitialize | Way::HttpInitialize => server.initialize_only(),
            Way::Stdio | Way::Http => server,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect([self.server("t")]).await.unwrap()
    }
}
