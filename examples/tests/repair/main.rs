//! The `repair` program, from its command line: what it prints, how it exits, and which files it
//! leaves unchanged.
//!
//! These tests need a CPython of 3.11 to 3.13 and a kernel that can isolate it; they fail without.

// The allowances cover the helpers of the tests too.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[cfg(unix)]
mod asking;
mod files;
mod programs;
#[cfg(unix)]
mod resuming;
#[cfg(unix)]
mod stopping;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A misspelt name with two near ones: the first proposal is wrong.
const TWO_WAYS: &str = "items = 1\ntimes = 2\nprint(itmes)\n";

struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_repair"));
    command.stdin(Stdio::null()).env("USER", "ada").env("TERM", "xterm").env_remove("NO_COLOR");
    command.env_remove("VIRTUAL_ENV");
    command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/data"));
    command
}

fn repair<'a>(args: impl IntoIterator<Item = &'a str>) -> Done {
    Done::of(program().args(args).output().unwrap())
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

fn stubborn(name: &str) -> String {
    scripts().join("stubborn").join(name).display().to_string()
}

/// A folder with one script and what it should print.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(name: &str, source: &str, expected: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.path(name), source).unwrap();
        std::fs::write(folder.path(name).with_extension("expected"), expected).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

#[test]
fn every_shipped_script_is_repaired() {
    let done = repair(["--yes", "--json"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{}", done.out);
    let reports = done.json();
    assert!(reports.len() >= 8);
    for report in reports {
        let name = report["name"].as_str().unwrap();
        let expected = scripts().join(name).with_extension("expected");
        assert_eq!(report["outcome"], "fixed", "{report:#}");
        assert_eq!(report["output"], std::fs::read_to_string(expected).unwrap());
        assert_eq!(report["written"], false);
        assert!(report["rounds"].as_u64().unwrap() >= 1, "{report:#}");
        assert!(report["diff"].as_str().unwrap().contains("\n@@ "), "{report:#}");
        let tried = report["tried"].as_array().unwrap();
        assert!(tried.iter().any(|tried| tried["accepted"] == true), "{report:#}");
        for tried in tried {
            assert!(tried["by"] == "rules" && tried["line"].is_u64(), "{tried}");
            assert!(tried["explanation"].is_string(), "{tried}");
        }
    }
}

#[test]
fn people_read_what_was_tried_the_outcome_and_the_diff() {
    let done = repair(["--yes"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{}", done.out);
    assert!(!done.out.contains('\u{1b}'), "no colours where there is no terminal");
    let (_, end) = done.out.rsplit_once("tree.py: fixed\n").unwrap();
    assert!(
        end.contains(
            "  + line 21, misspelt name: `nmaes` is not defined; `names` is (approved by --yes)\n"
        ),
        "{end}"
    );
    // What ran again, what did not, and the time that this saves.
    let kept = |line: &str| line.contains(" parts: ") && line.contains(" kept (");
    assert!(end.lines().any(|line| kept(line) && line.ends_with("s saved)")), "{end}");
    assert!(end.contains("\n-print(\"depth:\", depth(TREE))\n+print("), "{end}");
    assert!(done.out.ends_with("10 of 10 run; 45 repairs applied; no file of yours was changed\n"));
}

#[test]
fn what_cannot_be_repaired_is_reported() {
    for (name, words) in [
        ("no_rule.py", "there is no acceptable patch for: ZeroDivisionError on line 11"),
        (
            "wrong_total.py",
            "prints something else: expected \"Total: 27.06\\n\", got \"Total: 24.60\\n\"",
        ),
        ("endless.py", "it exceeded its time limit of 2s"),
        ("flood.py", "it exceeded its time limit of 2s"),
        ("memory_hog.py", "there is no acceptable patch for: MemoryError on line"),
    ] {
        // Only what never ends should meet its limit of time.
        let seconds = if words.contains("time limit") { "2" } else { "60" };
        let done = repair(["--yes", "--seconds", seconds, &stubborn(name)]);
        assert_eq!(done.code, Some(1), "{name}: {}{}", done.out, done.err);
        let line = format!("{}: not fixed: ", stubborn(name));
        let found = done.out.lines().find(|found| found.starts_with(&line)).expect(&done.out);
        assert!(found.contains(words), "{found}");
        assert!(done.out.contains("0 of 1 run"), "{}", done.out);
    }
}

#[test]
fn a_proposal_that_leads_to_the_wrong_output_is_taken_back() {
    let folder = Folder::with("a.py", TWO_WAYS, "2\n");
    let done = repair(["--yes", "--json", &folder.name("a.py")]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let report = &done.json()[0];
    assert_eq!(report["tried"][0]["accepted"], false);
    assert_eq!(report["tried"][1]["accepted"], true);
    assert_eq!(report["output"], "2\n");
}

#[test]
fn the_rounds_bound_the_faults_of_a_file() {
    let path = scripts().join("tree.py").display().to_string();
    let done = repair(["--yes", "--rounds", "2", "--json", &path]);
    assert_eq!(done.code, Some(1));
    assert_eq!(done.json()[0]["why"], "it has more faults than 2 (see --rounds)");
    assert_eq!(repair(["--rounds", "0"]).code, Some(2));
}

#[test]
fn without_python_one_line_says_so() {
    let done = Done::of(program().env("PATH", "").arg("--yes").output().unwrap());
    assert_eq!(done.code, Some(2));
    assert_eq!(done.out, "");
    assert!(done.err.starts_with("repair: no CPython from 3.11 to 3.13 in PATH"), "{}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
}

#[test]
fn a_proposal_that_would_hide_the_failure_is_refused() {
    let folder = Folder::with("a.py", "evla('print(1)')\n", "1\n");
    let done = repair(["--yes", "--json", &folder.name("a.py")]);
    assert_eq!(done.code, Some(1), "{}", done.out);
    let report = &done.json()[0];
    assert_eq!(report["tried"][0]["accepted"], false, "{report:#}");
    assert_eq!(report["tried"][0]["fate"]["fate"], "refused", "{report:#}");
    assert!(report["tried"][0]["note"].as_str().unwrap().contains("adds `eval`"), "{report:#}");
    assert_eq!(report["diff"], "");
}
