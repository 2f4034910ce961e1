//! Connections: a pool of them, time limits, and the calls of scripts.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use harness::SessionId;
use harness::store::{StoreError, Token};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::check;
use super::error::{failed, no_connection, not_replicated, unexpected};
use super::frame::micros;
use super::options::{RedisStoreOptions, Replicas};
use super::reply::Reply;
use super::scripts::{self, Script};

/// The version of the keys that this program reads and writes.
const FORMAT: u32 = 1;

#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    client: redis::Client,
    config: AsyncConnectionConfig,
    /// The hash of the store.
    key: String,
    /// The random name that this store would make a new one under, and the one it has found.
    own: String,
    made: OnceLock<String>,
    options: RedisStoreOptions,
    permits: Semaphore,
    free: Mutex<Vec<MultiplexedConnection>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the configuration of the connections, which has a password.
        f.debug_struct("Client")
            .field("prefix", &self.0.options.prefix)
            .field("free", &self.free().len())
            .finish()
    }
}

impl Client {
    pub(crate) fn new(client: redis::Client, options: RedisStoreOptions) -> Self {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect))
            .set_response_timeout(Some(options.timeout));
        let key = format!("{{{}}}:store", options.prefix);
        let permits = Semaphore::new(options.max_connections);
        let (own, made) = (Token::random().to_string(), OnceLock::new());
        let free = Mutex::default();
        Self(Arc::new(Inner { client, config, key, own, made, options, permits, free }))
    }

    /// Makes the store, unless it is there.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        let read = |reply: Reply<'_>| match (reply.number(1), reply.text(2)) {
            (Some(found), Some(_)) if found > u64::from(FORMAT) => Err(newer(found)),
            (Some(_), Some(made)) => Ok(made.to_owned()),
            _ => Err(unexpected("a store without a format or a name")),
        };
        let made = self.call(&scripts::OPEN, |_| (), read).await?;
        self.0.made.get_or_init(|| made);
        Ok(())
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<MultiplexedConnection>> {
        self.0.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how many microseconds sessions are kept that have ended, if that is limited.
    pub(crate) fn expire_ended(&self) -> Option<u64> {
        self.0.options.expire_ended.map(micros)
    }

    /// A connection that listens to what becomes due, and the agents whose sessions do.
    pub(crate) async fn listen(&self) -> Option<redis::aio::PubSub> {
        let channel = self.0.key.replace(":store", ":due");
        let listen = async {
            let mut connection = self.0.client.get_async_pubsub().await.ok()?;
            connection.subscribe(channel).await.ok()?;
            Some(connection)
        };
        tokio::time::timeout(self.0.options.connect, listen).await.ok()?
    }

    async fn connection(&self) -> Result<Connection<'_>, StoreError> {
        let options = &self.0.options;
        let permit = tokio::time::timeout(options.wait, self.0.permits.acquire()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(StoreError::Unavailable {
                what: format!(
                    "all {} connections were in use for {:?} (allow more with \
                     `max_connections`, or use the store less at once)",
                    options.max_connections, options.wait
                ),
                ambiguous: false,
                source: None,
            });
        };
        let free = self.free().pop();
        let connection = match free {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Connection { of: self, connection: Some(connection), engaged: false, _permit: permit })
    }

    /// Opens a connection, and checks that the server behind it promises what the store relies on:
    /// it may be another one than before.
    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let limit = self.0.options.connect;
        let open = async {
            let config = &self.0.config;
            let opened = self.0.client.get_multiplexed_async_connection_with_config(config).await;
            let mut connection = opened.map_err(|error| no_connection(&error, limit))?;
            check::server(&mut connection, &self.0.options).await?;
            Ok(connection)
        };
        tokio::time::timeout(limit, open).await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                what: format!("the server did not accept a connection within {limit:?}"),
                ambiguous: false,
                source: None,
            })
        })
    }

    /// Calls a script, which begins with `arguments`, and passes what it has answered to `read`.
    pub(crate) async fn call<T>(
        &self,
        script: &Script,
        arguments: impl Fn(&mut Cmd),
        read: impl FnOnce(Reply<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection().await?;
        let value = connection.call(script, &arguments).await?;
        drop(connection);
        let reply = Reply::new(&value)?;
        match (reply.name(), reply.number(1)) {
            ("format", Some(found)) if found > u64::from(FORMAT) => Err(newer(found)),
            ("format", Some(_)) => Err(unexpected("a format that never was")),
            _ => read(reply),
        }
    }

    /// As [`call`](Self::call), for a script about one session, whose id is the first argument.
    pub(crate) async fn call_on<T>(
        &self,
        script: &Script,
        session: &SessionId,
        arguments: impl Fn(&mut Cmd),
        read: impl FnOnce(Reply<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let all = |command: &mut Cmd| {
            command.arg(session.as_str());
            arguments(command);
        };
        self.call(script, all, read).await
    }
}

fn newer(found: u64) -> StoreError {
    StoreError::NewerFormat { found: u32::try_from(found).unwrap_or(u32::MAX), known: FORMAT }
}

/// More than the time between two looks of a server at the clock: ten a second, by its default `hz`.
const TICK: Duration = Duration::from_millis(250);

/// A connection that no other call uses: what is large delays only its own call.
struct Connection<'a> {
    of: &'a Client,
    connection: Option<MultiplexedConnection>,
    /// Whether a call is under way.
    engaged: bool,
    _permit: SemaphorePermit<'a>,
}

