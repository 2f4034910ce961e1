//! The `chat` program without a key, with its terminal as a pipe.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn chat(dir: &Path, lines: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_chat"))
        .args(["--session", "s", "--store"])
        .arg(dir)
        .env_remove("CHAT_MODEL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_conversation_continues_with_its_open_question() {
    let kept = tempfile::tempdir().unwrap();
    let notes = || fs::read_to_string(kept.path().join("notes.txt")).unwrap_or_default();
    let out = chat(kept.path(), "hello\nnote buy milk\n\n");
    assert!(out.contains("You said: hello."), "{out}");
    assert!(out.contains("call \"write_note\" with {\"text\":\"buy milk\"}?"), "{out}");
    assert!(out.contains("(nothing was approved)"), "{out}");
    assert!(out.contains("continue with --session s"), "{out}");
    assert_eq!(notes(), "", "an empty line and the end of the input approve nothing");

    // Another process: an edit that does not fit, one that does, a rule, and what it allows.
    let out = chat(
        kept.path(),
        "e {\"text\": 7}\ne {\"text\": \"buy oats\"}\nnote bread\na\nnote bread\nnotes\n",
    );
    assert!(out.contains("refused: "), "{out}");
    assert!(out.contains("[write_note: ok]"), "{out}");
    assert_eq!(notes(), "buy oats\nbread\nbread\n");
    assert_eq!(out.matches("call \"write_note\"").count(), 3, "{out}");
    assert!(out.contains("The tool says: buy oats"), "{out}");
}
