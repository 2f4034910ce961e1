//! Sessions that become due, and those that are removed some time after they have ended.

use std::time::{Duration, Instant};

use harness::Seq;
use harness::store::{DueRequest, Filter, InboxSeq, Phase, SessionStore as _, StoreError};
use redis::Commands as _;

use crate::place::{Place, append, append_in, claim};
use crate::support::{LONG, id, message};

fn agent() -> harness::id::AgentId {
    harness::id::AgentId::new("a")
}

#[tokio::test]
async fn a_message_from_another_process_ends_a_wait() {
    let place = Place::new("due_wait");
    let (store, other) = (place.open().await, place.open().await);
    let lease = claim(&store, &id("x")).await;
    append_in(&store, &lease, 0, b"one", Phase::Ended).await.unwrap();
    store.release(&lease, InboxSeq(0)).await.unwrap();
    // It ends when the store listens.
    store.wait_due(&[agent()], LONG).await;
    for number in 1..4_u64 {
        let mut wait = Box::pin(async { store.wait_due(&[agent()], LONG).await });
        tokio::select! {
            biased;
            () = &mut wait => panic!("nothing is due"),
            () = tokio::task::yield_now() => {}
        }
        let begun = Instant::now();
        other.send(&id("x"), &[message(&number.to_string(), "v")]).await.unwrap();
        wait.await;
        assert!(begun.elapsed() < Duration::from_secs(30));
        let request = DueRequest::new([agent()]).limit(9);
        let due = store.claim_due(&request, LONG).await.unwrap();
        assert_eq!(due.claimed.len(), 1);
        store.release(&due.claimed[0].lease, InboxSeq(number)).await.unwrap();
        assert!(store.claim_due(&request, LONG).await.unwrap().claimed.is_empty());
    }
    // Other agents do not concern it.
    store.wait_due(&[harness::id::AgentId::new("b")], Duration::from_millis(10)).await;
    // If the connection is cut, it listens again.
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub").exec(&mut place.raw()).unwrap();
    store.wait_due(&[agent()], LONG).await;
}

#[tokio::test]
async fn many_due_sessions_are_claimed_once_by_two_stores() {
    let place = Place::new("due_many");
    let stores = [place.open().await, place.open().await];
    for number in 0..250 {
        let lease = claim(&stores[0], &id(&format!("s{number}"))).await;
        append(&stores[0], &lease, 0, b"one").await.unwrap();
        stores[0].release(&lease, InboxSeq(0)).await.unwrap();
    }
    let claims = stores.map(|store| {
        tokio::spawn(async move {
            let mut found = Vec::new();
            let except = [id("s7")];
            loop {
                let request = DueRequest::new([agent()]).except(except.clone()).limit(33);
                let due = store.claim_due(&request, LONG).await.unwrap();
                assert!(due.failed.is_empty() && due.claimed.len() <= 33);
                if due.claimed.is_empty() {
                    return found;
                }
                for claimed in due.claimed {
                    // The lease is one that appends.
                    append(&store, &claimed.lease, 1, b"two").await.unwrap();
                    found.push(claimed.lease.session);
                }
            }
        })
    });
    let mut found = Vec::new();
    for claim in claims {
        found.extend(claim.await.unwrap());
    }
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!((found.len(), count), (249, 249));
}

#[tokio::test]
async fn sessions_are_removed_some_time_after_they_have_ended() {
    let place = Place::new("due_expire");
    let options = place.options().expire_ended(Duration::ZERO);
    let store = options.connect(&place.url).await.unwrap();
    let begin = async |name: &str, phase| {
        let lease = store.claim(&id(name), LONG).await.unwrap().lease;
        append_in(&store, &lease, 0, b"one", phase).await.unwrap();
        lease
    };
    let held = begin("held", Phase::Ended).await;
    let again = begin("again", Phase::Ended).await;
    append_in(&store, &again, 1, b"two", Phase::Running).await.unwrap();
    let failed = begin("failed", Phase::Failed).await;
    for lease in [&again, &failed] {
        store.release(lease, InboxSeq(0)).await.unwrap();
    }
    let written = begin("written", Phase::Ended).await;
    store.send(&id("written"), &[message("k", "v")]).await.unwrap();
    store.release(&written, InboxSeq(0)).await.unwrap();
    let ended = begin("ended", Phase::Ended).await;
    store.release(&ended, InboxSeq(0)).await.unwrap();
    let listed = async || {
        let rows = store.list(&Filter::sessions(), None, 100).await.unwrap().rows;
        rows.into_iter().map(|row| row.session.as_str().to_owned()).collect::<Vec<_>>()
    };
    // The claim of any session removes what is past its time.
    claim(&store, &id("x")).await;
    assert_eq!(listed().await, ["again", "failed", "held", "written"]);
    assert!(matches!(store.renew(&ended, LONG).await, Err(StoreError::Gone { .. })));
    let key = place.store_key().replace(":store", ":ended");
    let kept: Vec<String> = place.raw().zrange(&key, 0, -1).unwrap();
    assert_eq!(kept, ["held", "written"], "they are looked at again");
    // Nothing of it is left.
    let ends = |name: &Vec<u8>| name.ends_with(b":ended") && *name != key.as_bytes();
    assert!(!place.keys().iter().any(ends));
    assert_eq!(append(&store, &held, 1, b"two").await.unwrap().head, Seq(2));
    let lease = claim(&store, &id("ended")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
}
