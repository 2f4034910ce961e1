//! The host is killed while it replays a graph that is kept.
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::esg::CodeGraph;

use super::kills::{end, program, source};
use super::{shown, worker};

const DIR: &str = "HARNESS_TEST_GRAPH";

/// How often it is killed.
const KILLS: u64 = 40;

/// What the test below kills: it edits and replays without end. Does nothing when run as a test.
#[test]
fn a_host() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let mut graph = CodeGraph::open(dir, worker()).unwrap();
    if graph.program().steps().count() == 0 {
        let steps = program(1);
        graph
            .edit(|program| {
                steps.iter().try_for_each(|(id, source)| program.push(id, source).map(drop))
            })
            .unwrap();
    }
    println!("\nready");
    loop {
        let report = graph.replay().unwrap();
        assert!(report.ok(), "{report}");
        let round = round(&graph);
        assert_eq!(shown(&mut graph, end(round).0), end(round).1);
        graph.edit(|program| program.replace("s0", &source(round + 1))).unwrap();
    }
}

/// The round that the program is in.
fn round(graph: &CodeGraph) -> usize {
    let source = &graph.program().step("s0").unwrap().source;
    let digits = source.trim_start_matches("v = ").split('\n').next().unwrap();
    digits.parse().unwrap()
}

#[test]
fn a_host_killed_at_any_moment_goes_on_where_it_was() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("graph");
    for kill in 0..KILLS {
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hosts::a_host", "--nocapture"])
            .env(DIR, &dir)
            // What such a host leaves of scratch goes with this.
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
        // One in four is killed before it is ready: while it opens what is there, or starts.
        if kill % 4 == 0 || lines.any(|line| line == "ready") {
            std::thread::sleep(Duration::from_micros(kill * 7_919 % 120_000));
        }
        let alive = host.try_wait().unwrap().is_none();
        host.kill().unwrap();
        let output = host.wait_with_output().unwrap();
        assert!(alive, "kill {kill}: {}", String::from_utf8_lossy(&output.stderr));
        nothing_twice(&dir, kill);
    }
    let mut graph = CodeGraph::open(&dir, worker()).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let round = round(&graph);
    assert!(round > 10, "the hosts hardly got anywhere: {round} rounds");
    assert_eq!(shown(&mut graph, end(round).0), end(round).1);
    assert!(graph.verify().unwrap().same);
    nothing_twice(&dir, KILLS);
}

/// No step ran twice on the same values, and no replay came to its end without all of its steps.
fn nothing_twice(dir: &Path, kill: u64) {
    let Ok(text) = std::fs::read_to_string(dir.join("journal")) else {
        assert!(kill < 4, "there is no journal after {kill} kills");
        return;
    };
    let (mut ran, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else { break };
        let record: serde_json::Value = serde_json::from_str(&line[17..]).unwrap();
        if let Some(execution) = record.get("ran") {
            let what = format!(
                "{} {} {}",
                execution["step"], execution["source"], execution["trace"]["joint"]
            );
            assert_eq!(execution["ending"]["kind"], "ok", "{what}");
            assert!(ran.insert(what.clone()), "after {kill} kills, this ran twice: {what}");
            assert!(numbers.insert(execution["seq"].as_u64()), "two have one number: {what}");
        }
        if let Some(settled) = record.get("settled") {
            let stands: Vec<_> =
                settled["executions"].as_array().unwrap().iter().map(|seq| seq.as_u64()).collect();
            assert_eq!(stands.len(), 10, "{settled}");
            assert!(stands.iter().all(|seq| numbers.contains(seq)), "{settled}");
        }
    }
}
