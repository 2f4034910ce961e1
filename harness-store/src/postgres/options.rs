//! How a store is opened.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use harness::store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::client::Client;
use super::schema;
use super::store::PostgresStore;

/// How a [`PostgresStore`] is opened.
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
    accept_loss: bool,
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
        }
    }
}

impl PostgresStoreOptions {
    /// What [`PostgresStore::connect`] uses.
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

    /// How long the server may take to answer a statement; the default is 30 seconds. Then the call
    /// fails with [`StoreError::Unavailable`], which says whether it may have had its effect, and the
    /// connection is closed. The server gives up a statement after the same time.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Uses a server with `fsync = off`, which loses acknowledged batches when its machine crashes.
    #[must_use]
    pub fn accept_loss(mut self) -> Self {
        self.accept_loss = true;
        self
    }

    /// Connects to the database of a URL such as `postgres://user:password@host:5432/database`, and
    /// creates the tables of the store, or brings those of an older version to this one.
    ///
    /// With `?sslmode=require`, `verify-ca` or `verify-full` connections are encrypted, and the
    /// certificate of the server is verified with its name by the certificates that the system
    /// trusts; this needs the feature `postgres-tls`. In all other cases they are not encrypted.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the URL is not valid, the server refuses the user, the database
    /// or a privilege, or does not promise what the store relies on; [`StoreError::NewerFormat`] if a
    /// newer version has made the tables; [`StoreError::Unavailable`] if the server does not answer.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        let (config, wants_tls) = parse(url)?;
        let client = Client::new(config, wants_tls, &self)?;
        let mut connection = client.connection().await?;
        let settings = connection
            .query("SELECT current_setting('fsync'), pg_is_in_recovery()", &[], false)
            .await?;
        let row = settings.first();
        if !self.accept_loss && row.is_some_and(|row| matches!(row.try_get(0), Ok("off"))) {
            return Err(StoreError::Unsuitable(
                "the server has `fsync = off`, so that a crash of its machine loses acknowledged \
                 batches (set it to `on`, or accept that with `accept_loss`)"
                    .into(),
            ));
        }
        if row.is_some_and(|row| matches!(row.try_get(1), Ok(true))) {
            return Err(StoreError::Unsuitable(
                "the server is a standby, which takes no writes (connect to the primary server)"
                    .into(),
            ));
        }
        schema::set_up(&mut connection, &self.schema).await?;
        drop(connection);
        Ok(PostgresStore { client })
    }
}

/// What a URL says, and whether it asks for TLS. What is wrong with one is not shown: parts of the
/// password may be in it.
fn parse(url: &str) -> Result<(Config, bool), StoreError> {
    let (mut text, mut verifies) = (url.to_owned(), false);
    // Certificates are always verified in full.
    for mode in ["verify-full", "verify-ca"] {
        let asked = format!("sslmode={mode}");
        if text.contains(&asked) {
            (text, verifies) = (text.replace(&asked, "sslmode=require"), true);
        }
    }
    let mut config = Config::from_str(&text).map_err(|_| {
        StoreError::Unsuitable(
            "the URL of the database is not valid (it has the form \
             `postgres://user:password@host:5432/database`; encode special characters of the \
             password as `%40`)"
                .into(),
        )
    })?;
    let wants_tls = verifies || config.get_ssl_mode() == SslMode::Require;
    if !wants_tls {
        config.ssl_mode(SslMode::Disable);
    }
    if config.get_application_name().is_none() {
        config.application_name("harness");
    }
    Ok((config, wants_tls))
}

/// A store prints where its sessions are, and no more of the URL.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("client", &self.client).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tls_is_used_where_the_url_asks_for_it() {
        let wants = |url: &str| parse(url).unwrap().1;
        assert!(!wants("postgres://u:p@h/d"));
        assert!(!wants("postgres://u:p@h/d?sslmode=prefer"));
        assert!(!wants("host=h user=u"));
        for mode in ["require", "verify-ca", "verify-full"] {
            assert!(wants(&format!("postgres://u:p@h/d?connect_timeout=3&sslmode={mode}")));
        }
        assert!(wants("host=h user=u sslmode=verify-full"));
    }

    #[test]
    fn a_url_that_is_not_valid_is_refused_without_its_password() {
        for url in ["postgres://u:p@h:tiger/d", "postgres://u:p@h/d?tiger=1", "tiger"] {
            let refused = parse(url).unwrap_err();
            assert!(matches!(refused, StoreError::Unsuitable(_)), "{refused}");
            assert!(!format!("{refused} {refused:?}").contains("tiger"), "{refused:?}");
        }
    }

    #[cfg(not(feature = "postgres-tls"))]
    #[tokio::test]
    async fn tls_without_its_feature_is_refused() {
        let url = "postgres://u:tiger@127.0.0.1:1/d?sslmode=require";
        let refused = PostgresStore::connect(url).await.unwrap_err();
        assert!(refused.to_string().contains("postgres-tls"), "{refused}");
    }
}
