//! Encrypted connections, to a server with a certificate that it has signed itself.

use harness::store::StoreError;
use harness_store::{RedisStore, RedisStoreOptions};

use crate::place::{append, claim};
use crate::server::{SAFE, Server};
use crate::support::id;

const PASSWORD: &str = "canary-a3f9";

async fn connect(host: &str, port: u16, roots: Option<&[u8]>) -> Result<RedisStore, StoreError> {
    let options = RedisStoreOptions::new();
    let options = match roots {
        Some(roots) => options.root_certificates(roots),
        None => options,
    };
    options.connect(&format!("rediss://:{PASSWORD}@{host}:{port}")).await
}

fn refused(found: Result<RedisStore, StoreError>, why: &str) {
    let error = found.unwrap_err();
    assert!(matches!(error, StoreError::Unsuitable(_)), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(text.contains(why), "{text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_verified_with_its_name() {
    let start = || Server::encrypted(&[SAFE, &["--requirepass", PASSWORD]].concat());
    let (server, port, certificate) = tokio::task::block_in_place(start);
    let store = connect("localhost", port, Some(&certificate)).await.unwrap();
    assert!(!format!("{store:?}").contains(PASSWORD));
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    // The system does not know it, it is not valid for this name, and no other has issued it.
    refused(connect("localhost", port, None).await, "certificate");
    refused(connect("127.0.0.1", port, Some(&certificate)).await, "certificate");
    let (other, _, foreign) = tokio::task::block_in_place(start);
    refused(connect("localhost", port, Some(&foreign)).await, "certificate");
    refused(connect("localhost", port, Some(b"-----BEGIN CERTIFICATE-----")).await, "PEM");
    refused(connect("localhost", port, Some(b"no certificate")).await, "certificate");
    // A server without encryption does not get the password.
    let plain = connect("localhost", other.port(), Some(&foreign)).await.unwrap_err();
    assert!(!format!("{plain} {plain:?}").contains(PASSWORD));
    drop(server);
}
