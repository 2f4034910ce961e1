//! The `esg` program, from its command line.

// The allowances cover the helpers of the tests too.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const SCRIPT: &str = "\
# %% load
rows = [{'v': 3}, {'v': 0}]
# %% clean
rows = [r for r in rows if r['v'] > 2]
# %% report
total = sum(r['v'] for r in rows)
print('total', total)
# %% other
n = 5
";

struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

/// A directory with a script.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("script.py", SCRIPT);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn esg(&self, args: &[&str]) -> Done {
        self.esg_reading("", args)
    }

    fn esg_reading(&self, input: &str, args: &[&str]) -> Done {
        let mut child = Command::new(env!("CARGO_BIN_EXE_esg"))
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn scan_says_what_a_source_reads_and_writes() {
    let folder = Folder::new();
    let done = folder.esg_reading("total = sum(rows) + off\nlog.append(total)", &["scan", "-"]);
    assert_eq!((done.code, &*done.err), (Some(0), ""));
    let scan: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(scan["reads"], json!(["log", "off", "rows"]));
    assert_eq!(scan["writes"], json!(["total"]));
    assert_eq!(scan["builtin_reads"], json!(["sum"]));
    let done = folder.esg_reading("x = = 1", &["scan", "-"]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    let scan: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(scan["errors"][0]["line"], json!(1));
    let done = folder.esg(&["scan", "missing.py"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("missing.py"), "{}", done.err);
}

#[test]
fn plan_prints_the_steps_without_running_them() {
    let done = Folder::new().esg(&["plan", "script.py"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    for step in ["load", "clean", "report", "other"] {
        assert!(done.out.lines().any(|line| line.contains(step)), "{step}: {}", done.out);
    }
    assert!(!done.out.contains("total 3"), "{}", done.out);
}

#[test]
fn run_runs_again_what_an_edit_touched() {
    let folder = Folder::new();
    folder.write("clean.py", "rows = [r for r in rows if r['v'] < 3]\n");
    let done = folder.esg(&["run", "script.py", "--edit", "clean=clean.py", "--verify"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let (before, after) = done.out.split_once("after the edit of clean").unwrap();
    assert!(before.contains("ran 4") && before.contains("report | total 3"), "{before}");
    assert!(after.contains("ran 2") && after.contains("kept 2"), "{after}");
    assert!(after.contains("report | total 0"), "{after}");
    assert!(done.err.contains("only code that you trust"), "{}", done.err);
    let done = folder.esg(&["run", "script.py", "--edit", "missing=clean.py"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("missing"), "{}", done.err);
}

#[test]
fn a_step_that_fails_is_reported() {
    let folder = Folder::new();
    folder.write("bad.py", "# %% a\nx = 1\n# %% b\ny = x / 0\n# %% c\nz = y\n");
    let done = folder.esg(&["run", "bad.py", "--verify"]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.out.contains("b failed: ZeroDivisionError"), "{}", done.out);
    assert!(done.out.contains("c is blocked"), "{}", done.out);
}

#[test]
fn a_stored_program_runs_only_what_changed() {
    let folder = Folder::new();
    let run = || folder.esg(&["run", "script.py", "--store", "kept"]);
    let done = run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("ran 4"), "{}", done.out);
    let done = run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("ran 0") && done.out.contains("kept 4"), "{}", done.out);
    // After a change of the file, only the changed step runs.
    folder.write("script.py", &SCRIPT.replace("n = 5", "n = total"));
    let done = run();
    assert!(done.out.contains("ran 1") && done.out.contains("other ran"), "{}", done.out);
}

#[test]
fn answers_are_given_for_a_file_of_cases() {
    let folder = Folder::new();
    let cases = json!({"cases": [
        {"id": "one", "source": "y = x + 1"},
        {"id": "none", "source": "y = = 1"},
    ]});
    folder.write("cases.json", &cases.to_string());
    let done = folder.esg(&["answers", "vectors", "cases.json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let answers: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(answers["one"]["reads"], json!(["x"]));
    assert!(answers["none"]["error"].is_string(), "{answers}");

    let programs = json!({"programs": [{
        "id": "p",
        "steps": [
            {"id": "a", "source": "xs = [1, 2]"},
            {"id": "b", "source": "n = len(xs)"},
            {"id": "c", "source": "k = 7"},
        ],
        "edits": [
            {"step": "a", "kind": "replace", "new_source": "xs = [3]"},
            {"step": "b", "kind": "remove", "new_source": null},
        ],
    }]});
    folder.write("programs.json", &programs.to_string());
    let done = folder.esg(&["answers", "edges", "programs.json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let answers: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(answers["p"]["edges"], json!([["a", "b"]]));
    assert_eq!(answers["p"]["edits"], json!([["a", "b"], []]));
    assert!(done.err.contains("state mismatches: 0"), "{}", done.err);
}
