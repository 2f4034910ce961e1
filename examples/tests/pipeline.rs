//! The `pipeline` program, from its command line.

// The allowances cover the helpers of the tests too.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines").join(file)
}

fn pipeline(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pipeline")).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn words_are_counted_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let ran = pipeline(&[Path::new("--out"), folder.path(), &shipped("words.toml")]);
    let file = folder.path().join("words.txt");
    assert_eq!(out(&ran), format!("wrote {}\n", file.display()));
    let words = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[..2], ["     4 time", "     4 the"]);
    assert!(!words.contains("proverbs"), "{words}");
}

#[test]
fn a_cycle_runs_until_nothing_repeats() {
    let lines = out(&pipeline(&[&shipped("unique.toml")]));
    assert_eq!(
        lines,
        "# Proverbs, one a line.\nA stitch in time saves nine\nBetter late than never\n\
         The early bird catches the worm\nThe pen is mightier than the sword\n\
         Time and tide wait for no man\nTime heals all wounds\n"
    );
}

#[test]
fn a_pipeline_is_drawn_instead_of_run() {
    let drawn = out(&pipeline(&[Path::new("--draw"), &shipped("unique.toml")]));
    for line in [
        "start([\"unique\"]) --> s0",
        "s1{\"check\"}",
        "s1 -- \"Repeated\" --> s2",
        "s4[\"publish\"]",
        "style s4 fill",
    ] {
        assert!(drawn.contains(line), "{drawn}");
    }
}

#[test]
fn a_missing_input_fails_the_run_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lost.toml");
    let text = "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'read'\n\
                with = { files = ['gone.txt'] }\nend = true\n";
    std::fs::write(&file, text).unwrap();
    let ran = pipeline(&[&file]);
    let message = stderr(&ran);
    assert!(!ran.status.success() && message.contains("gone.txt"), "{message}");
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the shipped pipeline `unique` with something on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .arg(shipped("unique.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn input_comes_from_another_file_or_the_standard_input() {
    let (_folder, other) = written("other.txt", "b\na\n");
    let file = format!("input/proverbs.txt={}", other.display());
    let arguments = ["--input", &file, "--input", "input/more.txt=-"];
    assert_eq!(out(&fed(&arguments, b"c\nb\n")), "a\nb\nc\n");
    let wrong = ["--input", "input/mroe.txt=-"].map(Path::new);
    let ran = pipeline(&[wrong[0], wrong[1], &shipped("unique.toml")]);
    let message = stderr(&ran);
    assert!(message.contains("`input/mroe.txt` (did you mean `input/more.txt`?)"), "{message}");
    let twice = ["--input", &file, "--input", &file].map(Path::new);
    let ran = pipeline(&[&twice[..], &[&shipped("unique.toml")]].concat());
    let message = stderr(&ran);
    assert!(message.contains("the input `input/proverbs.txt` is given twice"), "{message}");
}

/// It is read once; every step that reads it gets the same bytes.
#[test]
fn two_files_may_be_the_standard_input() {
    let arguments = ["--input", "input/proverbs.txt=-", "--input", "input/more.txt=-"];
    assert_eq!(out(&fed(&arguments, b"c\n")), "c\n");
}

/// A file with this content, which lives as long as the folder.
fn written(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, content).unwrap();
    (folder, file)
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_not_read_to_it() {
    let message = stderr(&pipeline(&[Path::new("/dev/zero")]));
    assert!(message.contains("it has more than 16777216 bytes"), "{message}");
    let (_folder, file) = written(
        "zeros.toml",
        "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'read'\nend = true\n\
         with = { files = ['/dev/zero'] }\n",
    );
    let ran = pipeline(&[&file]);
    let message = stderr(&ran);
    assert!(
        message.contains("`/dev/zero` is too large: all input may be 67108864 bytes"),
        "{message}"
    );
}

#[test]
fn a_pipeline_is_run_and_drawn_with_its_path() {
    let traced = pipeline(&[Path::new("--trace"), &shipped("unique.toml")]);
    let drawn = out(&traced);
    for line in ["s1{\"check ×2\"}:::visited", "s2[\"dedupe ×1\"]:::visited", "s4[\"publish\"]"] {
        assert!(drawn.contains(line), "{drawn}");
    }
    let message = stderr(&traced);
    assert!(message.starts_with("# Proverbs, one a line.\nA stitch in time"), "{message}");
    let dot = out(&pipeline(&[Path::new("--trace"), Path::new("--dot"), &shipped("unique.toml")]));
    assert!(dot.contains("digraph") && dot.contains("check ×2"), "{dot}");
    let dot = out(&pipeline(&[Path::new("--dot"), &shipped("unique.toml")]));
    assert!(dot.contains("digraph") && !dot.contains('×'), "{dot}");
}

#[test]
fn a_spent_budget_names_the_limit_and_what_to_do_and_is_still_drawn() {
    let (_folder, file) = written(
        "endless.toml",
        "name = 'x'\nstart = 'a'\nbudget = 7\n[[step]]\nname = 'a'\nrun = 'sort'\n\
         route = 'amount'\nto = { None = 'a' }\nends = ['Some']\n",
    );
    let ran = pipeline(&[Path::new("--trace"), &file]);
    let message = stderr(&ran);
    assert!(!ran.status.success());
    assert!(message.contains("its steps of 7 (raise `budget`"), "{message}");
    let drawn = String::from_utf8_lossy(&ran.stdout);
    assert!(drawn.contains("a ×7"), "{drawn}");
}
