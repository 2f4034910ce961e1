//! A store by its URL.

use std::sync::Arc;

use harness::store::{MemoryStore, SessionStore, StoreError};

/// Opens the store of a URL, which a program may take from its configuration:
///
/// | URL | store | feature |
/// |---|---|---|
/// | `memory:` | [`MemoryStore`] | |
/// | `file:some/directory` | `FileStore` | `file` |
/// | `sqlite:some/file.db` | `SqliteStore` | `sqlite` |
/// | `postgres://user:password@host/database` | `PostgresStore` | `postgres` |
/// | `redis://user:password@host`, `rediss://..` with TLS | `RedisStore` | `redis`, `redis-tls` |
/// | `restate://host:8080/agent?admin=http://host:9070` | `restate::RestateStore` | `restate` |
///
/// A path is what follows `file:` or `sqlite:`, as it is; `file:///a` is the same as `file:/a`. Each
/// store is opened with its defaults; their options have what a URL has no place for.
///
/// ```
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// let url = std::env::var("SESSIONS").unwrap_or_else(|_| "memory:".into());
/// let store = harness_store::open(&url).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StoreError::Unsuitable`] if the scheme of the URL is not one of these, or this program was built
/// without the feature of its store; and what the store answers when it is opened. No error shows the
/// URL, which may have a password.
pub async fn open(url: &str) -> Result<Arc<dyn SessionStore>, StoreError> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    match scheme {
        "memory" => Ok(Arc::new(MemoryStore::new())),
        "file" => file(path(rest)).await,
        "sqlite" => sqlite(path(rest)).await,
        "postgres" | "postgresql" => postgres(url).await,
        "redis" | "rediss" => redis(url).await,
        "restate" => restate(url).await,
        _ => Err(StoreError::Unsuitable(
            "the URL of the store has no known scheme (begin it with `memory:`, `file:`, `sqlite:`, \
             `postgres:`, `redis:` or `restate:`)"
                .into(),
        )),
    }
}

fn path(rest: &str) -> &str {
    match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        _ => rest,
    }
}

/// A function that opens a store, or says which feature it needs.
macro_rules! opens {
    ($name:ident, $feature:literal, $open:expr) => {
        async fn $name(place: &str) -> Result<Arc<dyn SessionStore>, StoreError> {
            #[cfg(feature = $feature)]
            return $open(place).await.map(|store| Arc::new(store) as Arc<dyn SessionStore>);
            #[cfg(not(feature = $feature))]
            {
                let _ = place;
                Err(StoreError::Unsuitable(format!(
                    "this program was built without the store of the URL (enable the feature `{}` of \
                     `harness-store`)",
                    $feature
                )))
            }
        }
    };
}

opens!(file, "file", crate::FileStore::open);
opens!(sqlite, "sqlite", crate::SqliteStore::open);
opens!(postgres, "postgres", crate::PostgresStore::connect);
opens!(redis, "redis", crate::RedisStore::connect);
opens!(restate, "restate", by_url);

#[cfg(feature = "restate")]
async fn by_url(url: &str) -> Result<crate::restate::RestateStore, StoreError> {
    crate::restate::RestateStore::from_url(url)
        .map_err(|error| StoreError::Unsuitable(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    async fn refused(url: &str) -> String {
        match open(url).await {
            Err(error @ StoreError::Unsuitable(_)) => {
                assert!(!format!("{error} {error:?}").contains("tiger"), "{error:?}");
                error.to_string()
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it opens"),
        }
    }

    #[tokio::test]
    async fn the_scheme_of_a_url_picks_the_store() {
        open("memory:").await.unwrap();
        for url in ["", "tiger", "tiger:x", "mysql://u:tiger@h", "u:tiger@h"] {
            let said = refused(url).await;
            assert!(said.contains("no known scheme"), "{said}");
        }
        for url in ["postgres://u:tiger@:x/d", "redis://u:tiger@:x/d", "rediss://u:tiger@h/x"] {
            refused(url).await;
        }
        for url in ["restate:tiger", "restate://tiger:8080", "restate://tiger:8080/a/b"] {
            refused(url).await;
        }
    }

    #[cfg(any(feature = "file", feature = "sqlite"))]
    #[tokio::test]
    async fn a_path_is_taken_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        for (feature, url) in [
            (cfg!(feature = "file"), format!("file:{at}/a b")),
            (cfg!(feature = "file"), format!("file://{at}/c%20d")),
            (cfg!(feature = "sqlite"), format!("sqlite:{at}/e?f")),
        ] {
            if feature {
                open(&url).await.unwrap();
            }
        }
        let is_there = |name: &str| dir.path().join(name).exists();
        assert_eq!(is_there("a b") && is_there("c%20d"), cfg!(feature = "file"));
        assert_eq!(is_there("e?f"), cfg!(feature = "sqlite"));
    }

    #[cfg(not(feature = "redis"))]
    #[tokio::test]
    async fn a_store_that_is_not_compiled_in_names_its_feature() {
        let said = refused("redis://u:tiger@h").await;
        assert!(said.contains("feature `redis`"), "{said}");
    }

    #[cfg(not(feature = "file"))]
    #[tokio::test]
    async fn files_that_are_not_compiled_in_name_their_feature() {
        let said = refused("file:tiger").await;
        assert!(said.contains("feature `file`"), "{said}");
    }
}
