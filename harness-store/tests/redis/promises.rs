//! What a server must promise, versions, and what is shown of a store.

use harness::Seq;
use harness::store::{Filter, SessionStore as _, StoreError};
use harness_store::{RedisStore, RedisStoreOptions};
use redis::Commands as _;

use crate::place::{Place, append, claim};
use crate::server::{SAFE, Server, free_port};
use crate::support::{LONG, id};

async fn refused(server: &Server) -> String {
    match RedisStore::connect(&server.url()).await {
        Err(error @ StoreError::Unsuitable(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_may_lose_what_it_acknowledges_is_refused_with_what_to_set() {
    let server = Server::start(SAFE);
    RedisStore::connect(&server.url()).await.unwrap();
    for (name, value, wanted) in [
        ("appendonly", "no", "yes"),
        ("appendfsync", "everysec", "always"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ] {
        let set = |value: &str| {
            let mut command = redis::cmd("CONFIG");
            command.arg("SET").arg(name).arg(value).exec(&mut server.raw()).unwrap();
        };
        set(value);
        let error = refused(&server).await;
        assert!(error.contains(&format!("set `{name} {wanted}`")), "{error}");
        assert!(error.contains("accept_loss"), "{error}");
        RedisStoreOptions::new().accept_loss().connect(&server.url()).await.unwrap();
        set(wanted);
    }
    RedisStore::connect(&server.url()).await.unwrap();
}

#[tokio::test]
async fn a_url_opens_the_store() {
    let place = Place::new("promises_url");
    let store = harness_store::open(&place.url).await.unwrap();
    // It has the keys of all stores with the usual prefix.
    store.claim(&harness::SessionId::fresh(), LONG).await.unwrap();
    let error = harness_store::open("redis://u:tiger@127.0.0.1:1").await.err().unwrap();
    assert!(!format!("{error} {error:?}").contains("tiger"), "{error:?}");
}

#[tokio::test]
async fn settings_are_read_again_with_each_new_connection() {
    let server = Server::start(SAFE);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    claim(&store, &id("x")).await;
    let mut raw = server.raw();
    redis::cmd("CONFIG").arg("SET").arg("appendfsync").arg("no").exec(&mut raw).unwrap();
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut raw).unwrap();
    let error = loop {
        match store.claim(&id("y"), LONG).await.unwrap_err() {
            StoreError::Unavailable { .. } => {}
            error => break error,
        }
    };
    assert!(error.to_string().contains("appendfsync"), "{error}");
}

#[tokio::test]
async fn a_replicated_server_and_its_replica_are_refused() {
    let server = Server::start(SAFE);
    let port = server.port().to_string();
    let replica = Server::start(&[SAFE, &["--replicaof", "127.0.0.1", &port]].concat());
    let error = refused(&replica).await;
    assert!(error.contains("connect to the master"), "{error}");
    loop {
        let info: String = redis::cmd("INFO").arg("replication").query(&mut server.raw()).unwrap();
        if info.contains("connected_slaves:1") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let error = refused(&server).await;
    assert!(error.contains("1 replicas") && error.contains("accept_loss"), "{error}");
    RedisStoreOptions::new().accept_loss().connect(&server.url()).await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    // If a node of a cluster is not given a port for the other nodes, it takes one that systems give to connections.
    let port = free_port().to_string();
    let cluster = ["--cluster-enabled", "yes", "--cluster-port", &*port];
    let server = Server::start(&[SAFE, &cluster].concat());
    let error = refused(&server).await;
    assert!(error.contains("cluster"), "{error}");
}

#[tokio::test]
async fn a_server_that_hides_its_settings_is_refused_unless_loss_is_accepted() {
    let server = Server::start(&[SAFE, &["--rename-command", "CONFIG", ""]].concat());
    let error = refused(&server).await;
    assert!(error.contains("CONFIG GET") && error.contains("accept_loss"), "{error}");
    let options = RedisStoreOptions::new().accept_loss();
    let store = options.connect(&server.url()).await.unwrap();
    claim(&store, &id("x")).await;
}

#[tokio::test]
async fn a_server_without_memory_is_full_and_still_lets_go_of_sessions() {
    let server = Server::start(&[SAFE, &["--maxmemory", "20mb"]].concat());
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    let bytes = vec![b'x'; 4_000_000];
    let mut after = 0;
    let full = loop {
        match append(&store, &lease, after, &bytes).await {
            Ok(_) => after += 1,
            Err(error) => break error,
        }
    };
    assert!(after > 0 && matches!(full, StoreError::Full(_)), "{full}");
    let listed = store.list(&Filter::sessions(), None, 10).await.unwrap();
    assert_eq!(listed.rows[0].head, Seq(after));
    store.renew(&lease, LONG).await.unwrap();
    store.remove(&lease, harness::store::Remove::All).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
}

#[tokio::test]
async fn a_newer_version_is_refused_by_stores_that_open_and_that_are_open() {
    let place = Place::new("promises_newer");
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    let keys = place.keys();
    let _: () = place.raw().hset(place.store_key(), "format", 2).unwrap();
    let newer = place.options().connect(&place.url).await.unwrap_err();
    for error in [
        newer,
        append(&store, &lease, 1, b"two").await.unwrap_err(),
        store.claim(&id("y"), LONG).await.unwrap_err(),
        store.list(&Filter::sessions(), None, 10).await.unwrap_err(),
        store.send(&id("x"), &[]).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1 }), "{error}");
    }
    assert_eq!(place.keys(), keys);
}

#[tokio::test]
async fn keys_of_another_program_are_left_alone() {
    let place = Place::new("promises_foreign");
    let _: () = place.raw().set(place.store_key(), "other").unwrap();
    let error = place.options().connect(&place.url).await.unwrap_err();
    assert!(error.to_string().contains("another prefix"), "{error}");
    for prefix in ["", "a}", "{b"] {
        let error = RedisStoreOptions::new().prefix(prefix).connect(&place.url).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsuitable(_)), "{error}");
    }
}

#[tokio::test]
async fn a_user_that_the_server_refuses_is_unsuitable_and_no_password_is_shown() {
    let server = Server::start(&[SAFE, &["--requirepass", "lion"]].concat());
    let of = |user: &str| server.url().replace("redis://", &format!("redis://{user}@"));
    for url in [of("none:tiger"), of(":tiger"), server.url()] {
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsuitable(_)), "{error}");
        assert!(!format!("{error} {error:?}").contains("tiger"), "{error:?}");
    }
    let store = RedisStore::connect(&of(":lion")).await.unwrap();
    claim(&store, &id("x")).await;
    assert!(!format!("{store:?}").contains("lion"), "{store:?}");
    // Rights, but none on scripts.
    let mut raw = redis::Client::open(of(":lion")).unwrap().get_connection().unwrap();
    let rules = ["SETUSER", "poor", "on", ">tiger", "~*", "+info", "+config|get"];
    redis::cmd("ACL").arg(&rules).exec(&mut raw).unwrap();
    let error = RedisStore::connect(&of("poor:tiger")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsuitable(_)), "{error}");
    assert!(error.to_string().contains("grant the user"), "{error}");
}
