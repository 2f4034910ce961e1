//! Where the sessions of a test are.

use harness::store::{
    Appended, Batch, InboxSeq, Lease, NewEntry, Page, Phase, ReadRequest, SessionStore as _,
    StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::{PostgresStore, PostgresStoreOptions};
use tokio_postgres::{Client, NoTls};

use crate::support::{LONG, summary};

pub(crate) const URL: &str = "HARNESS_POSTGRES_URL";

/// A database, and a schema in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Place {
    /// A schema of the common server, without the tables of an earlier run.
    pub(crate) async fn new(test: &str) -> Self {
        let url = std::env::var(URL).unwrap_or_else(|_| {
            panic!("`{URL}` is not set: these tests need a PostgreSQL server (see `.ci/test`)")
        });
        let place = Self { url, schema: format!("test_{test}") };
        place.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", place.schema)).await;
        place
    }

    pub(crate) fn options(&self) -> PostgresStoreOptions {
        PostgresStoreOptions::new().schema(&self.schema).max_connections(4)
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        self.options().connect(&self.url).await.unwrap()
    }

    /// The database as another program sees it.
    pub(crate) async fn raw(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let path = format!("SET search_path TO {}; SET client_min_messages TO error", self.schema);
        client.batch_execute(&path).await.unwrap();
        client
    }

    pub(crate) async fn run(&self, text: &str) {
        self.raw().await.batch_execute(text).await.unwrap();
    }
}

pub(crate) async fn claim(store: &PostgresStore, session: &SessionId) -> Lease {
    store.claim(session, LONG).await.unwrap().lease
}

pub(crate) async fn append(
    store: &PostgresStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<Appended, StoreError> {
    let summary = summary(Phase::Running);
    let entries = [NewEntry { bytes, snapshot: false }];
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(1_000 + after),
        entries: &entries,
        summary: Some(&summary),
        flush: true,
        ..Batch::default()
    };
    store.append(lease, batch).await
}

pub(crate) async fn page(store: &PostgresStore, session: &SessionId) -> Page {
    let request = ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0)).limit(u64::MAX);
    store.read(session, request).await.unwrap().unwrap()
}
