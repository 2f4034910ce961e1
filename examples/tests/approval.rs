//! Approvals over processes: each command is one of its own, some of them are killed.

// What helps the tests is part of them.
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

/// A store of its own.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn spawn(&self, who: &str, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_approval"))
            .args(args)
            .arg("--store")
            .arg(self.path("kept"))
            .env("USER", who)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, who: &str, args: &[&str]) -> Done {
        Done::of(self.spawn(who, args))
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

    /// A program that says that it runs, and then waits until it is told to go on, both by opening
    /// a pipe. The letter is in the outbox then, and nobody has recorded that.
    fn pausing(&self) -> String {
        let program = self.path("pause");
        let [at_work, go_on] = ["at-work", "go-on"].map(|name| {
            let path = self.path(name);
            mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
            path.display().to_string()
        });
        fs::write(&program, format!("#!/bin/sh\n: > '{at_work}'\n: < '{go_on}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        program.display().to_string()
    }

    fn wait_until_at_work(&self) {
        File::open(self.path("at-work")).unwrap();
    }

    fn go_on(&self) {
        File::create(self.path("go-on")).unwrap();
    }
}

#[test]
fn a_letter_leaves_from_another_process_than_it_began_in() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    assert!(desk.outbox().is_empty(), "nobody has approved");
    let listed = desk.run("sam", &["list"]);
    assert_eq!(listed.out.lines().count(), 1, "{}", listed.out);
    assert!(listed.out.starts_with(&id) && listed.out.contains("Dear all"), "{}", listed.out);

    let done = desk.run("sam", &["answer", &id, "approve", "--note", "well said"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.starts_with("approved (well said) by sam; sent: "), "{}", done.out);
    assert_eq!(desk.outbox().len(), 1);
    assert_eq!(desk.run("sam", &["list"]).out, "");

    let history = desk.run("sam", &["history", &id]).out;
    for words in
        ["opened by agent approval", "asked approve", "answered by sam", "did send", "ended"]
    {
        assert_eq!(history.matches(words).count(), 1, "{words}: {history}");
    }
}

#[test]
fn a_rejected_letter_stays() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    let done = desk.run("sam", &["answer", &id, "reject"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "rejected by sam; not sent\n"));
    assert!(desk.outbox().is_empty());
}

#[test]
fn what_cannot_be_answered_is_told_in_a_line() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    for (args, code, words) in [
        (vec!["answer", "nope", "approve"], 2, "there is no session `nope`"),
        (vec!["answer", "", "approve"], 2, "cannot be empty"),
        (vec!["answer", "\u{1b}[2J", "approve"], 2, "there is no session `\\u{1b}[2J`"),
        (vec!["history", "nope"], 2, "there is no session"),
        (vec!["resume", "nope"], 2, "there is no session"),
        (vec!["start", "  "], 1, "the letter is empty"),
    ] {
        let done = desk.run("sam", &args);
        assert_eq!((done.code, done.err.lines().count()), (Some(code), 1), "{args:?} {}", done.err);
        assert!(done.err.contains(words), "{}", done.err);
    }
    assert_eq!(desk.run("sam", &["answer", &id, "perhaps"]).code, Some(2));

    assert_eq!(desk.run("sam", &["answer", &id, "reject"]).code, Some(0));
    let other = desk.run("eve", &["answer", &id, "approve"]);
    assert_eq!(other.code, Some(3), "{}", other.err);
    assert!(other.err.contains("was answered already: rejected"), "{}", other.err);
    let same = desk.run("eve", &["answer", &id, "reject"]);
    assert_eq!((same.code, same.out.as_str()), (Some(0), "rejected by sam; not sent\n"));
    assert!(desk.outbox().is_empty());
}

#[test]
fn the_same_answer_from_many_processes_at_once_sends_once() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    let answering: Vec<Child> =
        (0..4).map(|n| desk.spawn(&format!("p{n}"), &["answer", &id, "approve"])).collect();
    let told: Vec<Done> = answering.into_iter().map(Done::of).collect();
    for done in &told {
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert_eq!(done.out, told[0].out, "all are told what the first answer came to");
    }
    assert_eq!(desk.outbox().len(), 1);
}

#[test]
fn of_two_different_answers_at_once_the_first_holds() {
    for _ in 0..3 {
        let desk = Desk::new();
        let id = desk.start("Dear all");
        let yes = desk.spawn("sam", &["answer", &id, "approve"]);
        let no = desk.spawn("eve", &["answer", &id, "reject"]);
        let (yes, no) = (Done::of(yes), Done::of(no));
        let codes = (yes.code, no.code);
        assert!(matches!(codes, (Some(0), Some(3)) | (Some(3), Some(0))), "{codes:?} {}", no.err);
        assert_eq!(desk.outbox().len(), usize::from(yes.code == Some(0)));
    }
}

#[test]
fn while_one_process_sends_another_answer_is_refused_and_the_same_one_waits() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    let pause = desk.pausing();
    let sending = desk.spawn("sam", &["answer", &id, "approve", "--notify", &pause]);
    desk.wait_until_at_work();
    let no = desk.run("eve", &["answer", &id, "reject"]);
    assert_eq!(no.code, Some(3), "{}", no.err);
    assert!(desk.run("eve", &["list"]).out.contains("is at work"));
    let same = desk.spawn("eve", &["answer", &id, "approve", "--notify", &pause]);
    desk.go_on();
    let (sent, same) = (Done::of(sending), Done::of(same));
    assert_eq!((sent.code, same.code), (Some(0), Some(0)), "{}{}", sent.err, same.err);
    assert_eq!(sent.out, same.out);
    assert_eq!(desk.outbox().len(), 1);
}

#[test]
fn a_process_killed_while_it_sends_leaves_no_second_letter() {
    let desk = Desk::new();
    let id = desk.start("Dear all");
    let pause = desk.pausing();
    let mut sending = desk.spawn("sam", &["answer", &id, "approve", "--notify", &pause]);
    desk.wait_until_at_work();
    sending.kill().unwrap();
    sending.wait().unwrap();
    desk.go_on();
    assert_eq!(desk.outbox().len(), 1, "the letter has left, and nobody has recorded it");
    let listed = desk.run("eve", &["list"]).out;
    assert!(listed.contains("was cut off"), "{listed}");

    let done = desk.run("eve", &["resume", &id]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.starts_with("approved by sam; sent: "), "{}", done.out);
    assert_eq!(desk.outbox().len(), 1, "the outbox was looked through first");
    let history = desk.run("eve", &["history", &id]).out;
    assert!(history.contains("taken over"), "{history}");
    assert_eq!(history.matches("answered by").count(), 1, "{history}");
}
