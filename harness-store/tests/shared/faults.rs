//! What happens to a server, and what its store makes of it.

use harness::Seq;
use harness::store::{Filter, SessionStore, StoreError};
use tokio::sync::watch;

use crate::proxy::Proxy;
use crate::support::{LONG, append_running as append, claim, id, whole};

pub(crate) fn is_unavailable(error: &StoreError, ambiguous: bool) -> bool {
    matches!(error, StoreError::Unavailable { ambiguous: found, .. } if *found == ambiguous)
}

async fn texts(store: &impl SessionStore) -> Vec<Vec<u8>> {
    whole(store, &id("x")).await.entries.into_iter().map(|entry| entry.bytes).collect()
}

/// Nothing comes there, or nothing comes back, for longer than the store waits. `direct` does not go
/// through the proxy.
pub(crate) async fn hangs(store: impl SessionStore, direct: impl SessionStore, proxy: &Proxy) {
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    // The server does it, and its answer does not come.
    proxy.back.send_replace(false);
    let lost = append(&store, &lease, 1, b"two").await.unwrap_err();
    assert!(is_unavailable(&lost, true), "{lost}");
    assert_eq!(whole(&direct, &id("x")).await.head, Seq(2));
    // No connection can be made.
    let none = append(&store, &lease, 2, b"three").await.unwrap_err();
    assert!(is_unavailable(&none, false), "{none}");
    proxy.back.send_replace(true);
    // The same batch again is recognized, on a new connection.
    assert_eq!(append(&store, &lease, 1, b"two").await.unwrap().head, Seq(2));
    // The server does not get it.
    proxy.there.send_replace(false);
    let lost = append(&store, &lease, 2, b"three").await.unwrap_err();
    assert!(is_unavailable(&lost, true), "{lost}");
    proxy.there.send_replace(true);
    append(&store, &lease, 2, b"three").await.unwrap();
    let read = store.list(&Filter::sessions(), None, 1).await;
    assert_eq!(read.unwrap().rows.len(), 1);
    proxy.there.send_replace(false);
    let read = store.list(&Filter::sessions(), None, 1).await.unwrap_err();
    assert!(is_unavailable(&read, false), "a read has no effect: {read}");
    assert_eq!(texts(&direct).await, [&b"one"[..], b"two", b"three"]);
}

/// All connections are cut, again and again.
pub(crate) async fn cut(store: impl SessionStore, proxy: &Proxy) {
    const APPENDS: u64 = 20;
    let lease = claim(&store, &id("x")).await;
    let mut failures = 0;
    for after in 0..APPENDS {
        if after % 5 == 3 {
            proxy.cut();
        }
        // The same batch again, after a failure.
        while let Err(error) = append(&store, &lease, after, &[after as u8]).await {
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
            failures += 1;
        }
    }
    assert!((1..=8).contains(&failures), "{failures} failures of 4 cuts");
    let expected: Vec<Vec<u8>> = (0..APPENDS).map(|at| vec![at as u8]).collect();
    assert_eq!(texts(&store).await, expected);
}

/// Many more calls than connections are served one after the other.
pub(crate) async fn many_calls(store: impl SessionStore + Clone) {
    let calls = (0..100).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.claim(&id(&format!("s{number}")), LONG).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
}

/// The server is killed and started again, again and again: nothing that it has acknowledged is lost, and
/// nothing is there twice.
pub(crate) async fn killed(
    store: impl SessionStore,
    kill: impl Fn() + Send,
    restart: impl Fn() + Send,
) {
    const APPENDS: u64 = 80;
    let (done, mut seen) = watch::channel((0, 0));
    let (stop, stopped) = watch::channel(false);
    let writer = tokio::spawn(async move {
        let lease = claim(&store, &id("x")).await;
        let (mut head, mut unsure, mut failures) = (0_u64, 0_u64, 0);
        while !*stopped.borrow() {
            match append(&store, &lease, head, format!("entry {head}").as_bytes()).await {
                Ok(appended) => {
                    assert_eq!(appended.head, Seq(head + 1));
                    head += 1;
                }
                // The same batch is sent again.
                Err(error @ StoreError::Unavailable { .. }) => {
                    unsure += u64::from(error.is_ambiguous());
                    failures += 1;
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
            done.send_replace((head, unsure));
        }
        (store, head, unsure, failures)
    });
    let mut round = 0;
    // It is chance whether an append is at work when the server is killed.
    while round < 4 || seen.borrow().1 == 0 {
        round += 1;
        assert!(round < 40, "no append was interrupted");
        seen.wait_for(|(head, _)| *head >= round * APPENDS).await.unwrap();
        tokio::task::block_in_place(|| {
            kill();
            restart();
        });
    }
    seen.wait_for(|(head, _)| *head >= (round + 1) * APPENDS).await.unwrap();
    stop.send_replace(true);
    let (store, head, unsure, failures) = writer.await.unwrap();
    assert!(unsure > 0 && failures >= unsure, "{unsure} of {failures}");
    let expected: Vec<_> = (0..head).map(|at| format!("entry {at}").into_bytes()).collect();
    assert_eq!(texts(&store).await, expected);
}

/// How often a call waits for the server, counted on the way there.
pub(crate) async fn one_trip_each(store: impl SessionStore, proxy: &Proxy) {
    const APPENDS: u64 = 20;
    let lease = claim(&store, &id("x")).await;
    // The server, or the connection to it, may have to learn first what an append is.
    append(&store, &lease, 0, b"first").await.unwrap();
    let before = proxy.trips();
    for after in 1..=APPENDS {
        append(&store, &lease, after, b"more").await.unwrap();
    }
    assert_eq!(proxy.trips() - before, APPENDS);
}
