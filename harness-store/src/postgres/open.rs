//! Opening a store: what a URL says, and what the server must promise.

use std::fmt;
use std::str::FromStr as _;

use harness::store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::client::Client;
use super::group::Groups;
use super::options::PostgresStoreOptions;
use super::schema;
use super::store::PostgresStore;

impl PostgresStore {
    /// Connects to the database of a URL such as `postgres://user:password@host:5432/database`, and
    /// creates the tables of the store, in the schema `harness`, if they are missing.
    ///
    /// # Errors
    /// As [`PostgresStoreOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        PostgresStoreOptions::new().connect(url).await
    }
}

impl PostgresStoreOptions {
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
        Ok(PostgresStore { groups: Groups::new(client.clone()), client })
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
