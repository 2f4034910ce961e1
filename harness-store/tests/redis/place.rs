//! Where the sessions of a test are.

use harness::SessionId;
use harness::store::{Appended, Lease, Phase, StoreError};
use harness_store::{RedisStore, RedisStoreOptions};
use redis::Commands as _;

pub(crate) use crate::support::{append_running as append, claim};

pub(crate) const URL: &str = "HARNESS_REDIS_URL";

/// A server, and what the keys of a store begin with.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl Place {
    /// A prefix on the common server, without the keys of an earlier run.
    pub(crate) fn new(test: &str) -> Self {
        let url = std::env::var(URL).unwrap_or_else(|_| {
            panic!("`{URL}` is not set: these tests need a Redis server (see `.ci/test`)")
        });
        let place = Self { url, prefix: format!("test_{test}") };
        place.clear();
        place
    }

    pub(crate) fn clear(&self) {
        let mut raw = self.raw();
        for keys in self.keys().chunks(1_000) {
            let _: () = raw.unlink(keys).unwrap();
        }
    }

    pub(crate) fn options(&self) -> RedisStoreOptions {
        RedisStoreOptions::new().prefix(&self.prefix)
    }

    pub(crate) async fn open(&self) -> RedisStore {
        self.options().connect(&self.url).await.unwrap()
    }

    /// The server as another program sees it.
    pub(crate) fn raw(&self) -> redis::Connection {
        redis::Client::open(&*self.url).unwrap().get_connection().unwrap()
    }

    /// The keys of the store.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        let mut raw = self.raw();
        let mut found = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{{{}}}:*", self.prefix))
                .arg("COUNT")
                .arg(10_000)
                .query(&mut raw)
                .unwrap();
            found.extend(keys);
            cursor = next;
            if cursor == 0 {
                found.sort_unstable();
                found.dedup();
                return found;
            }
        }
    }

    /// A key of a session.
    pub(crate) fn key(&self, kind: &str, session: &SessionId) -> String {
        format!("{{{}}}:{kind}:{}", self.prefix, session.as_str())
    }

    pub(crate) fn store_key(&self) -> String {
        format!("{{{}}}:store", self.prefix)
    }
}

pub(crate) async fn append_in(
    store: &RedisStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
    phase: Phase,
) -> Result<Appended, StoreError> {
    crate::support::append(store, lease, after, bytes, Some(phase)).await
}