impl Connection<'_> {
    async fn call(
        &mut self,
        script: &Script,
        arguments: &impl Fn(&mut Cmd),
    ) -> Result<Value, StoreError> {
        self.engaged = true;
        let mut done = self.send("EVALSHA", &script.hash, arguments).await;
        let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
        if matches!(&done, Err(error) if error.kind() == unknown) {
            // The server is new, or was started again.
            done = self.send("EVAL", &script.text, arguments).await;
        }
        let done = match done {
            Ok(value) if script.writes => self.wait().await.map(|synced| (value, synced)),
            done => done.map(|value| (value, true)),
        };
        match done {
            Ok((value, synced)) => {
                self.engaged = false;
                if synced { Ok(value) } else { Err(not_replicated()) }
            }
            Err(error) => {
                if error.code().is_none() {
                    // What ended this connection has ended the others, too.
                    self.of.free().clear();
                } else {
                    self.engaged = false;
                }
                Err(failed(&error, self.of.0.options.timeout, script.writes))
            }
        }
    }

    /// Waits until the replicas have on disk what this connection has written. Says whether they do.
    async fn wait(&mut self) -> Result<bool, RedisError> {
        let options = &self.of.0.options;
        let (Replicas::Wait(replicas), Some(connection)) = (options.replicas, &mut self.connection)
        else {
            return Ok(true);
        };
        // It answers before the connection gives up, as far as it looks at its clock often enough.
        let limit = (options.timeout - TICK.min(options.timeout / 2)).as_millis();
        let mut command = redis::cmd("WAITAOF");
        command.arg(1).arg(replicas).arg(u64::try_from(limit).unwrap_or(u64::MAX).max(1));
        let (_, synced): (u32, u32) = command.query_async(connection).await?;
        Ok(synced >= replicas)
    }

    async fn send(
        &mut self,
        command: &str,
        script: &str,
        arguments: &impl Fn(&mut Cmd),
    ) -> Result<Value, RedisError> {
        let mut command = redis::cmd(command);
        command.arg(script).arg(1).arg(&self.of.0.key);
        arguments(&mut command);
        command.arg(self.of.0.made.get().unwrap_or(&self.of.0.own));
        match &mut self.connection {
            Some(connection) => command.query_async(connection).await,
            None => Err((ErrorKind::Io, "the connection is closed").into()),
        }
    }
}

/// A connection that may be in the middle of a call is not used again.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.engaged
        {
            self.of.free().push(connection);
        }
    }
}
