//! A server that hangs, ends, cannot be reached, has no room for more connections, or has lost what it acknowledged.

use std::time::Duration;

use harness::Seq;
use harness::store::{Filter, SessionStore as _, StoreError};
use harness_store::{RedisStore, RedisStoreOptions};

use crate::place::{Place, append, claim};
use crate::proxy::Proxy;
use crate::server::{SAFE, Server};
use crate::shared_faults::{self, is_unavailable};
use crate::support::{LONG, id};

async fn proxy(place: &Place) -> (Proxy, String) {
    let address = place.url.trim_start_matches("redis://").trim_end_matches('/');
    let proxy = Proxy::new(address.parse().unwrap()).await;
    let url = format!("redis://{}", proxy.address);
    (proxy, url)
}

fn patient(place: &Place) -> RedisStoreOptions {
    let limit = Duration::from_millis(500);
    place.options().call_timeout(limit).connect_timeout(limit).acquire_timeout(limit)
}

#[tokio::test]
async fn a_call_to_a_server_that_hangs_ends_and_says_what_may_have_happened() {
    let place = Place::new("faults_hang");
    let (proxy, url) = proxy(&place).await;
    let store = patient(&place).connect(&url).await.unwrap();
    shared_faults::hangs(store, place.open().await, &proxy).await;
}

#[tokio::test]
async fn an_append_is_one_round_trip() {
    let place = Place::new("trips");
    let (proxy, url) = proxy(&place).await;
    let store = place.options().max_connections(1).connect(&url).await.unwrap();
    shared_faults::one_trip_each(store, &proxy).await;
}

#[tokio::test]
async fn a_connection_that_was_cut_is_replaced() {
    let place = Place::new("faults_cut");
    let (proxy, url) = proxy(&place).await;
    shared_faults::cut(patient(&place).connect(&url).await.unwrap(), &proxy).await;
}

#[tokio::test]
async fn calls_wait_for_a_connection_and_then_fail_without_an_effect() {
    let place = Place::new("faults_pool");
    let (proxy, url) = proxy(&place).await;
    let slow = patient(&place).max_connections(1).call_timeout(LONG).connect(&url).await.unwrap();
    let lease = claim(&slow, &id("x")).await;
    // Its only connection is in use.
    proxy.back.send(false).unwrap();
    let mut waits = Box::pin(append(&slow, &lease, 0, b"one"));
    let other = id("y");
    tokio::select! {
        biased;
        _ = &mut waits => panic!("its answer cannot come"),
        none = slow.claim(&other, LONG) => {
            let none = none.unwrap_err();
            assert!(is_unavailable(&none, false), "{none}");
            assert!(none.to_string().contains("all 1 connections were in use"), "{none}");
        }
    }
    proxy.back.send(true).unwrap();
    assert_eq!(waits.await.unwrap().head, Seq(1));
    // Many more calls than connections are served one after the other.
    let options = place.options().acquire_timeout(LONG).max_connections(2);
    let store = options.connect(&place.url).await.unwrap();
    shared_faults::many_calls(store).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_answer_to_the_next() {
    let place = Place::new("faults_drop");
    let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    let filter = Filter::sessions();
    for polls in 0..12 {
        let mut list = Box::pin(store.list(&filter, None, 10));
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut list => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(list);
        append(&store, &lease, 1 + polls, b"more").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_keeps_what_it_has_acknowledged() {
    let server = Server::start(SAFE);
    let options = RedisStoreOptions::new().call_timeout(Duration::from_secs(5));
    let store = options.connect(&server.url()).await.unwrap();
    shared_faults::killed(store, || server.kill(), || server.restart()).await;
}

fn lost(error: &StoreError) -> Option<(u64, u64)> {
    match error {
        StoreError::LostWrites { acknowledged, head, .. } => Some((acknowledged.0, head.0)),
        _ => None,
    }
}

/// A server without a log, that continues with what a copy of it has.
async fn lossy() -> (Server, RedisStore) {
    let server = Server::start(&["--appendonly", "no"]);
    let options = RedisStoreOptions::new().accept_loss();
    let store = options.connect(&server.url()).await.unwrap();
    (server, store)
}

/// Calls until the connections that were cut are replaced.
async fn refused(mut call: impl AsyncFnMut() -> StoreError) -> StoreError {
    loop {
        match call().await {
            StoreError::Unavailable { .. } => tokio::task::yield_now().await,
            error => return error,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_that_the_server_has_lost_are_reported_to_their_writer() {
    let (server, store) = lossy().await;
    let kept = claim(&store, &id("kept")).await;
    let old = claim(&store, &id("old")).await;
    append(&store, &old, 0, b"one").await.unwrap();
    redis::cmd("SAVE").query::<String>(&mut server.raw()).unwrap();
    // What comes now is in the memory of the server only.
    append(&store, &old, 1, b"two").await.unwrap();
    append(&store, &kept, 0, b"one").await.unwrap();
    let new = claim(&store, &id("new")).await;
    append(&store, &new, 0, b"one").await.unwrap();
    server.kill();
    server.restart();
    let error = refused(async || append(&store, &old, 2, b"three").await.unwrap_err()).await;
    assert_eq!(lost(&error), Some((2, 1)), "{error}");
    let error = refused(async || append(&store, &kept, 1, b"two").await.unwrap_err()).await;
    assert_eq!(lost(&error), Some((1, 0)), "{error}");
    let error = refused(async || append(&store, &new, 1, b"two").await.unwrap_err()).await;
    assert_eq!(lost(&error), Some((1, 0)), "its claim is lost: {error}");
    let later = claim(&store, &id("later")).await;
    assert_eq!(append(&store, &later, 0, b"one").await.unwrap().head, Seq(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_server_is_not_taken_for_a_new_one() {
    let (server, store) = lossy().await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    server.kill();
    server.empty();
    server.restart();
    let error = refused(async || append(&store, &lease, 1, b"two").await.unwrap_err()).await;
    assert_eq!(lost(&error), Some((1, 0)), "{error}");
    let error = store.claim(&id("y"), LONG).await.unwrap_err();
    assert!(error.to_string().contains("open the store again"), "{error}");
    let options = RedisStoreOptions::new().accept_loss();
    let again = options.connect(&server.url()).await.unwrap();
    claim(&again, &id("y")).await;
    let error = append(&store, &lease, 1, b"two").await.unwrap_err();
    assert_eq!(lost(&error), Some((1, 0)), "{error}");
}
