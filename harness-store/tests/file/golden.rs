//! These directories were written by the first store of each version of the format. They are never
//! written again: a store that reads them otherwise, or not at all, has broken every session that is
//! kept.

mod write;

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use harness::inspect::Filter;
use harness::store::{
    Batch, InboxSeq, NewEntry, Page, ReadFrom, ReadRequest, Row, SessionStore as _, StoreError,
    StoredEntry,
};
use harness::{Seq, SessionId, Sessions, UtcMillis};
use harness_store::FileStore;
use serde_json::{Map, Value, json};

use crate::support::{LONG, files, id, summary};

/// The sessions of the first version.
const ENDED: &str = "ended";
const WAITS: &str = "../waits/日本\n";
const TORN: &str = "torn";
const GIVEN_BACK: &str = "given back";
const PRUNED: &str = "pruned";
const MOVED: &str = "moved";
const ESCAPED: &str = "escaped";
const LONG_ONE: &str = "long";
const REMOVED: &str = "removed";

const ALL: [&str; 9] = [ENDED, WAITS, TORN, GIVEN_BACK, PRUNED, MOVED, ESCAPED, LONG_ONE, REMOVED];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Outside of a runtime a store waits for the disk in place, and writes its notes at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("a store waits for more than the disk"),
    }
}

/// A copy to work on. Only what the files hold is copied: no times, no attributes.
fn copy_of(version: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy(&folder().join(version), dir.path());
    dir
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&file.path(), &to);
        } else {
            fs::write(&to, fs::read(file.path()).unwrap()).unwrap();
        }
    }
}

fn open(dir: &Path) -> FileStore {
    now(FileStore::open(dir)).unwrap()
}

fn page(
    store: &FileStore,
    session: &SessionId,
    from: ReadFrom,
) -> Result<Option<Page>, StoreError> {
    let request = ReadRequest::entries(from).with_messages_after(InboxSeq(0)).limit(u64::MAX);
    now(store.read(session, request))
}

/// Everything that is kept of a session.
fn whole(store: &FileStore, session: &SessionId) -> Result<Option<Page>, StoreError> {
    match page(store, session, ReadFrom::Seq(Seq(u64::MAX)))? {
        Some(end) => page(store, session, ReadFrom::Seq(end.first)),
        None => Ok(None),
    }
}

/// Bytes as text; what is none in hexadecimal digits, and what is long by its checksum.
fn shown(bytes: &[u8]) -> Value {
    if bytes.len() > 1024 {
        return json!({"bytes": bytes.len(), "crc32": crc32fast::hash(bytes)});
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            json!({"hex": digits.collect::<String>()})
        }
    }
}

fn row(row: &Row) -> Value {
    json!({
        "session": row.session, "summary": row.summary, "head": row.head, "created": row.created,
        "updated": row.updated, "interrupt": row.interrupt,
    })
}

fn rows(store: &FileStore, filter: &Filter) -> Vec<Value> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let listing = now(store.list(filter, after.as_deref(), 2)).unwrap();
        rows.extend(listing.rows.iter().map(row));
        after = listing.next;
        if after.is_none() {
            return rows;
        }
    }
}

fn page_report(store: &FileStore, page: &Page, session: &SessionId) -> Value {
    let entry = |entry: &StoredEntry| json!([entry.seq, shown(&entry.bytes)]);
    let messages = page.messages.iter().map(|stored| {
        let message = &stored.message;
        json!({
            "seq": stored.seq, "key": message.key, "digest": message.digest,
            "interrupt": message.interrupt, "expiry": message.expiry, "body": shown(&message.body),
        })
    });
    // Where a reader of each entry starts.
    let starts = (page.first.0..=page.head.0).map(|seq| {
        let from = ReadFrom::SnapshotBelow(Seq(seq));
        self::page(store, session, from).unwrap().unwrap().entries[0].seq
    });
    assert_eq!((page.next, page.set_aside), (None, 0));
    json!({
        "entries": page.entries.iter().map(entry).collect::<Vec<_>>(),
        "messages": messages.collect::<Vec<_>>(),
        "starts": starts.collect::<Vec<_>>(),
        "first": page.first, "head": page.head, "inbox": page.inbox, "summary": page.summary,
        "interrupts": page.interrupts, "held": page.holder.is_some(), "created": page.created,
        "updated": page.updated,
    })
}

fn status_report(store: &FileStore, session: &SessionId) -> Value {
    let status = match now(Sessions::new(store.clone()).status(session.as_str())) {
        Ok(status) => status,
        Err(error) => {
            return json!({"not found": error.is_not_found(), "damaged": error.is_damaged()});
        }
    };
    let questions = status.questions.iter().map(|one| &one.id);
    json!({
        "agent": status.agent, "phase": status.phase, "step": status.step, "turn": status.turn,
        "steps": status.steps, "first": status.first, "head": status.head,
        "created": status.created, "updated": status.updated, "held": status.holder.is_some(),
        "questions": questions.collect::<Vec<_>>(), "unread": status.unread,
        "settled": status.settled.is_some(),
        "state": now(Sessions::new(store.clone()).state(session.as_str())).unwrap(),
    })
}

/// Everything that can be read of a store.
fn report(store: &FileStore) -> Value {
    let mut sessions = Map::new();
    for name in ALL {
        let session = id(name);
        // Who reads only the end starts elsewhere.
        let status = status_report(store, &session);
        let page = whole(store, &session).unwrap();
        let page = page.map(|page| page_report(store, &page, &session));
        sessions.insert(name.to_owned(), json!({"page": page, "status": status}));
    }
    json!({
        "rows": rows(store, &Filter::sessions()),
        "questions": rows(store, &Filter::interrupts()),
        "sessions": sessions,
    })
}

