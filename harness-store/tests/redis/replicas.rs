//! Writes that wait for replicas, with servers that can say what these have on disk: Redis 7.2, or Valkey,
//! whose program is in `HARNESS_VALKEY_BIN`.

use std::time::Duration;

use harness::Seq;
use harness::store::{SessionStore as _, StoreError};
use harness_store::{RedisStore, RedisStoreOptions};

use crate::place::{append, claim};
use crate::server::{SAFE, Server};
use crate::shared_faults::is_unavailable;
use crate::support::{id, message, whole};

fn valkey(settings: &[&str]) -> Server {
    let program = std::env::var("HARNESS_VALKEY_BIN").expect(
        "`HARNESS_VALKEY_BIN` is not set: this test needs a Valkey server (see `.ci/test`)",
    );
    Server::start_program(&program, settings)
}

/// How long a store waits that is to fail, and one that is to succeed on a busy machine, too.
const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);

async fn connect(server: &Server, limit: Duration) -> RedisStore {
    let options = RedisStoreOptions::new().replicas(1).call_timeout(limit);
    options.connect(&server.url()).await.unwrap()
}

fn is_unreplicated(error: &StoreError) -> bool {
    is_unavailable(error, true) && error.to_string().contains("replicas")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_on_the_disk_of_a_replica() {
    let server = valkey(SAFE);
    let port = server.port().to_string();
    let replica = valkey(&[SAFE, &["--replicaof", "127.0.0.1", &port]].concat());
    loop {
        let info: String = redis::cmd("INFO").arg("replication").query(&mut server.raw()).unwrap();
        if info.contains("state=online") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (patient, store) = (connect(&server, LONG).await, connect(&server, SHORT).await);
    // Its connection has written nothing since, and so has nothing of its own to wait for.
    let other = connect(&server, SHORT).await;
    let lease = claim(&patient, &id("x")).await;
    append(&patient, &lease, 0, b"one").await.unwrap();
    assert_eq!(whole(&other, &id("x")).await.head, Seq(1));

    replica.stand_still(true);
    let lost = append(&store, &lease, 1, b"two").await.unwrap_err();
    assert!(is_unreplicated(&lost), "{lost}");
    let lost = store.send(&id("x"), &[message("k", "v")]).await.unwrap_err();
    assert!(is_unreplicated(&lost), "{lost}");
    // It is there, and still not acknowledged to who sends it again.
    assert_eq!(whole(&other, &id("x")).await.head, Seq(2));
    let again = append(&other, &lease, 1, b"two").await.unwrap_err();
    assert!(is_unreplicated(&again), "{again}");
    let again = other.send(&id("x"), &[message("k", "v")]).await.unwrap_err();
    assert!(is_unreplicated(&again), "{again}");
    replica.stand_still(false);
    let head = append(&patient, &lease, 1, b"two").await.unwrap().head;
    assert_eq!(head, Seq(2));
    patient.send(&id("x"), &[message("k", "v")]).await.unwrap();

    // The replica takes the place of the server.
    server.kill();
    redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec(&mut replica.raw()).unwrap();
    let store = RedisStore::connect(&replica.url()).await.unwrap();
    let page = whole(&store, &id("x")).await;
    let entries: Vec<_> = page.entries.into_iter().map(|entry| entry.bytes).collect();
    assert_eq!(entries, [b"one", b"two"]);
    assert_eq!(page.messages.len(), 1);
}
