//! How the directories were written. What a store says of itself, its name and the time, differs
//! with every run; so does nothing that is read.

use std::fs;
use std::path::{Path, PathBuf};

use harness::store::{
    Batch, InboxSeq, Lease, Message, NewEntry, OpenInterrupt, Remove, Sent, SessionStore as _,
    SessionSummary,
};
use harness::{InterruptId, Seq, UtcMillis};
use harness_store::FileStore;
use serde_json::json;

use super::{
    ENDED, ESCAPED, GIVEN_BACK, LONG_ONE, MOVED, PRUNED, REMOVED, TORN, WAITS, folder, log_of, now,
    open, report, resume_all,
};
use crate::support::{LONG, id};

const OPEN: &str = r#"{"t":1763729326123,"open":{"v":1,"agent":"m","salt":"s","graph":{"name":"l","wiring":"1","steps":{"ask":"gate","talk":"run"}},"schema":{"version":1,"fields":[{"name":"lines","type":"Vec<String>","reducer":"append"},{"name":"n","type":"u8","reducer":"add"}]},"state":{"lines":[],"n":0}}}"#;
const RUN: &str = r#"{"t":1763729326124,"run":{"run":"r1","start":"talk","ops":[{"push":{"p":["lines"],"v":"Grüß Gott 🦊\u0000"}}],"input":"input/1"}}"#;
const COMMIT: &str = r#"{"t":1763729326125,"commit":{"n":"ask","o":[{"set":{"p":["n"],"v":1}}]}}"#;
const STAYS: &str = r#"{"t":1763729326125,"commit":{"n":"talk","o":[{"set":{"p":["n"],"v":1}}]}}"#;
const AGAIN: &str =
    r#"{"t":1763729326126,"commit":{"n":"talk","o":[{"push":{"p":["lines"],"v":"again"}}]}}"#;
const ASK: &str = r#"{"t":1763729326126,"ask":{"interrupts":[{"id":"2-aa","name":"approve","question":{"tool":"rm"},"answer_schema":true,"step":"ask","position":2,"key":null,"asked_at":1763729326126},{"id":"2-bb","name":"approve","question":null,"answer_schema":{"type":"boolean"},"step":"ask","position":2,"key":"b","asked_at":1763729326126,"expires_at":1763729327023},{"id":"2-cc","name":"approve","question":"?","answer_schema":true,"step":"ask","position":2,"key":"","asked_at":1763729326126}]}}"#;
const INTERRUPTED: &str =
    r#"{"t":1763729326127,"settle":{"end":{"as":"interrupted"},"active_ms":41}}"#;
const ENDS: &str = r#"{"t":1763729326128,"settle":{"end":{"as":"ended","by":["Next","Done"]}}}"#;
const SNAPSHOT: &str = r#"{"t":1763729326129,"snapshot":{"session":{"v":1,"agent":"m","salt":"s","graph":{"name":"l","wiring":"1","steps":{"ask":"gate","talk":"run"}},"schema":{"version":1,"fields":[{"name":"lines","type":"Vec<String>","reducer":"append"},{"name":"n","type":"u8","reducer":"add"}]},"phase":"running","cursor":{"step":"talk","position":2,"last":2,"attempt":0,"retries":0,"steps":1,"visits":{"talk":2}},"turn":1,"run":"r1","input":"input/1","spent":{"usage":{"input":null,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"total":{"usage":{"input":null,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"recovered":0,"inbox":0},"state":{"lines":["Grüß Gott 🦊\u0000"],"n":1}}}"#;

/// A session that is held, and its head.
struct Held<'a> {
    store: &'a FileStore,
    lease: Lease,
    head: u64,
}

/// What a batch says beside its entries.
#[derive(Default)]
struct Beside {
    facts: Option<SessionSummary>,
    ask: Vec<OpenInterrupt>,
    close: Vec<InterruptId>,
}

fn facts(phase: &str, mail: u64) -> Beside {
    let facts = json!({"agent": "m", "phase": phase, "step": "talk", "inbox": mail});
    Beside { facts: Some(serde_json::from_value(facts).unwrap()), ..Beside::default() }
}

impl Beside {
    fn due(mut self) -> Self {
        self.facts.as_mut().unwrap().due = Some(UtcMillis(4_102_444_800_000));
        self
    }

    fn ask(mut self, id: &str, expires: Option<u64>) -> Self {
        let (id, since) = (InterruptId::new(id), UtcMillis(1_763_729_326_126));
        self.ask.push(OpenInterrupt { id, since, expires: expires.map(UtcMillis) });
        self
    }

    fn close(mut self, id: &str) -> Self {
        self.close.push(InterruptId::new(id));
        self
    }
}

