//! What a store is opened with.

use std::time::Duration;

/// How a [`PostgresStore`](crate::PostgresStore) is opened.
///
/// ```no_run
/// # async fn example(url: &str) -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness_store::PostgresStoreOptions;
///
/// let store = PostgresStoreOptions::new()
///     .schema("agents")
///     .max_connections(16)
///     .call_timeout(Duration::from_secs(5))
///     .connect(url)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStoreOptions {
    pub(crate) schema: String,
    pub(crate) max_connections: usize,
    pub(crate) wait: Duration,
    pub(crate) connect: Duration,
    pub(crate) timeout: Duration,
    pub(crate) accept_loss: bool,
    #[cfg(feature = "postgres-tls")]
    pub(crate) roots: Option<Vec<u8>>,
}

impl Default for PostgresStoreOptions {
    fn default() -> Self {
        Self {
            schema: "harness".into(),
            max_connections: 8,
            wait: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            accept_loss: false,
            #[cfg(feature = "postgres-tls")]
            roots: None,
        }
    }
}

impl PostgresStoreOptions {
    /// What [`PostgresStore::connect`](crate::PostgresStore::connect) uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema with the tables of the store, which is created if it is missing; the default is
    /// `harness`. Each schema is a store of its own.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// How many connections this store opens at most; the default is 8. A call has one for itself
    /// while it lasts. Connections are opened when they are needed.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
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

    /// How long the server may take to answer a statement; the default is 30 seconds. Then the call
    /// fails with [`StoreError::Unavailable`](harness::store::StoreError::Unavailable), which says whether it may have had its effect, and the
    /// connection is closed. The server gives up a statement after the same time.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts servers whose certificate was issued by one of these, in the PEM format, instead of
    /// those that the system trusts.
    #[cfg(feature = "postgres-tls")]
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Uses a server with `fsync = off` or `full_page_writes = off`, which loses acknowledged batches when its machine crashes.
    #[must_use]
    pub fn accept_loss(mut self) -> Self {
        self.accept_loss = true;
        self
    }
}
