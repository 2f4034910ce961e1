//! A server that hangs, ends or has no room for more connections.

use std::time::Duration;

use harness::Seq;
use harness::store::{Filter, SessionStore as _, StoreError};
use harness_store::PostgresStoreOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::place::{Place, append, claim, page};
use crate::server::Server;
use crate::support::id;

/// Forwards to a server the way there as long as `there` says so, and back as long as `back` does.
struct Proxy {
    url: String,
    there: watch::Sender<bool>,
    back: watch::Sender<bool>,
}

impl Proxy {
    async fn new(place: &Place) -> Self {
        let mut url = place.url.clone();
        let config: tokio_postgres::Config = url.parse().unwrap();
        let tokio_postgres::config::Host::Tcp(host) = config.get_hosts()[0].clone() else {
            panic!()
        };
        let port = config.get_ports()[0];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        url = url.replace(&format!("{host}:{port}"), &own.to_string());
        let ((there, forward), (back, backward)) = (watch::channel(true), watch::channel(true));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((&*host, port)).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, forward.clone()));
                tokio::spawn(pass(from_server, to_client, backward.clone()));
            }
        });
        Self { url, there, back }
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut passes: watch::Receiver<bool>,
) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if passes.wait_for(|passes| *passes).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

fn is_unavailable(error: &StoreError, ambiguous: bool) -> bool {
    matches!(error, StoreError::Unavailable { ambiguous: found, .. } if *found == ambiguous)
}

fn patient(place: &Place) -> PostgresStoreOptions {
    let limit = Duration::from_millis(500);
    place.options().call_timeout(limit).connect_timeout(limit).acquire_timeout(limit)
}

#[tokio::test]
async fn a_call_to_a_server_that_hangs_ends_and_says_what_may_have_happened() {
    let place = Place::new("faults_hang").await;
    let proxy = Proxy::new(&place).await;
    let store = patient(&place).connect(&proxy.url).await.unwrap();
    let direct = place.open().await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    // The server does it, and its answer does not come.
    proxy.back.send(false).unwrap();
    let lost = append(&store, &lease, 1, b"two").await.unwrap_err();
    assert!(is_unavailable(&lost, true), "{lost}");
    assert_eq!(page(&direct, &id("x")).await.head, Seq(2));
    // No connection can be made.
    let none = append(&store, &lease, 2, b"three").await.unwrap_err();
    assert!(is_unavailable(&none, false), "{none}");
    proxy.back.send(true).unwrap();
    // The same batch again is recognized, on a new connection.
    assert_eq!(append(&store, &lease, 1, b"two").await.unwrap().head, Seq(2));
    // The server does not get it.
    proxy.there.send(false).unwrap();
    let lost = append(&store, &lease, 2, b"three").await.unwrap_err();
    assert!(is_unavailable(&lost, true), "{lost}");
    proxy.there.send(true).unwrap();
    append(&store, &lease, 2, b"three").await.unwrap();
    let read = store.list(&Filter::sessions(), None, 1).await;
    assert_eq!(read.unwrap().rows.len(), 1);
    proxy.there.send(false).unwrap();
    let read = store.list(&Filter::sessions(), None, 1).await.unwrap_err();
    assert!(is_unavailable(&read, false), "a read has no effect: {read}");
    let entries: Vec<_> =
        page(&direct, &id("x")).await.entries.into_iter().map(|entry| entry.bytes).collect();
    assert_eq!(entries, [&b"one"[..], b"two", b"three"]);
}

#[tokio::test]
async fn calls_wait_for_a_connection_and_then_fail_without_an_effect() {
    let place = Place::new("faults_pool").await;
    let store = place.options().max_connections(2).connect(&place.url).await.unwrap();
    let slow = patient(&place)
        .max_connections(1)
        .call_timeout(Duration::from_secs(30))
        .connect(&place.url)
        .await
        .unwrap();
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    // Another program holds the row of the session, so that the connection is in use.
    let other = place.raw().await;
    other.batch_execute("BEGIN; SELECT FROM session FOR UPDATE").await.unwrap();
    let waits = tokio::spawn({
        let (slow, lease) = (slow.clone(), lease.clone());
        async move { append(&slow, &lease, 1, b"two").await }
    });
    // It is at it once the server says so.
    let text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                AND query LIKE '%append_2%' AND state = 'active'";
    let watcher = place.raw().await;
    while watcher.query(text, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let none = slow.claim(&id("y"), Duration::from_secs(1)).await.unwrap_err();
    assert!(is_unavailable(&none, false), "{none}");
    assert!(none.to_string().contains("all 1 connections were in use"), "{none}");
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().head, Seq(2));
    // Many more calls than connections are served one after the other.
    let calls = (0..100).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            store.claim(&id(&format!("s{number}")), Duration::from_secs(1)).await
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_transaction_open() {
    let place = Place::new("faults_drop").await;
    let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    for polls in 0..12 {
        let mut send = Box::pin(store.send(&lease.session, &[]));
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut send => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(send);
        append(&store, &lease, 1 + polls, b"more").await.unwrap();
    }
}

/// Nothing that was acknowledged is lost, and nothing is there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_keeps_what_it_has_acknowledged() {
    let server = Server::start();
    let store = PostgresStoreOptions::new()
        .schema("killed")
        .call_timeout(Duration::from_secs(5))
        .connect(&server.url())
        .await
        .unwrap();
    let (done, heads) = watch::channel(0_u64);
    let writer = tokio::spawn(async move {
        let lease = claim(&store, &id("x")).await;
        let (mut head, mut unsure, mut failures) = (0, 0, 0);
        while head < 400 {
            match append(&store, &lease, head, format!("entry {head}").as_bytes()).await {
                Ok(appended) => {
                    assert_eq!(appended.head, Seq(head + 1));
                    head += 1;
                    done.send(head).unwrap();
                }
                // The same batch is sent again.
                Err(error @ StoreError::Unavailable { .. }) => {
                    unsure += u64::from(error.is_ambiguous());
                    failures += 1;
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        (store, unsure, failures)
    });
    for kill in 1..=4 {
        let mut heads = heads.clone();
        heads.wait_for(|head| *head >= kill * 80).await.unwrap();
        tokio::task::block_in_place(|| {
            server.kill();
            server.restart();
        });
    }
    let (store, unsure, failures) = writer.await.unwrap();
    assert!(unsure > 0 && failures >= unsure, "{unsure} of {failures}");
    let entries = page(&store, &id("x")).await.entries;
    let expected = (0..400).map(|at| format!("entry {at}").into_bytes());
    assert!(entries.into_iter().map(|entry| entry.bytes).eq(expected));
}
