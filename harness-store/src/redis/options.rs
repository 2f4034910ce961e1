//! How a store is opened.

use std::fmt;
use std::time::Duration;

use harness::store::StoreError;
use redis::{ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};

use super::client::Client;
use super::due::Listener;
use super::known::Known;
use super::store::RedisStore;

/// How a [`RedisStore`] is opened.
///
/// ```no_run
/// # async fn example(url: &str) -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness_store::RedisStoreOptions;
///
/// let store = RedisStoreOptions::new()
///     .prefix("agents")
///     .call_timeout(Duration::from_secs(5))
///     .connect(url)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisStoreOptions {
    pub(crate) prefix: String,
    pub(crate) max_connections: usize,
    pub(crate) wait: Duration,
    pub(crate) connect: Duration,
    pub(crate) timeout: Duration,
    pub(crate) accept_loss: bool,
    pub(crate) replicas: Replicas,
    pub(crate) expire_ended: Option<Duration>,
}

/// Whether writes wait for replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replicas {
    None,
    Wait(u32),
}

impl Default for RedisStoreOptions {
    fn default() -> Self {
        Self {
            prefix: "harness".into(),
            max_connections: 32,
            wait: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            accept_loss: false,
            replicas: Replicas::None,
            expire_ended: None,
        }
    }
}

impl RedisStoreOptions {
    /// What [`RedisStore::connect`] uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the keys of the store begin with, in braces; the default is `harness`. Each prefix is a
    /// store of its own.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many connections this store opens at most; the default is 32. A call has one for itself
    /// while it lasts. Connections are opened when they are needed. The server syncs the calls that
    /// arrive at the same time at once, so more connections are more appends per second.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.clamp(1, 10_000);
        self
    }

    /// How long a call waits for a connection while all are in use; the default is ten seconds. Then
    /// it fails with [`StoreError::Unavailable`], without an effect.
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.wait = timeout;
        self
    }

    /// How long it may take to open a connection; the default is ten seconds.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect = timeout;
        self
    }

    /// How long the server may take to answer a call; the default is 30 seconds. Then the call fails
    /// with [`StoreError::Unavailable`], which says whether it may have had its effect, and the
    /// connection is closed.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Uses a server that may lose acknowledged batches, messages and sessions: when it or its machine
    /// crashes, when a replica takes its place, or when its memory is full.
    #[must_use]
    pub fn accept_loss(mut self) -> Self {
        self.accept_loss = true;
        self
    }

    /// Each write waits until so many replicas have it on disk, so that it survives if one of these takes
    /// the place of the server; this needs Redis 7.2. Choose as many as there are, or have whatever
    /// makes a replica the master choose one that has everything. A write that they do not have within
    /// the time of a call fails with [`StoreError::Unavailable`], and may have had its effect.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = if replicas == 0 { Replicas::None } else { Replicas::Wait(replicas) };
        self
    }

    /// Removes sessions so long after their last turn has ended, as far as no message waits in their
    /// inbox; the default keeps them. They are removed when sessions are claimed after that, a few at
    /// a time. Each store on the same keys should have the same time.
    #[must_use]
    pub fn expire_ended(mut self, after: Duration) -> Self {
        self.expire_ended = Some(after);
        self
    }

    /// Connects to the server of a URL such as `redis://user:password@host:6379/0`, where `0` is the
    /// number of the database.
    ///
    /// With `rediss://` connections are encrypted, and the certificate of the server is verified with
    /// its name by the certificates that the system trusts; this needs the feature `redis-tls`.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the URL or the prefix is not valid, the server refuses the user, or
    /// does not promise what the store relies on; [`StoreError::NewerFormat`] if a newer version has
    /// made the store; [`StoreError::Unavailable`] if the server does not answer.
    pub async fn connect(self, url: &str) -> Result<RedisStore, StoreError> {
        if self.prefix.is_empty() || self.prefix.contains(['{', '}']) {
            let what = "the prefix of the keys is empty or has braces (choose another)";
            return Err(StoreError::Unsuitable(what.into()));
        }
        let client = redis::Client::open(parse(url)?)
            .map_err(|error| StoreError::unavailable("failed to set up connections", error))?;
        let client = Client::new(client, self);
        client.open().await?;
        Ok(RedisStore {
            client,
            known: Known::default().into(),
            listener: Listener::default().into(),
        })
    }
}

/// What a URL says. What is wrong with one is not shown: parts of the password may be in it.
fn parse(url: &str) -> Result<ConnectionInfo, StoreError> {
    let wants_tls = url.starts_with("rediss:");
    if wants_tls && !cfg!(feature = "redis-tls") {
        return Err(StoreError::Unsuitable(
            "the URL asks for TLS (enable the feature `redis-tls` of `harness-store`)".into(),
        ));
    }
    let invalid = || {
        StoreError::Unsuitable(
            "the URL of the server is not valid (it has the form \
             `redis://user:password@host:6379/0`; encode special characters of the password as \
             `%40`)"
                .into(),
        )
    };
    // It would accept any certificate.
    if wants_tls && url.contains('#') || !url.starts_with("redis") {
        return Err(invalid());
    }
    let info = url.into_connection_info().map_err(|_| invalid())?;
    #[cfg(feature = "redis-tls")]
    if wants_tls && rustls::crypto::CryptoProvider::get_default().is_none() {
        // The client takes that of the process. If another is set at this moment, that is used.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    }
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    Ok(info.set_redis_settings(settings))
}

/// A store prints where its sessions are, and no more of the URL.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("client", &self.client).finish()
    }
}