fn claim<'a>(store: &'a FileStore, session: &str) -> Held<'a> {
    let claimed = now(store.claim(&id(session), LONG)).unwrap();
    Held { store, lease: claimed.lease, head: claimed.head.0 }
}

impl Held<'_> {
    /// Appends at a time that lies before that of the log.
    fn append(&mut self, entries: &[&str], beside: Beside) {
        let entries: Vec<&[u8]> = entries.iter().map(|entry| entry.as_bytes()).collect();
        self.append_bytes(&entries, &beside, 1_763_729_326_200 + self.head);
    }

    fn append_bytes(&mut self, entries: &[&[u8]], beside: &Beside, at: u64) {
        let entries: Vec<NewEntry<'_>> = entries
            .iter()
            .map(|bytes| NewEntry {
                bytes,
                snapshot: bytes.windows(10).any(|part| part == b"\"snapshot\""),
            })
            .collect();
        let batch = Batch {
            after: Seq(self.head),
            at: UtcMillis(at),
            entries: &entries,
            summary: beside.facts.as_ref(),
            open: &beside.ask,
            close: &beside.close,
            flush: beside.facts.is_some(),
        };
        self.head = now(self.store.append(&self.lease, batch)).unwrap().head.0;
    }

    fn release(self) {
        now(self.store.release(&self.lease, InboxSeq(0))).map(drop).unwrap();
    }
}

fn post(store: &FileStore, session: &str, letters: &[Message]) {
    let posted = now(store.send(&id(session), letters)).unwrap();
    assert!(matches!(posted, Sent::Accepted(_)), "{posted:?}");
}

fn letter(key: &str, body: &[u8]) -> Message {
    let (key, digest, body) = (key.to_owned(), format!("of {key}"), body.to_vec());
    Message { key, digest, interrupt: None, expiry: false, body }
}

fn input(number: u8) -> Message {
    let body = json!({"input": {"update": {"lines": [format!("ein Gruß, „{number}“\n")]}}});
    letter(&format!("input/{number}"), body.to_string().as_bytes())
}

fn ended(store: &FileStore) {
    let mut held = claim(store, ENDED);
    held.append(&[OPEN, RUN], facts("running", 0));
    post(store, ENDED, &[input(1)]);
    held.append(&[STAYS], Beside::default());
    held.append(&[SNAPSHOT], Beside::default());
    held.append(&[AGAIN], Beside::default());
    held.append(&[ENDS], facts("ended", 1));
    held.release();
}