/// Resumes each session, and says from where.
fn resume_all(dir: &Path) -> Value {
    let (store, mut resumed) = (open(dir), Map::new());
    for name in ALL {
        let session = id(name);
        let before = whole(&store, &session).unwrap();
        let claimed = now(store.claim(&session, LONG)).unwrap();
        let bytes = br#"{"t":1763729330000,"recover":{"run":"later"}}"#;
        let (entries, facts) =
            ([NewEntry { bytes, snapshot: false }], summary(harness::store::Phase::Failed));
        let batch = Batch {
            after: claimed.head,
            at: UtcMillis(1_763_729_330_000),
            entries: &entries,
            summary: Some(&facts),
            flush: true,
            ..Batch::default()
        };
        let appended = now(store.append(&claimed.lease, batch)).unwrap();
        now(store.release(&claimed.lease, InboxSeq(0))).map(drop).unwrap();

        let after = whole(&open(dir), &session).unwrap().unwrap();
        let (mut entries, mut messages) = (Vec::new(), Vec::new());
        if let Some(before) = before {
            (entries, messages) = (before.entries, before.messages);
        }
        entries.push(StoredEntry::new(appended.head, bytes));
        assert_eq!(after.entries, entries, "{name}");
        assert_eq!(after.messages, messages, "{name}");
        assert_eq!((after.head, &after.summary), (appended.head, &facts), "{name}");
        let set_aside = whole(&store, &session).unwrap().unwrap().set_aside;
        resumed.insert(
            name.to_owned(),
            json!({
                "fence": claimed.lease.fence, "head": claimed.head, "inbox": claimed.inbox,
                "set_aside": set_aside, "summary": claimed.summary,
            }),
        );
    }
    Value::Object(resumed)
}

fn expected(version: &str) -> Value {
    let text = fs::read_to_string(folder().join(format!("{version}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_directory_says_today_what_it_said_when_it_was_written() {
    let expected = expected("v1");
    let dir = copy_of("v1");
    let found = report(&open(dir.path()));
    for name in ALL {
        assert_eq!(found["sessions"][name], expected["reported"]["sessions"][name], "{name}");
    }
    assert_eq!(found, expected["reported"]);
    // The next store finds what the first has put in order.
    assert_eq!(report(&open(dir.path())), expected["reported"]);
}

#[test]
fn every_session_can_be_resumed() {
    let dir = copy_of("v1");
    assert_eq!(resume_all(dir.path()), expected("v1")["resumed"]);
}

#[test]
fn what_another_process_has_left_half_done_is_finished() {
    let dir = copy_of("v1");
    let logs = files(dir.path(), "log").len();
    assert_eq!((logs, files(dir.path(), "next").len()), (ALL.len(), 1));
    let store = open(dir.path());
    rows(&store, &Filter::sessions());
    assert_eq!(files(dir.path(), "log").len(), logs - 1, "a removed session is there");
    assert_eq!(files(dir.path(), "next").len(), 0, "a log that was rewritten has two names");
    assert_eq!(whole(&store, &id(REMOVED)).unwrap(), None);
}

/// The logs are found by what stands in them, as their names are hashes.
fn log_of(dir: &Path, session: &str) -> PathBuf {
    let name = format!(r#""id":{}"#, json!(session));
    let mut logs = files(dir, "log");
    logs.retain(|log| String::from_utf8_lossy(&fs::read(log).unwrap()).contains(&name));
    assert_eq!(logs.len(), 1, "{session}");
    logs.remove(0)
}

#[test]
fn the_checkpoint_of_a_session_at_rest_shows_that_its_log_was_cut() {
    for session in [ENDED, PRUNED, ESCAPED] {
        let dir = copy_of("v1");
        let log = log_of(dir.path(), session);
        assert!(log.with_extension("checkpoint").exists(), "{session}");
        let bytes = fs::read(&log).unwrap();
        let last = bytes.windows(2).rposition(|pair| pair == b"\n\n").unwrap();
        fs::write(&log, &bytes[..=last]).unwrap();
        let found = whole(&open(dir.path()), &id(session));
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{session}");
        fs::remove_file(log.with_extension("checkpoint")).unwrap();
        let found = whole(&open(dir.path()), &id(session));
        assert!(found.is_ok(), "{session}");
    }
}

#[test]
fn a_read_of_only_the_end_of_a_long_log_finds_where_to_start() {
    let dir = copy_of("v1");
    let log = log_of(dir.path(), LONG_ONE);
    let mut bytes = fs::read(&log).unwrap();
    let middle = 32 * 1024;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let status = status_report(&open(dir.path()), &id(LONG_ONE));
    assert_eq!(status, expected("v1")["reported"]["sessions"][LONG_ONE]["status"]);
    let found = page(&open(dir.path()), &id(LONG_ONE), ReadFrom::Seq(Seq(1)));
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
    fs::remove_file(log.with_extension("start")).unwrap();
    let found = page(&open(dir.path()), &id(LONG_ONE), ReadFrom::Snapshot);
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
}

#[test]
fn the_directory_holds_every_kind_of_record() {
    let mut kinds = std::collections::BTreeSet::new();
    let logs = [files(&folder(), "log"), files(&folder(), "next")].concat();
    for log in logs {
        let bytes = fs::read(&log).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| line.len() > 9);
        kinds.extend(lines.map(|line| char::from(line[8])));
    }
    assert_eq!(kinds.into_iter().collect::<String>(), "BCHMVXbkmop");
    for kind in ["checkpoint", "lease", "start"] {
        assert!(!files(&folder(), kind).is_empty(), "{kind}");
    }
}
