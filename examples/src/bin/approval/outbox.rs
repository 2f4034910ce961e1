//! The outbox: a file with one line for each announcement that was sent.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::fs::{self, OpenOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The file, and a program to run for each announcement.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    pub(super) path: PathBuf,
    /// Runs with the operation's id, as a part of sending.
    pub(super) notify: Option<PathBuf>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    op: String,
    text: String,
}

impl Outbox {
    /// Appends an announcement; returns its line.
    pub(super) async fn send(&self, op: &str, text: &str) -> io::Result<String> {
        let line = serde_json::to_string(&Line { op: op.to_owned(), text: text.to_owned() })?;
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).await?;
        // One write: lines of several processes do not mix.
        file.write_all(format!("{line}\n").as_bytes()).await?;
        file.sync_all().await?;
        if let Some(program) = &self.notify {
            let status = Command::new(program).arg(op).status().await?;
            if !status.success() {
                return Err(io::Error::other(format!("`{}`: {status}", program.display())));
            }
        }
        Ok(line)
    }

    /// The line of an operation, if it was sent.
    pub(super) async fn find(&self, op: &str) -> io::Result<Option<String>> {
        let text = match fs::read_to_string(&self.path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let is_it = |line: &&str| serde_json::from_str(line).is_ok_and(|line: Line| line.op == op);
        Ok(text.lines().find(is_it).map(str::to_owned))
    }
}
