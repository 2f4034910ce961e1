//! Where the sessions of a test are.

use harness_store::{PostgresStore, PostgresStoreOptions};
use tokio_postgres::{Client, NoTls};

pub(crate) use crate::support::{append_running as append, claim, whole as page};

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

    /// With connections that bear a name.
    pub(crate) fn named(mut self, application: &str) -> Self {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        self.url += &format!("{mark}application_name={application}");
        self
    }

    /// How many rows the server has read of this schema, once no other connection has this name: the
    /// server counts what a connection has read at its end.
    pub(crate) async fn rows_read(&self, application: &str) -> i64 {
        let client = self.raw().await;
        let open = "SELECT FROM pg_stat_activity
                    WHERE application_name = $1 AND pid <> pg_backend_pid()";
        while !client.query(open, &[&application]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let text = "SELECT
            (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = $1)::int8 +
            (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1)::int8";
        client.query_one(text, &[&self.schema]).await.unwrap().get(0)
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
