//! What the contract cannot ask of every store: that nothing waits, and that memory is given back.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq};
use crate::store::{Facts, NewEntry, Phase};

const TTL: Duration = Duration::from_secs(60);

fn facts(phase: Phase) -> Facts {
    Facts { agent: AgentId::new("a"), phase, step: "S".into(), due: None, mail: Mail(0) }
}

fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().unwrap()
}

fn open(store: &MemoryStore, id: &str) -> Lease {
    let id = SessionId::new(id).unwrap();
    now(store.claim(Claim::One(&id), TTL)).unwrap().unwrap().lease
}

fn append(
    store: &MemoryStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<Appended, StoreError> {
    let facts = facts(Phase::Ended);
    now(store.append(
        lease,
        Batch {
            after: Seq(after),
            at: UtcMillis(7),
            entries: &[NewEntry { bytes, snapshot: bytes == b"s" }],
            facts: Some(&facts),
            ..Batch::default()
        },
    ))
}

#[test]
fn every_call_is_done_at_its_first_poll() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    assert_eq!(append(&store, &lease, 0, b"1").unwrap().head, Seq(1));
    assert_eq!(now(store.renew(&lease, TTL)).unwrap(), Mail(0));
    assert_eq!(now(store.post(&lease.session, &[])).unwrap(), Posted::Here(Mail(0)));
    let page = now(store.read(&lease.session, From::Seq(Seq(0)), Mail(0), 9)).unwrap().unwrap();
    assert_eq!(page.entries.len(), 1);
    assert_eq!(now(store.list(&Filter::sessions(), None, 9)).unwrap().rows.len(), 1);
    let due = Claim::Due { agents: &[AgentId::new("a")], wait: Duration::ZERO };
    assert_eq!(now(store.claim(due, TTL)).unwrap(), None);
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
    let page = now(store.read(&lease.session, From::Snapshot, Mail(0), 1)).unwrap().unwrap();
    assert_eq!((page.first, page.next), (Seq(3), Some(Seq(4))));
    assert_eq!(page.entries[0].bytes, b"s");
    assert_eq!(append(&store, &lease, 3, b"c").unwrap().head, Seq(4));
    assert!(matches!(append(&store, &lease, 3, b"x"), Err(StoreError::Conflict { .. })));
    assert!(matches!(append(&store, &lease, 0, b"a"), Err(StoreError::Conflict { .. })));
    assert_eq!(append(&store, &lease, 5, b"e").unwrap().head, Seq(6));
}

#[test]
fn a_session_that_was_only_claimed_leaves_nothing_behind() {
    let store = MemoryStore::new();
    let lease = open(&store, "x");
    let first = lease.fence;
    assert_eq!(now(store.read(&lease.session, From::Snapshot, Mail(0), 1)).unwrap(), None);
    now(store.renew(&lease, Duration::ZERO)).unwrap();
    assert!(store.shared.sessions.is_empty());
    assert!(open(&store, "x").fence > first);
}

#[tokio::test]
async fn whoever_waits_is_told_of_a_new_session_and_of_its_release() {
    let store = MemoryStore::new();
    let agents = [AgentId::new("a")];
    let due = Claim::Due { agents: &agents, wait: Duration::from_secs(60) };
    let mut waits = store.claim(due, TTL);
    assert!((&mut waits).now_or_never().is_none());
    let lease = open(&store, "x");
    append(&store, &lease, 0, b"1").unwrap();
    let letter = Letter {
        key: "k".into(),
        digest: "d".into(),
        question: None,
        expiry: false,
        body: Vec::new(),
    };
    now(store.post(&lease.session, &[letter])).unwrap();
    assert!((&mut waits).now_or_never().is_none(), "it is held");
    now(store.renew(&lease, Duration::ZERO)).unwrap();
    let claimed = waits.await.unwrap().unwrap();
    assert_eq!((claimed.lease.session, claimed.mail), (lease.session, Mail(1)));
}
