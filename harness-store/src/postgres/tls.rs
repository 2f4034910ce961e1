//! How connections are made: encrypted or not.

use deadpool_postgres::{Manager, ManagerConfig};
use harness::store::StoreError;
use tokio_postgres::{Config, NoTls};

use super::options::PostgresStoreOptions;

#[derive(Clone)]
pub(crate) enum Tls {
    Off,
    #[cfg(feature = "postgres-tls")]
    On(tokio_postgres_rustls::MakeRustlsConnect),
}

impl Tls {
    pub(crate) fn manager(&self, config: Config, manager: ManagerConfig) -> Manager {
        match self {
            Self::Off => Manager::from_config(config, NoTls, manager),
            #[cfg(feature = "postgres-tls")]
            Self::On(tls) => Manager::from_config(config, tls.clone(), manager),
        }
    }
}

/// Connections to a server whose certificate is valid for its name: by these certificates, or by those
/// that the system trusts.
#[cfg(feature = "postgres-tls")]
pub(crate) fn verified(options: &PostgresStoreOptions) -> Result<Tls, StoreError> {
    use std::sync::Arc;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use rustls_platform_verifier::BuilderVerifierExt as _;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let failed = |error| StoreError::unavailable("failed to set up TLS", error);
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let tls = match &options.roots {
        None => tls.with_platform_verifier().map_err(failed)?,
        Some(pem) => {
            let invalid = || {
                let what = "the root certificates are not valid (give them in the PEM format)";
                StoreError::Unsuitable(what.into())
            };
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| invalid())?;
                roots.add(certificate).map_err(|_| invalid())?;
            }
            if roots.is_empty() {
                return Err(invalid());
            }
            tls.with_root_certificates(roots)
        }
    };
    Ok(Tls::On(tokio_postgres_rustls::MakeRustlsConnect::new(tls.with_no_client_auth())))
}

/// Without the feature there are none.
#[cfg(not(feature = "postgres-tls"))]
pub(crate) fn verified(_: &PostgresStoreOptions) -> Result<Tls, StoreError> {
    Err(StoreError::Unsuitable(
        "the URL asks for TLS, or names another machine without `sslmode=disable` (enable the \
         feature `postgres-tls` of `harness-store`)"
            .into(),
    ))
}
