//! The `approval` program over processes: each command is one of its own, some of them are killed.

// The allowances cover the helpers of the tests too.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, Mode, mkfifoat};

struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A store directory for one test.
struct Store(tempfile::TempDir);

impl Store {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn spawn(&self, user: &str, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_approval"))
            .args(args)
            .arg("--store")
            .arg(self.path("kept"))
            .env("USER", user)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, user: &str, args: &[&str]) -> Done {
        Done::of(self.spawn(user, args))
    }

    fn start(&self, text: &str) -> String {
        let done = self.run("ada", &["start", text]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        done.out.trim().to_owned()
    }

    fn outbox(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("kept/outbox.jsonl")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A `--notify` program that opens one pipe when it runs, then waits until the test opens another.
    /// While it waits, the announcement is in the outbox, and the log does not record that.
    fn pausing(&self) -> String {
        let program = self.path("pause");
        let [running, finish] = ["running", "finish"].map(|name| {
            let path = self.path(name);
            mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
            path.display().to_string()
        });
        fs::write(&program, format!("#!/bin/sh\n: > '{running}'\n: < '{finish}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        program.display().to_string()
    }

    fn wait_until_running(&self) {
        File::open(self.path("running")).unwrap();
    }

    fn let_finish(&self) {
        File::create(self.path("finish")).unwrap();
    }
}

#[test]
fn another_process_answers_and_sends() {
    let store = Store::new();
    let id = store.start("Dear all");
    assert!(store.outbox().is_empty(), "sent without an approval");
    let listed = store.run("sam", &["list"]);
    assert_eq!(listed.out.lines().count(), 1, "{}", listed.out);
    assert!(listed.out.starts_with(&id) && listed.out.contains("Dear all"), "{}", listed.out);

    let done = store.run("sam", &["answer", &id, "approve", "--note", "well said"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.starts_with("approved (well said) by sam; sent: "), "{}", done.out);
    assert_eq!(store.outbox().len(), 1);
    assert_eq!(store.run("sam", &["list"]).out, "");

    let history = store.run("sam", &["history", &id]).out;
    for words in
        ["opened by agent approval", "asked approve", "answered by sam", "effect send:", "ended"]
    {
        assert_eq!(history.matches(words).count(), 1, "{words}: {history}");
    }
}

#[test]
fn a_rejected_announcement_is_not_sent() {
    let store = Store::new();
    let id = store.start("Dear all");
    let done = store.run("sam", &["answer", &id, "reject"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "rejected by sam; not sent\n"));
    assert!(store.outbox().is_empty());
}

#[test]
fn a_wrong_command_gets_one_line() {
    let store = Store::new();
    let id = store.start("Dear all");
    for (args, code, words) in [
        (vec!["answer", "nope", "approve"], 2, "no session `nope`"),
        (vec!["answer", "", "approve"], 2, "cannot be empty"),
        (vec!["answer", "\u{1b}[2J", "approve"], 2, "no session `\\u{1b}[2J`"),
        (vec!["history", "nope"], 2, "no session"),
        (vec!["resume", "nope"], 2, "no session"),
        (vec!["start", "  "], 1, "the announcement is empty"),
    ] {
        let done = store.run("sam", &args);
        assert_eq!((done.code, done.err.lines().count()), (Some(code), 1), "{args:?} {}", done.err);
        assert!(done.err.contains(words), "{}", done.err);
    }
    assert_eq!(store.run("sam", &["answer", &id, "perhaps"]).code, Some(2));

    assert_eq!(store.run("sam", &["answer", &id, "reject"]).code, Some(0));
    let other = store.run("eve", &["answer", &id, "approve"]);
    assert_eq!(other.code, Some(3), "{}", other.err);
    assert!(other.err.contains("already has an answer: rejected"), "{}", other.err);
    let same = store.run("eve", &["answer", &id, "reject"]);
    assert_eq!((same.code, same.out.as_str()), (Some(0), "rejected by sam; not sent\n"));
    assert!(store.outbox().is_empty());
}

#[test]
fn the_same_answer_from_many_processes_at_once_sends_once() {
    let store = Store::new();
    let id = store.start("Dear all");
    let answering: Vec<Child> =
        (0..4).map(|n| store.spawn(&format!("p{n}"), &["answer", &id, "approve"])).collect();
    let done: Vec<Done> = answering.into_iter().map(Done::of).collect();
    for each in &done {
        assert_eq!(each.code, Some(0), "{}", each.err);
        assert_eq!(each.out, done[0].out, "all print the same outcome");
    }
    assert_eq!(store.outbox().len(), 1);
}

#[test]
fn of_two_different_answers_at_once_the_first_wins() {
    for _ in 0..3 {
        let store = Store::new();
        let id = store.start("Dear all");
        let yes = store.spawn("sam", &["answer", &id, "approve"]);
        let no = store.spawn("eve", &["answer", &id, "reject"]);
        let (yes, no) = (Done::of(yes), Done::of(no));
        let codes = (yes.code, no.code);
        assert!(matches!(codes, (Some(0), Some(3)) | (Some(3), Some(0))), "{codes:?} {}", no.err);
        assert_eq!(store.outbox().len(), usize::from(yes.code == Some(0)));
    }
}

#[test]
fn while_one_process_sends_another_answer_is_refused_and_the_same_one_waits() {
    let store = Store::new();
    let id = store.start("Dear all");
    let pause = store.pausing();
    let sending = store.spawn("sam", &["answer", &id, "approve", "--notify", &pause]);
    store.wait_until_running();
    let no = store.run("eve", &["answer", &id, "reject"]);
    assert_eq!(no.code, Some(3), "{}", no.err);
    assert!(store.run("eve", &["list"]).out.contains("is running"));
    let same = store.spawn("eve", &["answer", &id, "approve", "--notify", &pause]);
    store.let_finish();
    let (sent, same) = (Done::of(sending), Done::of(same));
    assert_eq!((sent.code, same.code), (Some(0), Some(0)), "{}{}", sent.err, same.err);
    assert_eq!(sent.out, same.out);
    assert_eq!(store.outbox().len(), 1);
}

#[test]
fn a_process_killed_while_it_sends_sends_once() {
    let store = Store::new();
    let id = store.start("Dear all");
    let pause = store.pausing();
    let mut sending = store.spawn("sam", &["answer", &id, "approve", "--notify", &pause]);
    store.wait_until_running();
    sending.kill().unwrap();
    sending.wait().unwrap();
    store.let_finish();
    assert_eq!(store.outbox().len(), 1, "sent, and not recorded");
    let listed = store.run("eve", &["list"]).out;
    assert!(listed.contains("did not settle"), "{listed}");

    let done = store.run("eve", &["resume", &id]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.starts_with("approved by sam; sent: "), "{}", done.out);
    assert_eq!(store.outbox().len(), 1, "the probe found it in the outbox");
    let history = store.run("eve", &["history", &id]).out;
    assert!(history.contains("recovered"), "{history}");
    assert_eq!(history.matches("answered by").count(), 1, "{history}");
}
