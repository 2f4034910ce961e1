//! What the URL of a database says.

use std::net::IpAddr;

use harness::store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The configuration in a URL, and whether connections are encrypted. What is wrong with a URL is not
/// shown: parts of the password may be in it.
pub(crate) fn parse(url: &str) -> Result<(Config, bool), StoreError> {
    let (url, mode) = without_mode(url);
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let mut config: Config = url.parse().ok().filter(|_| is_url).ok_or_else(|| {
        StoreError::Unsuitable(
            "the URL of the database is not valid (it has the form \
             `postgres://user:password@host:5432/database`; encode special characters of the \
             password as `%40`)"
                .into(),
        )
    })?;
    let encrypted = match mode.as_deref() {
        None => !is_local(&config),
        Some("disable") => false,
        // The weaker two are met by the strict one.
        Some("require" | "verify-ca" | "verify-full") => true,
        Some(_) => {
            return Err(StoreError::Unsuitable(
                "the URL has an `sslmode` that may or may not encrypt (use `verify-full` or \
                 `disable`)"
                    .into(),
            ));
        }
    };
    config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
    if config.get_application_name().is_none() {
        config.application_name("harness");
    }
    Ok((config, encrypted))
}

/// A URL without its `sslmode`, and the last of these.
fn without_mode(url: &str) -> (String, Option<String>) {
    // A password may have a question mark.
    let begin = url.find('@').unwrap_or_default();
    let Some(query) = url[begin..].find('?').map(|at| begin + at) else {
        return (url.into(), None);
    };
    let parts = url[query + 1..].split('&');
    let (modes, rest): (Vec<_>, Vec<_>) = parts.partition(|part| part.starts_with("sslmode="));
    let mode = modes.last().and_then(|part| part.split_once('='));
    let mut kept = url[..query].to_owned();
    if !rest.is_empty() {
        kept = format!("{kept}?{}", rest.join("&"));
    }
    (kept, mode.map(|(_, mode)| mode.to_owned()))
}

/// Whether what is sent leaves this machine.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_the_url_says_otherwise() {
        let encrypts = |url: &str| parse(url).unwrap().1;
        assert!(encrypts("postgres://u:p@h/d"));
        assert!(encrypts("postgresql://u:p@10.0.0.1/d?connect_timeout=3"));
        assert!(encrypts("postgres://u:p@localhost,h/d"), "one of them is another machine");
        assert!(encrypts("postgres://u:p@localhost/d?hostaddr=10.0.0.1"));
        assert!(!encrypts("postgres://u:p@localhost/d"));
        assert!(!encrypts("postgres://u:p@127.0.0.1:1/d?application_name=a"));
        assert!(!encrypts("postgres://u@%2Frun%2Fpostgres/d"));
        for mode in ["require", "verify-ca", "verify-full"] {
            assert!(encrypts(&format!("postgres://localhost?connect_timeout=3&sslmode={mode}")));
        }
        assert!(!encrypts("postgres://u:p@h/d?sslmode=disable&connect_timeout=3"));
        assert!(encrypts("postgres://u:a?sslmode=disable@h/d"), "that is the password");
        let (config, _) = parse("postgres://h/d?sslmode=disable&application_name=a").unwrap();
        assert_eq!(config.get_application_name(), Some("a"));
    }

    #[test]
    fn modes_that_may_leave_out_encryption_are_refused() {
        for mode in ["allow", "prefer", "full"] {
            let refused = parse(&format!("postgres://u:p@h/d?sslmode={mode}")).unwrap_err();
            assert!(refused.to_string().contains("verify-full"), "{refused}");
        }
    }

    #[test]
    fn a_url_that_is_not_valid_is_refused_without_its_password() {
        for url in [
            "postgres://u:p@h:tiger/d",
            "postgres://u:p@h/d?tiger=1",
            "tiger",
            "host=h user=u password=tiger",
        ] {
            let refused = parse(url).unwrap_err();
            assert!(matches!(refused, StoreError::Unsuitable(_)), "{refused}");
            assert!(!format!("{refused} {refused:?}").contains("tiger"), "{refused:?}");
        }
    }

    #[cfg(not(feature = "postgres-tls"))]
    #[tokio::test]
    async fn tls_without_its_feature_is_refused() {
        let refused = crate::PostgresStore::connect("postgres://u:tiger@h/d").await.unwrap_err();
        assert!(refused.to_string().contains("postgres-tls"), "{refused}");
    }
}
