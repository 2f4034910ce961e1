//! A program of code steps in a directory that is encrypted with the keys of sessions, and its process
//! killed in the middle of a write.

use std::path::Path;

use harness_esg::{CPython, CipherError, CodeGraph, EsgError, Trust, WorkerProcess};
use harness_store::{Key, Keys};

use super::canary::all_bytes;
use crate::process::{Other, hear, role, say};

const CANARY: &str = "CANARYsource";
const KILLS: usize = 6;

fn key(id: &str, secret: u8) -> Key {
    Key::new(id, [secret; 32]).unwrap()
}

fn worker() -> WorkerProcess {
    CPython::find().trust(Trust::Mine).start().unwrap()
}

fn open(dir: &Path, keys: Keys) -> Result<CodeGraph, EsgError> {
    CodeGraph::open_encrypted(dir, worker(), keys)
}

fn shows_canary(dir: &Path) -> bool {
    all_bytes(dir).windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
}

#[test]
fn a_program_is_kept_with_the_keys_of_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let old = || Keys::new(key("old", 1));
    let mut graph = open(dir.path(), old()).unwrap();
    let steps = [
        ("text", format!("text = '{CANARY}'")),
        ("many", "many = [text + str(n) for n in range(2000)]".to_owned()),
        ("size", "print(many[7])\nsize = len(many)".to_owned()),
    ];
    graph
        .edit(|program| steps.iter().try_for_each(|(id, text)| program.push(id, text).map(drop)))
        .unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    assert!(!format!("{graph:?}").contains(CANARY), "{graph:?}");
    drop(graph);
    assert!(!shows_canary(dir.path()));

    // Another process, with a new key for what it adds: it runs that and nothing else.
    let turned = || Keys::new(key("new", 2)).also(key("old", 1));
    let mut graph = open(dir.path(), turned()).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert_eq!(graph.value("size").unwrap().repr, "2000");
    graph.edit(|program| program.push("more", "more = many[9]").map(drop)).unwrap();
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!(ran, ["more"], "{report}");
    assert!(graph.verify().unwrap().same);
    drop(graph);
    assert!(!shows_canary(dir.path()));

    // Without a key, or with another of its name, nothing is opened.
    let wrong = open(dir.path(), Keys::new(key("new", 2)).also(key("old", 3))).unwrap_err();
    assert_eq!(wrong.cipher_error(), Some(&CipherError::WrongKey { key: "old".to_owned() }));
    let missing = open(dir.path(), old()).unwrap_err();
    assert_eq!(missing.cipher_error(), Some(&CipherError::MissingKey { key: "new".to_owned() }));
    for error in [wrong, missing] {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
    }
    let mut graph = open(dir.path(), turned()).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
}

fn source(round: usize) -> String {
    // Long, so that a kill may fall into the middle of a write.
    format!("round = {round}\n# {}", CANARY.repeat(500))
}

/// The round that the program is at, 0 before the first.
fn round(graph: &CodeGraph) -> usize {
    let Ok(step) = graph.program().step("s") else { return 0 };
    let digits = step.source.strip_prefix("round = ").unwrap().lines().next().unwrap();
    digits.parse().unwrap()
}

/// The process that the test below kills; nothing if this is not one.
#[test]
fn other() {
    let Some((_, dir)) = role() else { return };
    let mut graph = open(Path::new(&dir), Keys::new(key("k", 7))).unwrap();
    let begun = round(&graph);
    say(&format!("at {begun}"));
    assert_eq!(hear(), "go");
    if begun == 0 {
        graph.edit(|program| program.push("s", &source(1)).map(drop)).unwrap();
    }
    for round in round(&graph) + 1.. {
        graph.edit(|program| program.replace("s", &source(round))).unwrap();
        say(&format!("at {round}"));
        if round % 4 == 0 {
            assert!(graph.replay().unwrap().ok());
            say(&format!("at {round}"));
        }
    }
}

fn at(line: &str) -> usize {
    line.strip_prefix("at ").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

#[test]
fn a_process_killed_in_a_write_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut reached = 0;
    for kill in 0..KILLS {
        let mut process = Other::of("encrypted::code::other", "graph", dir.path());
        let found = at(&process.hear());
        assert!(found >= reached, "kill {kill}: {reached} was acknowledged, it is at {found}");
        process.say("go");
        for _ in 0..=kill % 5 {
            reached = at(&process.hear());
        }
        // Until it is dead it may have gone further.
        reached = process.kill().iter().map(|line| at(line)).max().unwrap_or(reached);
    }
    let keys = || Keys::new(key("k", 7));
    let mut graph = open(dir.path(), keys()).unwrap();
    let found = round(&graph);
    assert!(found >= reached && found > KILLS, "{reached} was acknowledged, it is at {found}");
    assert!(graph.replay().unwrap().ok());
    assert_eq!(graph.value("round").unwrap().repr, found.to_string());
    assert!(graph.verify().unwrap().same);
    drop(graph);
    assert!(!shows_canary(dir.path()));

    // What is there of a last record is cut; any other change is damage.
    let path = dir.path().join("journal");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let mut graph = open(dir.path(), keys()).unwrap();
    assert_eq!(round(&graph), found);
    assert!(graph.replay().unwrap().ok());
    drop(graph);
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    let damaged = open(dir.path(), keys()).unwrap_err();
    assert!(damaged.is_damaged(), "{damaged}");
    assert!(!format!("{damaged} {damaged:?}").contains(CANARY));
    assert_eq!(std::fs::read(&path).unwrap(), changed, "it is left as it was");
}
