//! The stores that are tortured.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use harness::{SessionId, UtcMillis};
use harness_store::{FileStoreOptions, Sync};

/// Where sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Files,
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// On the server of `HARNESS_POSTGRES_URL`.
    #[cfg(feature = "postgres")]
    Postgres,
    /// On the server of `HARNESS_REDIS_URL`.
    #[cfg(feature = "redis")]
    Redis,
}

/// The tests of a body that takes a [`Kind`], one for each.
macro_rules! in_each_store {
    ($name:ident, $body:ident) => {
        mod $name {
            use crate::store::Kind;

            #[test]
            fn files() {
                super::$body(Kind::Files);
            }

            #[cfg(feature = "sqlite")]
            #[test]
            fn sqlite() {
                super::$body(Kind::Sqlite);
            }

            #[cfg(feature = "postgres")]
            #[test]
            fn postgres() {
                super::$body(Kind::Postgres);
            }

            #[cfg(feature = "redis")]
            #[test]
            fn redis() {
                super::$body(Kind::Redis);
            }
        }
    };
}
pub(crate) use in_each_store;

/// A file that shows all processes where the sessions of a directory are, unless they are in files.
const MARK: &str = "sessions-are-in";

/// What sets these sessions apart from others on a server.
#[cfg(any(feature = "postgres", feature = "redis"))]
const NAME: &str = "torture";

impl Kind {
    /// Decides it for a new directory.
    pub fn choose(self, dir: &Path) {
        if let Some(url) = self.url() {
            mark(dir, &url);
        }
    }

    /// The URL of the store, unless it is in files; without what an earlier run has left there.
    fn url(self) -> Option<String> {
        match self {
            Self::Files => None,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Some("sqlite:".to_owned()),
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let url = server("HARNESS_POSTGRES_URL");
                crate::work::runtime().block_on(clear_postgres(&url));
                Some(url)
            }
            #[cfg(feature = "redis")]
            Self::Redis => {
                let url = server("HARNESS_REDIS_URL");
                clear_redis(&url);
                Some(url)
            }
        }
    }

    /// Whether a session stays held when its process has ended, until its lease expires.
    pub fn is_server(self) -> bool {
        match self {
            Self::Files => false,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
            #[cfg(any(feature = "postgres", feature = "redis"))]
            _ => true,
        }
    }
}

/// The sessions of this directory are in the store of this URL.
pub fn mark(dir: &Path, url: &str) {
    std::fs::write(dir.join(MARK), url).unwrap();
}

/// The URL of the store of this directory.
pub fn marked(dir: &Path) -> String {
    std::fs::read_to_string(dir.join(MARK)).unwrap_or_default()
}

#[cfg(any(feature = "postgres", feature = "redis"))]
fn server(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("`{variable}` is not set: these tests need it (see `.ci/test`)"))
}

/// Removes what an earlier run has left.
#[cfg(feature = "postgres")]
async fn clear_postgres(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let text = format!("SET client_min_messages TO error; DROP SCHEMA IF EXISTS {NAME} CASCADE");
    client.batch_execute(&text).await.unwrap();
}

#[cfg(feature = "redis")]
fn clear_redis(url: &str) {
    let mut server = redis::Client::open(url).unwrap().get_connection().unwrap();
    let all = format!("{{{NAME}}}:*");
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg(all).query(&mut server).unwrap();
    for keys in keys.chunks(1_000) {
        redis::cmd("UNLINK").arg(keys).exec(&mut server).unwrap();
    }
}

/// What happens to a session in a store.
pub enum Moment<'a> {
    /// It is to be claimed, and another run holds it, until then at least.
    Busy(UtcMillis),
    /// Entries are about to be appended, or an inbox message to be sent.
    Before(Option<&'a Batch<'a>>),
    /// They are, and no one has been notified of it.
    After(Option<&'a Batch<'a>>),
}

/// What a test does at these moments.
#[async_trait]
pub trait Hook: Send + std::marker::Sync {
    async fn at(&self, session: &SessionId, moment: Moment<'_>);
}

/// A store of any kind.
#[derive(Clone)]
pub struct Store {
    store: Arc<dyn SessionStore>,
    hook: Option<Arc<dyn Hook>>,
}

impl Store {
    /// The servers always flush.
    pub async fn open(dir: &Path, sync: bool) -> Self {
        let sync = if sync { Sync::Flush } else { Sync::Never };
        let url = marked(dir);
        let store: Arc<dyn SessionStore> = match url.split_once(':').unwrap_or_default().0 {
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let options = harness_store::SqliteStoreOptions::new().sync(sync);
                Arc::new(options.open(dir.join("sessions.db")).await.unwrap())
            }
            #[cfg(feature = "postgres")]
            "postgres" => {
                let options = harness_store::PostgresStoreOptions::new().schema(NAME);
                Arc::new(options.max_connections(4).connect(&url).await.unwrap())
            }
            #[cfg(feature = "redis")]
            "redis" => {
                let options = harness_store::RedisStoreOptions::new().prefix(NAME);
                Arc::new(options.connect(&url).await.unwrap())
            }
            _ => {
                Arc::new(FileStoreOptions::new().sync(sync).open(dir.join("store")).await.unwrap())
            }
        };
        Self { store, hook: None }
    }

    pub fn with(self, hook: impl Hook + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)), ..self }
    }

    async fn at(&self, session: &SessionId, moment: Moment<'_>) {
        if let Some(hook) = &self.hook {
            hook.at(session, moment).await;
        }
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let claimed = self.store.claim(session, ttl).await;
        if let Err(StoreError::Busy { until, .. }) = claimed {
            self.at(session, Moment::Busy(until)).await;
        }
        claimed
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.store.claim_due(request, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.store.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.store.release(lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.at(&lease.session, Moment::Before(Some(&batch))).await;
        let appended = self.store.append(lease, batch).await;
        self.at(&lease.session, Moment::After(Some(&batch))).await;
        appended
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.at(to, Moment::Before(None)).await;
        let sent = self.store.send(to, messages).await;
        self.at(to, Moment::After(None)).await;
        sent
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.store.read(session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.store.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.store.remove(lease, what).await
    }
}
