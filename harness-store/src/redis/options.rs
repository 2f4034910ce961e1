//! What a store is opened with.

use std::time::Duration;

/// How a [`RedisStore`](crate::RedisStore) is opened.
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
    #[cfg(feature = "redis-tls")]
    pub(crate) roots: Option<Vec<u8>>,
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
            #[cfg(feature = "redis-tls")]
            roots: None,
        }
    }
}

impl RedisStoreOptions {
    /// What [`RedisStore::connect`](crate::RedisStore::connect) uses.
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
    /// it fails with [`StoreError::Unavailable`](harness::store::StoreError::Unavailable), without an effect.
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
    /// with [`StoreError::Unavailable`](harness::store::StoreError::Unavailable), which says whether it may have had its effect, and the
    /// connection is closed.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts servers whose certificate was issued by one of these, in the PEM format, instead of
    /// those that the system trusts.
    #[cfg(feature = "redis-tls")]
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
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
    /// the time of a call fails with [`StoreError::Unavailable`](harness::store::StoreError::Unavailable), and may have had its effect.
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
}
