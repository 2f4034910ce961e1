//! The host is killed while it replays a stored graph.
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use harness_esg::CodeGraph;

use super::kills::{end, program, source};
use super::{shown, worker};

const DIR: &str = "HARNESS_TEST_GRAPH";

/// The number of kills.
const KILLS: u32 = 40;

/// The process that the test below kills: it edits and replays in a loop. Does nothing when it runs
/// as a test.
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
        println!("round {round}");
        graph.edit(|program| program.replace("s0", &source(round + 1))).unwrap();
    }
}

/// The current round of the program.
fn round(graph: &CodeGraph) -> usize {
    let source = &graph.program().step("s0").unwrap().source;
    let digits = source.trim_start_matches("v = ").split('\n').next().unwrap();
    digits.parse().unwrap()
}

/// Recent timings of hosts, which determine the moments of the kills.
#[derive(Debug, Default)]
struct Pace {
    /// From the start until the graph is open.
    opens: Duration,
    /// A replay.
    round: Duration,
}

/// A host process.
struct Host {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The time of its last line, or of its start.
    last: Instant,
}

impl Host {
    fn start(dir: &Path, temporary: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hosts::a_host", "--nocapture"])
            .env(DIR, dir)
            // Also removes what such a host leaves of scratch.
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, last: Instant::now() }
    }

    /// Waits for the line with this prefix. Returns the rest of the line, and the time since the
    /// last one. `None` if the host has ended.
    fn line(&mut self, of: &str) -> Option<(String, Duration)> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let rest = lines.find_map(|line| line.strip_prefix(of).map(str::to_owned))?;
        let now = Instant::now();
        Some((rest, now - std::mem::replace(&mut self.last, now)))
    }

    /// Waits until the graph is open, and for some rounds. Returns the last of these.
    fn gets_to(&mut self, rounds: u32, pace: &mut Pace) -> Option<usize> {
        pace.opens = self.line("ready")?.1;
        let mut last = None;
        for _ in 0..rounds {
            let (round, took) = self.line("round ")?;
            pace.round = took;
            last = Some(round.parse().unwrap());
        }
        last
    }

    /// Kills it. It must not have ended by itself.
    fn kill(mut self, kill: u32) {
        let alive = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        let output = self.child.wait_with_output().unwrap();
        assert!(alive, "kill {kill}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_host_killed_at_any_moment_resumes() {
    let temporary = tempfile::tempdir().unwrap();
    let mut pace = Pace::default();
    let mut undisturbed = Host::start(&temporary.path().join("other"), temporary.path());
    undisturbed.gets_to(3, &mut pace);
    undisturbed.kill(0);
    let dir = temporary.path().join("graph");
    let (mut reached, mut midway) = (0, 0);
    for kill in 0..KILLS {
        let mut host = Host::start(&dir, temporary.path());
        // One in four is killed before it is ready: while it starts or opens the graph. The others
        // are killed before or after a few rounds, from the start until a little after the end.
        let part = |whole: Duration| whole * (kill * 7 % KILLS) / 36;
        if kill % 4 == 0 {
            std::thread::sleep(part(pace.opens));
        } else {
            if let Some(round) = host.gets_to(kill % 4 - 1, &mut pace) {
                assert!(round >= reached, "kill {kill}: round {reached} is lost, it is {round}");
                reached = round;
            }
            std::thread::sleep(part(pace.round));
        }
        host.kill(kill);
        midway += usize::from(nothing_twice(&dir, kill));
    }
    let mut graph = CodeGraph::open(&dir, worker()).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let round = round(&graph);
    assert!(round > 10, "the hosts hardly got anywhere: {round} rounds");
    assert!(round >= reached, "round {reached} is lost, it is {round}");
    assert!(midway > 0, "no replay was hit: {pace:?}");
    assert_eq!(shown(&mut graph, end(round).0), end(round).1);
    assert!(graph.verify().unwrap().same);
    nothing_twice(&dir, KILLS);
}

/// No step ran twice on the same values, and no replay completed without all of its steps. Returns
/// whether the last replay is incomplete.
fn nothing_twice(dir: &Path, kill: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(dir.join("journal")) else {
        assert!(kill == 0, "there is no journal after kill {kill}");
        return false;
    };
    let mut midway = false;
    let (mut ran, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else { break };
        let record: serde_json::Value = serde_json::from_str(&line[17..]).unwrap();
        midway = record.get("ran").is_some();
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
    midway
}
