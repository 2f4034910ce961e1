//! The examples that run by themselves: what they print.
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

#[test]
fn a_report_calls_each_agent_once_in_two_processes() {
    let out = run(env!("CARGO_BIN_EXE_children"));
    assert!(out.contains("wells are deep; nothing is known of dragons; 0 faults\n"), "{out}");
    assert!(out.ends_with("each topic was looked up once, by a session of its own\n"), "{out}");
}

#[test]
fn the_tools_of_an_mcp_server_are_used() {
    let out = run(env!("CARGO_BIN_EXE_mcp"));
    let expected = "notes_add (external): Adds a note.\nnotes_list (read): Lists the notes.\n\
                    - 1 notes\n- milk\nMilk is on your list.\n";
    assert_eq!(out, expected);
}

#[test]
fn the_orders_of_a_killed_worker_are_shipped_by_the_others() {
    let out = run(env!("CARGO_BIN_EXE_workers"));
    assert!(out.contains(" was killed with "), "{out}");
    assert!(
        out.ends_with("nothing is lost: 40 orders were queued, and each was shipped once\n"),
        "{out}"
    );
}
