//! Several processes on one database. The others are this test binary, started again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::store::{FormerHolder, Phase, SessionStore as _, StoreError};
use harness_store::SqliteStore;

use super::{append, claim, database, open, page};
use crate::process::{Other, hear, say};
use crate::support::{LONG, id, message};

const OTHER: &str = "sqlite::process::other";
/// How many sessions one process works on at once.
const SESSIONS: usize = 16;

/// What the other process does; nothing if this is not one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other() {
    let Some((role, dir)) = crate::process::role() else { return };
    let dir = Path::new(&dir);
    match role.as_str() {
        "hold" => {
            let store = open(dir).await;
            let ttl = Duration::from_millis(hear().parse().unwrap());
            let lease = store.claim(&id("x"), ttl).await.unwrap().lease;
            append(&store, &lease, 0, b"one", Some(Phase::Running)).await.unwrap();
            say("held");
            hear();
            match append(&store, &lease, 1, b"two", Some(Phase::Running)).await {
                Ok(_) => say("appended"),
                Err(StoreError::Fenced { .. }) => say("fenced"),
                Err(error) => say(&format!("{error}")),
            }
            hear();
        }
        "race" => {
            let store = open(dir).await;
            say("ready");
            loop {
                let name = hear();
                if name.is_empty() {
                    return;
                }
                match store.claim(&id(&name), LONG).await {
                    Ok(_) => say("won"),
                    Err(StoreError::Busy { .. }) => say("busy"),
                    Err(error) => say(&format!("{error}")),
                }
            }
        }
        "group" => {
            // Synced: this is about acknowledgements.
            let store = SqliteStore::open(database(dir)).await.unwrap();
            say("ready");
            let write = |at: usize| {
                let store = store.clone();
                tokio::spawn(async move {
                    let name = format!("s{at}");
                    let lease = claim(&store, &id(&name)).await;
                    let page = page(&store, &id(&name)).await.unwrap();
                    for after in page.map_or(0, |page| page.head.0).. {
                        let bytes = vec![b'a' + (after % 26) as u8; 500 * (at + 1)];
                        append(&store, &lease, after, &bytes, Some(Phase::Running)).await.unwrap();
                        say(&format!("{at} {}", after + 1));
                    }
                })
            };
            for task in (0..SESSIONS).map(write).collect::<Vec<_>>() {
                task.await.unwrap();
            }
        }
        other => panic!("no such role: {other}"),
    }
}

#[tokio::test]
async fn a_holder_that_was_stopped_is_replaced_when_its_lease_expires() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::of(OTHER, "hold", dir.path());
    other.say("300");
    assert_eq!(other.hear(), "held");
    other.signal(rustix::process::Signal::STOP);
    let store = open(dir.path()).await;
    let begun = Instant::now();
    let claimed = loop {
        match store.claim(&id("x"), LONG).await {
            Ok(claimed) => break claimed,
            Err(StoreError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the lease never expires");
    };
    assert_eq!(claimed.former, FormerHolder::Expired);
    append(&store, &claimed.lease, 1, b"thief", Some(Phase::Running)).await.unwrap();
    other.signal(rustix::process::Signal::CONT);
    other.say("");
    assert_eq!(other.hear(), "fenced");
}

#[tokio::test]
async fn a_holder_that_was_stopped_and_not_replaced_continues() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::of(OTHER, "hold", dir.path());
    other.say("600000");
    assert_eq!(other.hear(), "held");
    other.signal(rustix::process::Signal::STOP);
    let store = open(dir.path()).await;
    let busy = store.claim(&id("x"), LONG).await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    store.send(&id("x"), &[message("k", "v")]).await.unwrap();
    other.signal(rustix::process::Signal::CONT);
    other.say("");
    assert_eq!(other.hear(), "appended");
}

#[tokio::test]
async fn a_holder_that_was_killed_is_replaced_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::of(OTHER, "hold", dir.path());
    other.say("600000");
    assert_eq!(other.hear(), "held");
    let store = open(dir.path()).await;
    let busy = store.claim(&id("x"), LONG).await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    drop(other);
    let claimed = store.claim(&id("x"), LONG).await.unwrap();
    assert_eq!((claimed.head.0, claimed.former), (1, FormerHolder::Dead));
}

#[tokio::test]
async fn of_several_processes_that_claim_at_once_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    // They make the database at the same moment, too.
    let mut others: Vec<_> = (0..4).map(|_| Other::of(OTHER, "race", dir.path())).collect();
    for other in &mut others {
        assert_eq!(other.hear(), "ready");
    }
    for round in 0..50 {
        for other in &mut others {
            other.say(&format!("session {round}"));
        }
        let mut said: Vec<_> = others.iter_mut().map(Other::hear).collect();
        said.sort_unstable();
        assert_eq!(said, ["busy", "busy", "busy", "won"], "round {round}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_in_a_group_survives_a_kill_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeMap<usize, u64> = BTreeMap::new();
    for round in 0..12 {
        let mut other = Other::of(OTHER, "group", dir.path());
        assert_eq!(other.hear(), "ready");
        let mut said = Vec::new();
        for _ in 0..round * 7 {
            said.push(other.hear());
        }
        // Also what it has said that was not heard yet.
        said.extend(other.kill());
        for line in said {
            let (at, head) = line.split_once(' ').unwrap();
            acknowledged.insert(at.parse().unwrap(), head.parse().unwrap());
        }
        let store = open(dir.path()).await;
        for at in 0..SESSIONS {
            let least = acknowledged.get(&at).copied().unwrap_or(0);
            let Some(page) = page(&store, &id(&format!("s{at}"))).await.unwrap() else {
                assert_eq!(least, 0, "session {at} is gone");
                continue;
            };
            assert!(page.head.0 >= least, "session {at}: {} of {least}", page.head.0);
            for (after, entry) in page.entries.iter().enumerate() {
                assert_eq!(entry.bytes, vec![b'a' + (after % 26) as u8; 500 * (at + 1)]);
            }
        }
    }
    assert!(acknowledged.values().sum::<u64>() > 100, "{acknowledged:?}");
}
