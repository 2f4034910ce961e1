//! What a server must promise.

use std::collections::HashMap;

use harness::store::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::error::no_connection;
use super::options::{RedisStoreOptions, Replicas};

/// What a server has said of itself: the lines `name:value` of `INFO`, and its settings.
#[derive(Debug, Default)]
struct Found {
    info: HashMap<String, String>,
    /// `None` if this user may not read them.
    config: Option<HashMap<String, String>>,
}

const SETTINGS: [&str; 4] =
    ["appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"];

/// Refuses a server that cannot keep what the store promises.
pub(crate) async fn server(
    connection: &mut MultiplexedConnection,
    options: &RedisStoreOptions,
) -> Result<(), StoreError> {
    let found = ask(connection).await.map_err(|error| no_connection(&error, options.connect))?;
    judge(&found, options)
}

async fn ask(connection: &mut MultiplexedConnection) -> Result<Found, RedisError> {
    let info: String = redis::cmd("INFO").query_async(connection).await?;
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    let info = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut config = HashMap::new();
    for name in SETTINGS {
        let asked: Result<Value, _> =
            redis::cmd("CONFIG").arg("GET").arg(name).query_async(connection).await;
        match asked {
            Ok(value) => {
                let pairs: Vec<String> = redis::from_redis_value(value)?;
                if let [_, value] = &*pairs {
                    config.insert(name.to_owned(), value.clone());
                }
            }
            // Servers that others run do not show their settings.
            Err(error) if is_refused(&error) => return Ok(Found { info, config: None }),
            Err(error) => return Err(error),
        }
    }
    Ok(Found { info, config: Some(config) })
}

fn is_refused(error: &RedisError) -> bool {
    let kind = error.kind();
    kind == ErrorKind::Server(ServerErrorKind::NoPerm)
        || kind == ErrorKind::Server(ServerErrorKind::ResponseError)
}

fn judge(found: &Found, options: &RedisStoreOptions) -> Result<(), StoreError> {
    let unsuitable = |what: &str| Err(StoreError::Unsuitable(what.into()));
    let info = |name: &str| found.info.get(name).map(String::as_str).unwrap_or_default();
    let version = info("redis_version").split('.').next().and_then(|it| it.parse().ok());
    if version.is_some_and(|version: u32| version < 7) {
        return unsuitable("the server is older than Redis 7, whose scripts the store needs");
    }
    if info("cluster_enabled") == "1" {
        return unsuitable(
            "the server is a node of a cluster (use a server without cluster mode: a list of \
             sessions is on one node)",
        );
    }
    if info("role") != "master" {
        return unsuitable(
            "the server is a replica, which takes no writes (connect to the master)",
        );
    }
    if options.accept_loss {
        return Ok(());
    }
    let Some(config) = &found.config else {
        return unsuitable(
            "this user may not read the settings of the server with `CONFIG GET`, so that nothing \
             is known of what a crash loses (grant the command, or accept that with `accept_loss`)",
        );
    };
    let wanted = [
        ("appendonly", "yes", "a crash of it loses acknowledged batches"),
        ("appendfsync", "always", "a crash of its machine loses acknowledged batches"),
        ("no-appendfsync-on-rewrite", "no", "a crash of its machine loses acknowledged batches"),
        ("maxmemory-policy", "noeviction", "it may remove sessions when its memory is full"),
    ];
    for (name, value, otherwise) in wanted {
        let set = config.get(name).map(String::as_str).unwrap_or_default();
        if set != value {
            return Err(StoreError::Unsuitable(format!(
                "the server has `{name} {set}`, so that {otherwise} (set `{name} {value}`, or accept \
                 that with `accept_loss`)"
            )));
        }
    }
    let replicas = info("connected_slaves").parse::<u32>().unwrap_or(0);
    match options.replicas {
        Replicas::None if replicas > 0 => Err(StoreError::Unsuitable(format!(
            "the server has {replicas} replicas, and one of them may be made the master without the \
             last acknowledged batches (wait for them with `replicas`, or accept that with \
             `accept_loss`)"
        ))),
        Replicas::Wait(_) if !has_waitaof(info("redis_version")) => unsuitable(
            "the server is older than Redis 7.2, and does not say what its replicas have on disk \
             (upgrade it, or accept the loss of acknowledged batches with `accept_loss`)",
        ),
        _ => Ok(()),
    }
}

fn has_waitaof(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(7), Some(2))
}
