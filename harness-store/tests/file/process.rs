//! Several processes on one directory. The others are this test binary, started again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use harness::store::{Phase, SessionStore as _, StoreError};

use crate::support::{LONG, append, claim, id, open, page};

const ROLE: &str = "HARNESS_STORE_TEST_ROLE";
const DIR: &str = "HARNESS_STORE_TEST_DIR";

pub(crate) struct Other {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str, dir: &Path) -> Self {
        Self::of("process::other", role, dir)
    }

    /// One that runs this test.
    pub(crate) fn of(test: &str, role: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// What it says next, past what the test harness prints.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "the other process ended");
            if let Some((_, said)) = line.split_once("said: ") {
                return said.trim().to_owned();
            }
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

#[cfg(any(feature = "sqlite", feature = "code"))]
impl Other {
    /// Ends it at once; everything that it has said until then, and that was not heard.
    pub(crate) fn kill(mut self) -> Vec<String> {
        use std::io::Read as _;
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let lines = self.out.by_ref().lines().map_while(Result::ok);
        lines.filter_map(|line| Some(line.split_once("said: ")?.1.trim().to_owned())).collect()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn hear() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

pub(crate) fn say(what: &str) {
    println!("said: {what}");
}

/// What this process does for another, and in which directory; `None` if it is not started by one.
pub(crate) fn role() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(DIR).ok()?))
}

/// What the other process does; nothing if this is not one.
#[tokio::test]
async fn other() {
    let Some((role, dir)) = role() else { return };
    let store = open(Path::new(&dir)).await;
    match role.as_str() {
        "hold" => {
            let ttl = Duration::from_millis(hear().parse().unwrap());
            let lease = store.claim(&id("x"), ttl).await.unwrap().lease;
            append(&store, &lease, 0, b"one", Some(Phase::Running)).await.unwrap();
            say("held");
            hear();
            match append(&store, &lease, 1, b"two", Some(Phase::Running)).await {
                Ok(_) => say("appended"),
                Err(StoreError::Fenced { .. }) => say("fenced"),
                Err(error) => say(&format!("{error}")),
            }
            hear();
        }
        "race" => {
            say("ready");
            loop {
                let name = hear();
                if name.is_empty() {
                    return;
                }
                match store.claim(&id(&name), LONG).await {
                    Ok(_) => say("won"),
                    Err(StoreError::Busy { .. }) => say("busy"),
                    Err(error) => say(&format!("{error}")),
                }
            }
        }
        "write" => {
            say("ready");
            // Entries of several pages, so that a kill may fall into the middle of a write.
            let lease = claim(&store, &id("x")).await;
            let head = page(&store, &id("x")).await.unwrap().map_or(0, |page| page.head.0);
            for after in head.. {
                let bytes = vec![b'a' + (after % 26) as u8; 100_000];
                append(&store, &lease, after, &bytes, Some(Phase::Running)).await.unwrap();
                say(&(after + 1).to_string());
            }
        }
        other => panic!("no such role: {other}"),
    }
}

#[tokio::test]
async fn a_holder_that_was_stopped_is_replaced_when_its_lease_expires() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start("hold", dir.path());
    other.say("300");
    assert_eq!(other.hear(), "held");
    other.signal(rustix::process::Signal::STOP);
    let store = open(dir.path()).await;
    let begun = Instant::now();
    let lease = loop {
        match store.claim(&id("x"), LONG).await {
            Ok(claimed) => break claimed.lease,
            Err(StoreError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the lease never expires");
    };
    append(&store, &lease, 1, b"thief", Some(Phase::Running)).await.unwrap();
    other.signal(rustix::process::Signal::CONT);
    other.say("");
    assert_eq!(other.hear(), "fenced");
    append(&store, &lease, 2, b"later", Some(Phase::Running)).await.unwrap();
    let entries = page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap().entries;
    let entries: Vec<_> = entries.into_iter().map(|entry| entry.bytes).collect();
    assert_eq!(entries, [&b"one"[..], b"thief", b"later"]);
}

#[tokio::test]
async fn a_holder_that_was_stopped_and_not_replaced_continues() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start("hold", dir.path());
    other.say("600000");
    assert_eq!(other.hear(), "held");
    other.signal(rustix::process::Signal::STOP);
    let store = open(dir.path()).await;
    let busy = store.claim(&id("x"), LONG).await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    // A process that sends a message does not wait for it.
    store.send(&id("x"), &[crate::support::message("k", "v")]).await.unwrap();
    other.signal(rustix::process::Signal::CONT);
    other.say("");
    assert_eq!(other.hear(), "appended");
}

#[tokio::test]
async fn a_holder_that_was_killed_is_replaced_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start("hold", dir.path());
    other.say("600000");
    assert_eq!(other.hear(), "held");
    let store = open(dir.path()).await;
    let busy = store.claim(&id("x"), LONG).await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    drop(other);
    let claimed = store.claim(&id("x"), LONG).await.unwrap();
    assert_eq!((claimed.head.0, claimed.lease.fence.0), (1, 2));
}

#[tokio::test]
async fn of_several_processes_that_claim_at_once_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let mut others: Vec<_> = (0..4).map(|_| Other::start("race", dir.path())).collect();
    for other in &mut others {
        assert_eq!(other.hear(), "ready");
    }
    for round in 0..50 {
        for other in &mut others {
            other.say(&format!("session {round}"));
        }
        let mut said: Vec<_> = others.iter_mut().map(Other::hear).collect();
        said.sort_unstable();
        assert_eq!(said, ["busy", "busy", "busy", "won"], "round {round}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..12 {
        let mut other = Other::start("write", dir.path());
        assert_eq!(other.hear(), "ready");
        for _ in 0..round % 4 {
            acknowledged = other.hear().parse().unwrap();
        }
        drop(other);
        let store = open(dir.path()).await;
        let Some(page) = page(&store, &id("x")).await.unwrap() else {
            assert_eq!(acknowledged, 0);
            continue;
        };
        assert!(page.head.0 >= acknowledged, "{} of {acknowledged}", page.head.0);
        for (after, entry) in page.entries.iter().enumerate() {
            assert_eq!(entry.bytes, vec![b'a' + (after % 26) as u8; 100_000]);
        }
        acknowledged = page.head.0;
    }
    assert!(acknowledged > 0);
}
