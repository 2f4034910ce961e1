//! The host is killed while it replays a graph that is kept.
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use harness_esg::CodeGraph;

use super::kills::{end, program, source};
use super::{shown, worker};

const DIR: &str = "HARNESS_TEST_GRAPH";

/// How often it is killed.
const KILLS: u32 = 40;

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
        println!("round {round}");
        graph.edit(|program| program.replace("s0", &source(round + 1))).unwrap();
    }
}

/// The round that the program is in.
fn round(graph: &CodeGraph) -> usize {
    let source = &graph.program().step("s0").unwrap().source;
    let digits = source.trim_start_matches("v = ").split('\n').next().unwrap();
    digits.parse().unwrap()
}

/// How long hosts took of late, here and now: the moments of the kills are parts of it.
#[derive(Debug, Default)]
struct Pace {
    /// From the start until the graph is open.
    opens: Duration,
    /// A replay.
    round: Duration,
}

/// A host in a process of its own.
struct Host {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// When it told of something last, or was started.
    last: Instant,
}

impl Host {
    fn start(dir: &Path, temporary: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hosts::a_host", "--nocapture"])
            .env(DIR, dir)
            // What such a host leaves of scratch goes with this.
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, last: Instant::now() }
    }

    /// Waits for the line that begins so. Answers what follows, and how long it took since the last.
    /// There is none from a host that has come to its end.
    fn told(&mut self, of: &str) -> Option<(String, Duration)> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let rest = lines.find_map(|line| line.strip_prefix(of).map(str::to_owned))?;
        let now = Instant::now();
        Some((rest, now - std::mem::replace(&mut self.last, now)))
    }

    /// Waits until the graph is open, and for so many rounds after it. Answers the last of these.
    fn gets_to(&mut self, rounds: u32, pace: &mut Pace) -> Option<usize> {
        pace.opens = self.told("ready")?.1;
        let mut last = None;
        for _ in 0..rounds {
            let (round, took) = self.told("round ")?;
            pace.round = took;
            last = Some(round.parse().unwrap());
        }
        last
    }

    /// Kills it, which must not have come to its end by itself.
    fn kill(mut self, kill: u32) {
        let alive = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        let output = self.child.wait_with_output().unwrap();
        assert!(alive, "kill {kill}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_host_killed_at_any_moment_goes_on_where_it_was() {
    let temporary = tempfile::tempdir().unwrap();
    let mut pace = Pace::default();
    let mut undisturbed = Host::start(&temporary.path().join("other"), temporary.path());
    undisturbed.gets_to(3, &mut pace);
    undisturbed.kill(0);
    let dir = temporary.path().join("graph");
    let (mut reached, mut midway) = (0, 0);
    for kill in 0..KILLS {
        let mut host = Host::start(&dir, temporary.path());
        // One in four is killed before it is ready: while it opens what is there, or starts. The
        // others are before or after a few rounds. From the beginning until a little after the end.
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

/// No step ran twice on the same values, and no replay came to its end without all of its steps.
/// Answers whether the last replay has begun and not come to its end.
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
