//! The examples that are a single file: what they print.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn run(program: &str) -> String {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hello_prints_its_answer() {
    let out = run(env!("CARGO_BIN_EXE_hello"));
    assert_eq!(out, "Take an umbrella.\n");
}

#[test]
fn a_fork_leaves_its_source_unchanged() {
    let out = run(env!("CARGO_BIN_EXE_time_travel"));
    let coast = "the gate, the mill, the bridge, the coast, home";
    assert!(out.contains(&format!("ended after 6 hours: {coast}\n")), "{}", out);
    assert!(out.contains("it ended after 9 hours: the gate, the mill, the bridge, the hills"));
    assert!(out.ends_with(&format!("the first session is unchanged: {coast}\n")), "{}", out);
}
