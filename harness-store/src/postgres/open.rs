//! Opening a store, and what the server must promise.

use std::fmt;

use harness::store::StoreError;

use super::client::Client;
use super::group::Groups;
use super::listen::Listener;
use super::options::PostgresStoreOptions;
use super::schema;
use super::store::PostgresStore;
use super::tls::{self, Tls};
use super::url;

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
    /// Connections to another machine are encrypted, and the certificate of the server is verified with
    /// its name; this needs the feature `postgres-tls`. `?sslmode=disable` leaves that out, and
    /// `?sslmode=verify-full` asks for it on this machine, too. `require` and `verify-ca` mean
    /// `verify-full`; the other modes, which may or may not encrypt, are refused.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the URL is not valid, the server refuses the user, the database
    /// or a privilege, or does not promise what the store relies on; [`StoreError::NewerFormat`] if a
    /// newer version has made the tables; [`StoreError::Unavailable`] if the server does not answer.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        let (config, encrypted) = url::parse(url)?;
        let tls = if encrypted { tls::verified(&self)? } else { Tls::Off };
        let client = Client::new(config.clone(), &tls, &self)?;
        let mut connection = client.connection().await?;
        let settings = connection
            .query(
                "SELECT pg_is_in_recovery(), current_setting('fsync'), \
                 current_setting('full_page_writes')",
                &[],
                false,
            )
            .await?;
        let row = settings.first();
        for (place, name) in [(1, "fsync"), (2, "full_page_writes")] {
            if !self.accept_loss && row.is_some_and(|row| matches!(row.try_get(place), Ok("off"))) {
                return Err(StoreError::Unsuitable(format!(
                    "the server has `{name} = off`, so that a crash of its machine loses \
                     acknowledged batches (set it to `on`, or accept that with `accept_loss`)"
                )));
            }
        }
        if row.is_some_and(|row| matches!(row.try_get(0), Ok(true))) {
            return Err(StoreError::Unsuitable(
                "the server is a standby, which takes no writes (connect to the primary server)"
                    .into(),
            ));
        }
        schema::set_up(&mut connection, &self.schema).await?;
        drop(connection);
        let groups = Groups::new(client.clone());
        let listener = Listener::new(config, tls, &self);
        Ok(PostgresStore { client, groups, listener })
    }
}

/// A store prints where its sessions are, and no more of the URL.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("client", &self.client).finish()
    }
}
