//! Encrypted connections, to a server with a certificate that it has signed itself.

use harness::store::StoreError;
use harness_store::{PostgresStore, PostgresStoreOptions};

use crate::place::{append, claim};
use crate::server::Server;
use crate::support::id;

const PASSWORD: &str = "canary-e1f2";

async fn connect(
    server: &Server,
    host: &str,
    roots: Option<&[u8]>,
) -> Result<PostgresStore, StoreError> {
    let url = server.url_by(&format!("harness:{PASSWORD}@{host}")) + "?sslmode=verify-full";
    let options = PostgresStoreOptions::new();
    let options = match roots {
        Some(roots) => options.root_certificates(roots),
        None => options,
    };
    assert!(!format!("{options:?}").contains(PASSWORD));
    options.connect(&url).await
}

fn refused(found: Result<PostgresStore, StoreError>, why: &str) {
    let error = found.unwrap_err();
    assert!(matches!(error, StoreError::Unsuitable(_)), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(text.contains(why), "{text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_verified_with_its_name() {
    let (server, certificate) = tokio::task::block_in_place(Server::encrypted);
    let store = connect(&server, "localhost", Some(&certificate)).await.unwrap();
    assert!(!format!("{store:?}").contains(PASSWORD));
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let text = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                WHERE application_name = 'harness'";
    let rows = client.query(text, &[]).await.unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.get(0)));
    // The system does not know it, it is not valid for this name, and no other has issued it.
    refused(connect(&server, "localhost", None).await, "certificate");
    refused(connect(&server, "127.0.0.1", Some(&certificate)).await, "certificate");
    let (_, other) = tokio::task::block_in_place(Server::encrypted);
    refused(connect(&server, "localhost", Some(&other)).await, "certificate");
    refused(connect(&server, "localhost", Some(b"no certificate")).await, "PEM");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_encryption_is_refused_where_the_url_asks_for_it() {
    let server = tokio::task::block_in_place(Server::start);
    refused(connect(&server, "localhost", None).await, "does not support TLS");
}
