//! Other processes: this test binary, started again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "HARNESS_TORTURE_ROLE";

/// A process at work. What it says is read as it comes.
pub struct Other {
    child: Child,
    stdin: ChildStdin,
    said: Receiver<String>,
}

impl Other {
    /// One that plays `role` in `dir`.
    pub fn start(role: &str, dir: &Path, settings: &[(&str, String)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::other", "--nocapture", "--test-threads=1", "--quiet"])
            .env(ROLE, role)
            .env("HARNESS_TORTURE_DIR", dir)
            .env("RUST_BACKTRACE", "0")
            .envs(settings.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, said) = channel();
        std::thread::spawn(move || {
            // What is not ours is the test harness's.
            for line in out.lines().map_while(Result::ok) {
                if let Some((_, line)) = line.split_once("> ")
                    && send.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Self { child, stdin, said }
    }

    pub fn say(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// What it says next.
    pub fn hear(&mut self) -> String {
        match self.said.recv_timeout(Duration::from_secs(60)) {
            Ok(line) => line,
            Err(error) => panic!("the other process says nothing more: {error}"),
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it at once; everything that it has said until then.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.said.iter().collect()
    }

    /// Waits for its own end.
    pub fn end(mut self) -> (ExitStatus, Vec<String>) {
        let said = self.said.iter().collect();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the other process: says something, at once.
pub fn say(what: &str) {
    // Not printed: the test harness would look at it.
    let _ = std::io::stdout().lock().write_all(format!("> {what}\n").as_bytes());
}

/// In the other process: what it hears next; empty when the first process has ended.
pub fn hear() -> String {
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    line.trim().to_owned()
}

pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// What the other process does; nothing if this is not one.
#[test]
fn other() {
    let role = setting(ROLE);
    let dir = setting("HARNESS_TORTURE_DIR");
    crate::work::play(&role, Path::new(&dir));
}
