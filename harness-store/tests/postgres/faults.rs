//! A server that hangs, ends, cannot be reached, or has no room for more connections.

use std::time::Duration;

use harness::Seq;
use harness::store::SessionStore as _;
use harness_store::PostgresStoreOptions;
use tokio_postgres::config::Host;

use crate::place::{Place, append, claim};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::shared_faults::{self, is_unavailable};
use crate::support::id;

/// A proxy before the server, and the URL that leads to it.
async fn proxy(place: &Place) -> (Proxy, String) {
    let config: tokio_postgres::Config = place.url.parse().unwrap();
    let (Host::Tcp(host), port) = (&config.get_hosts()[0], config.get_ports()[0]) else { panic!() };
    let server = tokio::net::lookup_host((&**host, port)).await.unwrap().next().unwrap();
    let proxy = Proxy::new(server).await;
    let url = place.url.replace(&format!("{host}:{port}"), &proxy.address.to_string());
    (proxy, url)
}

fn patient(place: &Place) -> PostgresStoreOptions {
    let limit = Duration::from_millis(500);
    place.options().call_timeout(limit).connect_timeout(limit).acquire_timeout(limit)
}

#[tokio::test]
async fn a_call_to_a_server_that_hangs_ends_and_says_what_may_have_happened() {
    let place = Place::new("faults_hang").await;
    let (proxy, url) = proxy(&place).await;
    let store = patient(&place).connect(&url).await.unwrap();
    shared_faults::hangs(store, place.open().await, &proxy).await;
}

#[tokio::test]
async fn an_append_is_one_round_trip() {
    let place = Place::new("trips").await;
    let (proxy, url) = proxy(&place).await;
    let store = place.options().max_connections(1).connect(&url).await.unwrap();
    shared_faults::one_trip_each(store, &proxy).await;
}

#[tokio::test]
async fn a_connection_that_was_cut_is_replaced() {
    let place = Place::new("faults_cut").await;
    let (proxy, url) = proxy(&place).await;
    shared_faults::cut(patient(&place).connect(&url).await.unwrap(), &proxy).await;
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
                AND query LIKE '%append_3%' AND state = 'active'";
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
    shared_faults::many_calls(store).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_keeps_what_it_has_acknowledged() {
    let server = Server::start();
    let store = PostgresStoreOptions::new()
        .schema("killed")
        .call_timeout(Duration::from_secs(5))
        .connect(&server.url())
        .await
        .unwrap();
    shared_faults::killed(store, || server.kill(), || server.restart()).await;
}
