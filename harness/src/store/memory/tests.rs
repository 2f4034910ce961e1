//! What the contract does not check of every store: no call waits, and memory is freed.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq};
use crate::store::{NewEntry, Phase, ReadFrom, SessionSummary};

const TTL: Duration = Duration::from_secs(60);

fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().unwrap()
}

fn open(store: &MemoryStore, id: &str) -> Lease {
    let id = SessionId::new(id).unwrap();
    now(store.claim(&id, TTL)).unwrap().lease
}

fn append(
    store: &MemoryStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<Appended, StoreError> {
    let summary = SessionSummary::new(AgentId::new("a"), Phase::Ended, "S");
    now(store.append(
        lease,
        Batch {
            after: Seq(after),
            at: UtcMillis(7),
            entries: &[NewEntry { bytes, snapshot: bytes == b"s" }],
            summary: Some(&summary),
            ..Batch::default()
        },
    ))
}

#[test]
fn every_call_is_done_at_its_first_poll() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    assert_eq!(append(&store, &lease, 0, b"1").unwrap().head, Seq(1));
    assert_eq!(now(store.renew(&lease, TTL)).unwrap(), InboxSeq(0));
    assert_eq!(now(store.send(&lease.session, &[])).unwrap(), Sent::Accepted(InboxSeq(0)));
    let page = now(store.read(&lease.session, ReadRequest::from(Seq(0)))).unwrap().unwrap();
    assert_eq!(page.entries.len(), 1);
    assert_eq!(now(store.list(&Filter::sessions(), None, 9)).unwrap().rows.len(), 1);
    assert_eq!(now(store.release(&lease, InboxSeq(0))).unwrap(), Released::Idle);
    let lease = open(&store, "x");
    now(store.remove(&lease, Remove::All)).unwrap();
}

#[test]
fn pruning_keeps_what_it_leaves_readable_and_resendable() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    for (after, bytes) in [b"a", b"b", b"s", b"c", b"d"].into_iter().enumerate() {
        append(&store, &lease, after as u64, bytes).unwrap();
    }
    now(store.remove(&lease, Remove::Below(Seq(9)))).unwrap();
    let request = ReadRequest::entries(ReadFrom::Snapshot).limit(1);
    let page = now(store.read(&lease.session, request)).unwrap().unwrap();
    assert_eq!((page.first, page.next), (Seq(3), Some(Seq(4))));
    assert_eq!(page.entries[0].bytes, b"s");
    assert_eq!(append(&store, &lease, 3, b"c").unwrap().head, Seq(4));
    assert!(matches!(append(&store, &lease, 3, b"x"), Err(StoreError::Conflict { .. })));
    assert!(matches!(append(&store, &lease, 0, b"a"), Err(StoreError::Conflict { .. })));
    assert_eq!(append(&store, &lease, 5, b"e").unwrap().head, Seq(6));
}

#[test]
fn entries_of_any_size_are_read_back_from_any_seq_and_after_pruning() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    // Some fill a block, some are larger than one, some have nothing in them.
    let sizes = [0, 1, 2_047, 1, 2_048, 0, 5_000, 700, 700, 700, 0, 100_000, 1];
    let entries: Vec<Vec<u8>> = (1..).zip(sizes).map(|(nth, size)| vec![nth; size]).collect();
    for (after, bytes) in (0..).zip(&entries) {
        append(&store, &lease, after, bytes).unwrap();
    }
    append(&store, &lease, entries.len() as u64, b"s").unwrap();
    append(&store, &lease, entries.len() as u64 + 1, b"").unwrap();
    let read = |from: u64| {
        let page = now(store.read(&lease.session, ReadRequest::from(Seq(from)))).unwrap().unwrap();
        page.entries.into_iter().map(|entry| entry.bytes).collect::<Vec<_>>()
    };
    for from in 0..entries.len() {
        assert_eq!(read(from as u64 + 1)[..entries.len() - from], entries[from..], "from {from}");
    }
    now(store.remove(&lease, Remove::Below(Seq(99)))).unwrap();
    assert_eq!(read(entries.len() as u64 + 1), [&b"s"[..], b""]);
    append(&store, &lease, entries.len() as u64 + 2, b"t").unwrap();
    assert_eq!(read(entries.len() as u64 + 1), [&b"s"[..], b"", b"t"]);
}

#[test]
fn a_session_that_was_only_claimed_leaves_nothing_behind() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    let first = lease.fence;
    assert_eq!(now(store.read(&lease.session, ReadRequest::summary())).unwrap(), None);
    assert_eq!(now(store.release(&lease, InboxSeq(0))).unwrap(), Released::Idle);
    assert!(store.shared.sessions.is_empty());
    assert!(open(&store, "x").fence > first);
}
