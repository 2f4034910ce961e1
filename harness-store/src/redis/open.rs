//! Opening a store.

use std::sync::Arc;

use harness::store::StoreError;
use redis::{ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};

use super::client::Client;
use super::inner::Inner;
use super::known::Known;
use super::listener::Listener;
use super::options::RedisStoreOptions;
use super::store::RedisStore;

impl RedisStore {
    /// Connects to the server of a URL such as `redis://user:password@host:6379/0`.
    ///
    /// # Errors
    /// As [`RedisStoreOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        RedisStoreOptions::new().connect(url).await
    }
}

impl RedisStoreOptions {
    /// Connects to the server of a URL such as `redis://user:password@host:6379/0`, where `0` is the
    /// number of the database.
    ///
    /// With `rediss://` connections are encrypted, and the certificate of the server is verified with
    /// its name by the certificates that the system trusts, or by those of `root_certificates`; this needs the
    /// feature `redis-tls`.
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
        let client = Client::new(connections(parse(url)?, &self)?, self);
        client.open().await?;
        let (known, listener) = (Known::default(), Listener::default());
        Ok(RedisStore { inner: Arc::new(Inner { client, known, listener }) })
    }
}

/// What opens connections.
fn connections(
    to: ConnectionInfo,
    options: &RedisStoreOptions,
) -> Result<redis::Client, StoreError> {
    #[cfg(feature = "redis-tls")]
    if let redis::ConnectionAddr::TcpTls { .. } = to.addr()
        && let Some(pem) = &options.roots
    {
        let certificates =
            redis::TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
        return redis::Client::build_with_tls(to, certificates).map_err(|_| {
            let what = "the root certificates are not valid (give them in the PEM format)";
            StoreError::Unsuitable(what.into())
        });
    }
    let _ = options;
    redis::Client::open(to)
        .map_err(|error| StoreError::unavailable("failed to set up connections", error))
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