fn waits(store: &FileStore) {
    let mut held = claim(store, WAITS);
    held.append(&[OPEN, RUN, COMMIT], facts("running", 0));
    let beside = facts("running", 0).ask("2-aa", None).ask("2-bb", Some(1_763_729_327_023));
    held.append(&[ASK], beside.ask("2-cc", Some(4_102_444_800_000)));
    held.append(&[INTERRUPTED], facts("interrupted", 0).due().close("2-cc"));
    held.release();
    let of = |id: &str, expiry, body: &[u8]| {
        let question = Some(InterruptId::new(id));
        Message { interrupt: question, expiry, ..letter(&format!("question/{id}"), body) }
    };
    let answer =
        br#"{"answer":{"value":{"yes":true},"digest":"d","by":"Zo\u00eb","at":1763729326129}}"#;
    post(store, WAITS, &[of("2-aa", false, answer), of("2-bb", true, br#""expired""#)]);
    post(store, WAITS, &[letter("stop/1", br#"{"stop":{"by":"sam"}}"#), letter("", b"")]);
    post(store, WAITS, &[letter("not text", b"\xff\n\0")]);
}

fn torn(store: &FileStore, dir: &Path) {
    let mut held = claim(store, TORN);
    held.append(&[OPEN, RUN], facts("running", 0));
    post(store, TORN, &[input(1), input(2)]);
    held.append(&[COMMIT], Beside::default());
    now(store.renew(&held.lease, LONG)).unwrap();
    held.append(&[AGAIN], Beside::default());
    let log = log_of(dir, TORN);
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 20]).unwrap();
}

fn given_back(store: &FileStore) {
    let mut held = claim(store, GIVEN_BACK);
    held.append(&[OPEN, RUN], facts("running", 0));
    // An entry of a time that lies behind that of the log.
    held.append_bytes(&[COMMIT.as_bytes()], &Beside::default(), 4_102_444_800_000);
    held.release();
}

/// A session whose beginning can be removed.
fn to_prune<'a>(store: &'a FileStore, name: &str) -> Held<'a> {
    let mut held = claim(store, name);
    held.append(&[OPEN, RUN], facts("running", 0));
    held.append(&[], facts("running", 0).ask("2-aa", None).ask("2-dd", None));
    post(store, name, &[input(1)]);
    held.append(&[STAYS, SNAPSHOT, AGAIN], facts("running", 1).close("2-dd"));
    held.release();
    let mut held = claim(store, name);
    post(store, name, &[letter("not text", b"\xfe")]);
    held.append(&[COMMIT], Beside::default());
    held
}

fn pruned(store: &FileStore) {
    let mut held = to_prune(store, PRUNED);
    now(store.remove(&held.lease, Remove::Below(Seq(99)))).unwrap();
    held.append(&[AGAIN], Beside::default());
    post(store, PRUNED, &[input(2)]);
    held.append(&[INTERRUPTED], facts("interrupted", 3));
    held.release();
}

/// Whoever wrote the log anew has said so, and has not given it its name.
fn moved(store: &FileStore, dir: &Path) {
    let held = to_prune(store, MOVED);
    let log = log_of(dir, MOVED);
    let before = log.with_extension("before");
    fs::hard_link(&log, &before).unwrap();
    now(store.remove(&held.lease, Remove::Below(Seq(99)))).unwrap();
    let bytes = fs::read(&before).unwrap();
    let text = std::str::from_utf8(&bytes).unwrap().trim_end();
    let (rest, name) = text.rsplit_once(' ').unwrap();
    assert_eq!(rest.rsplit_once('\n').unwrap().1.as_bytes()[8], b'V');
    fs::rename(&log, log.with_file_name(name)).unwrap();
    fs::rename(&before, &log).unwrap();
}

fn escaped(store: &FileStore) {
    let mut held = claim(store, ESCAPED);
    let all: Vec<u8> = (0..=255).collect();
    let snapshot = b"\"snapshot\"\n\x7f";
    held.append_bytes(&[&all, b"", b"text"], &facts("running", 0), 0);
    held.append_bytes(&[snapshot], &Beside::default(), 1);
    held.append_bytes(&[b""], &Beside::default(), 2);
    held.append_bytes(&[b"\xff\xfe"], &facts("stopped", 0), 3);
    held.release();
}

fn long(store: &FileStore) {
    let mut held = claim(store, LONG_ONE);
    held.append(&[OPEN, RUN], facts("running", 0).ask("2-aa", None));
    post(store, LONG_ONE, &[input(1), letter("not text", b"\xff")]);
    let line = "so it goes on and on, ".repeat(3000);
    let ops = json!([
        {"push": {"p": ["lines"], "v": line}}, {"del": {"p": ["lines"], "k": 1}},
        {"set": {"p": ["n"], "v": 1}},
    ]);
    let line = json!({"t": 1_763_729_326_125_u64, "commit": {"n": "talk", "o": ops}});
    held.append(&[&line.to_string()], Beside::default());
    held.append(&[SNAPSHOT], facts("running", 1));
    held.append(&[AGAIN], Beside::default());
}

/// Whoever removed it has said so, and has not come so far as to take its files away.
fn removed(store: &FileStore, dir: &Path) {
    let mut held = claim(store, REMOVED);
    held.append(&[OPEN, RUN, ENDS], facts("ended", 0));
    let log = log_of(dir, REMOVED);
    let (kept, note) = (log.with_extension("before"), log.with_extension("checkpoint"));
    fs::hard_link(&log, &kept).unwrap();
    let said = fs::read(&note).unwrap();
    now(store.remove(&held.lease, Remove::All)).unwrap();
    fs::rename(&kept, &log).unwrap();
    fs::write(&note, &said).unwrap();
}

/// For a new version of the format, and nothing else: the directories that are there stay as they
/// are for ever.
#[test]
#[ignore = "writes what is never written again"]
fn write_the_directory_of_a_new_version() {
    const VERSION: &str = "v1";
    let dir: PathBuf = folder().join(VERSION);
    assert!(!dir.exists(), "`{VERSION}` is written already (its files are never to change)");
    let store = open(&dir);
    ended(&store);
    waits(&store);
    torn(&store, &dir);
    given_back(&store);
    pruned(&store);
    moved(&store, &dir);
    escaped(&store);
    long(&store);
    removed(&store, &dir);
    drop(store);
    // These only show what was done on this machine.
    fs::remove_dir(dir.join("open")).unwrap();
    for shard in fs::read_dir(dir.join("sessions")).unwrap() {
        fs::remove_file(shard.unwrap().path().join("named")).unwrap();
    }
    fs::remove_file(dir.join("named")).unwrap();
    let said = json!({
        "reported": report(&open(super::copy_of(VERSION).path())),
        "resumed": resume_all(super::copy_of(VERSION).path()),
    });
    let text = serde_json::to_string_pretty(&said).unwrap();
    fs::write(folder().join(format!("{VERSION}.json")), text + "\n").unwrap();
}
