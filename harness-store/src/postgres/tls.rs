//! Encrypted connections.

use deadpool_postgres::{Manager, ManagerConfig};
use harness::store::StoreError;
use tokio_postgres::Config;

/// Connections to a server whose certificate the system trusts for its name.
#[cfg(feature = "postgres-tls")]
pub(crate) fn manager(config: Config, options: ManagerConfig) -> Result<Manager, StoreError> {
    use std::sync::Arc;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls_platform_verifier::BuilderVerifierExt::with_platform_verifier)
        .map(|tls| tls.with_no_client_auth())
        .map_err(|error| StoreError::unavailable("failed to set up TLS", error))?;
    Ok(Manager::from_config(config, tokio_postgres_rustls::MakeRustlsConnect::new(tls), options))
}

/// Without the feature there are none.
#[cfg(not(feature = "postgres-tls"))]
pub(crate) fn manager(_: Config, _: ManagerConfig) -> Result<Manager, StoreError> {
    Err(StoreError::Unsuitable(
        "the URL asks for TLS (enable the feature `postgres-tls` of `harness-store`)".into(),
    ))
}
