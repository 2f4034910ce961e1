//! The programs of this crate, each command as a process of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

fn start(program: &str, dir: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.current_dir(dir).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}

fn support(dir: &Path, args: &[&str]) -> String {
    let args = [&["."], args].concat();
    finish(start(env!("CARGO_BIN_EXE_support"), dir, &args))
}

fn lines(dir: &Path, file: &str) -> usize {
    std::fs::read_to_string(dir.join(file)).map(|text| text.lines().count()).unwrap_or(0)
}

#[test]
fn hello_answers() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = finish(start(env!("CARGO_BIN_EXE_hello"), dir.path(), &[]));
    assert_eq!(said, "Take an umbrella.\n");
}

#[test]
fn two_approvals_are_answered_by_other_processes() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    assert_eq!(support(dir, &["start", "t-1", "order-9", "4200"]), "waits for an approval\n");
    let waiting = support(dir, &["waiting"]);
    assert!(waiting.starts_with("t-1 ") && waiting.contains("4200"), "{waiting}");
    assert_eq!(lines(dir, "refunds.txt"), 0, "refunded without an approval");

    assert_eq!(support(dir, &["answer", "t-1", "yes"]), "waits for an approval\n");
    assert_eq!((lines(dir, "refunds.txt"), lines(dir, "replies.txt")), (1, 0));
    assert!(support(dir, &["waiting"]).contains("is on its way"));

    assert_eq!(support(dir, &["answer", "t-1", "yes"]), "done: refund, by sam\n");
    assert_eq!((lines(dir, "refunds.txt"), lines(dir, "replies.txt")), (1, 1));
    assert_eq!(support(dir, &["waiting"]), "");
    // The same request again is the same input: it gives the same outcome, and does nothing twice.
    assert_eq!(support(dir, &["start", "t-1", "order-9", "4200"]), "done: refund, by sam\n");
    assert_eq!((lines(dir, "refunds.txt"), lines(dir, "replies.txt")), (1, 1));
}

#[test]
fn what_is_refused_is_not_done() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    support(dir, &["start", "t-2", "order-9", "4200"]);
    assert_eq!(support(dir, &["answer", "t-2", "no"]), "waits for an approval\n");
    let done = support(dir, &["answer", "t-2", "no"]);
    assert_eq!(done, "done: no refund, by sam; no reply\n");
    assert_eq!((lines(dir, "refunds.txt"), lines(dir, "replies.txt")), (0, 0));
}

#[test]
fn many_processes_answer_many_tickets() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let tickets: Vec<String> = (0..8).map(|n| format!("t-{n}")).collect();
    let support =
        |args: &[&str]| start(env!("CARGO_BIN_EXE_support"), dir, &[&["."], args].concat());
    let at_once = |args: &[&str]| {
        let all = tickets.iter().map(|ticket| {
            let args: Vec<&str> =
                args.iter().map(|arg| if *arg == "T" { ticket } else { *arg }).collect();
            support(&args)
        });
        let all: Vec<Child> = all.collect();
        all.into_iter().map(finish).collect::<Vec<String>>()
    };
    at_once(&["start", "T", "order", "100"]);
    at_once(&["answer", "T", "yes"]);
    let done = at_once(&["answer", "T", "yes"]);
    assert!(done.iter().all(|line| line == "done: refund, by sam\n"), "{done:?}");
    assert_eq!((lines(dir, "refunds.txt"), lines(dir, "replies.txt")), (8, 8));
}

#[test]
fn a_fan_out_counts_every_file_and_names_the_missing_one() {
    let dir = tempfile::tempdir().expect("a directory");
    for n in 1..=9 {
        std::fs::write(dir.path().join(format!("{n}.txt")), "line\n".repeat(n)).expect("a file");
    }
    let files: Vec<String> = (1..=10).map(|n| format!("{n}.txt")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let counted = finish(start(env!("CARGO_BIN_EXE_count"), dir.path(), &files));
    let rows: Vec<&str> = counted.lines().collect();
    assert_eq!((rows.len(), rows[0], rows[8]), (11, "     1 1.txt", "     9 9.txt"));
    assert!(rows[9].starts_with("     - "), "{counted}");
    assert_eq!(rows[10], "    45 in all");
}
