//! Connections: a pool of them, time limits, and transactions.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use harness::store::StoreError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row, Statement};

use super::error::{failed, is_missing, no_connection, too_late};
use super::options::PostgresStoreOptions;
use super::tls::Tls;
use super::version::{FORMAT, newer, quoted};

pub(crate) type Value<'a> = &'a (dyn ToSql + Sync);

/// A statement and its values.
pub(crate) struct Call<'a> {
    pub(crate) text: &'static str,
    pub(crate) values: Vec<Value<'a>>,
}

#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool,
    pub(crate) schema: String,
    pub(crate) wait: Duration,
    timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the configuration of the connections, which has a password.
        f.debug_struct("Client")
            .field("schema", &self.schema)
            .field("connections", &self.pool.status().size)
            .finish()
    }
}

impl Client {
    pub(crate) fn new(
        config: Config,
        tls: &Tls,
        options: &PostgresStoreOptions,
    ) -> Result<Self, StoreError> {
        let setup = setup(options);
        let recycling_method = RecyclingMethod::Fast;
        let manager = tls.manager(config, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(options.max_connections)
            .wait_timeout(Some(options.wait))
            .create_timeout(Some(options.connect))
            .runtime(Runtime::Tokio1)
            // The connection that was used last is the warmest, and so is its process in the server.
            .queue_mode(QueueMode::Lifo)
            .post_create(Hook::async_fn(move |client, _| {
                let setup = setup.clone();
                Box::pin(
                    async move { client.batch_execute(&setup).await.map_err(HookError::Backend) },
                )
            }))
            .build();
        Ok(Self {
            pool: pool.map_err(|error| StoreError::unavailable("failed to make a pool", error))?,
            schema: options.schema.clone(),
            wait: options.wait,
            timeout: options.timeout,
        })
    }

    /// How many connections there are at most.
    pub(crate) fn max_connections(&self) -> usize {
        self.pool.status().max_size
    }

    /// How many transactions append at once: the other connections are for the other calls.
    pub(crate) fn lanes(&self) -> usize {
        (self.max_connections() / 2).max(1)
    }

    pub(crate) async fn connection(&self) -> Result<Connection<'_>, StoreError> {
        match self.pool.get().await {
            Ok(object) => Ok(Connection { of: self, object: Some(object), engaged: false }),
            Err(error) => Err(no_connection(error, self.max_connections(), self.wait)),
        }
    }

    /// Runs one statement that writes, on a connection of its own.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Vec<Row>, StoreError> {
        self.query(call.text, &call.values, true).await
    }

    /// Runs one statement on a connection of its own.
    pub(crate) async fn query(
        &self,
        text: &str,
        values: &[Value<'_>],
        writes: bool,
    ) -> Result<Vec<Row>, StoreError> {
        self.connection().await?.query(text, values, writes).await
    }
}

/// What each connection begins with.
fn setup(options: &PostgresStoreOptions) -> String {
    // Transactions flush, unless one says otherwise: also after the settings of the server change, which
    // what a connection has set itself outlives. The server gives up a statement, and the locks of a
    // transaction, when this end does. What the statements of a store read is found by an index,
    // whatever the statistics and the values say.
    let limit = options.timeout.as_millis().clamp(1, 1 << 30);
    format!(
        "SET search_path TO {}, pg_catalog; SET client_min_messages TO warning; \
         SELECT set_config('synchronous_commit', \
             coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false); \
         SET default_transaction_isolation TO 'read committed'; \
         SET plan_cache_mode TO force_generic_plan; \
         SET statement_timeout TO {limit}; SET idle_in_transaction_session_timeout TO {limit}; \
         SET enable_seqscan TO off; SET enable_bitmapscan TO off; SET enable_hashjoin TO off; \
         SET enable_mergejoin TO off; SET enable_sort TO off; SET jit TO off",
        quoted(&options.schema)
    )
}

/// In a transaction of several calls, each waits for a lock no longer than this.
const BEGIN_TOGETHER: &str = "BEGIN; SET LOCAL lock_timeout TO 200";

/// What came of a transaction of several calls.
#[derive(Debug)]
pub(crate) enum Together {
    /// It was committed. These are the rows of each.
    Done(Vec<Vec<Row>>),
    /// It had no effect, because the server could not do one of them in time.
    Undone,
    Failed(StoreError),
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

/// The answers to calls, which are sent in this order: a call is sent when it is polled for the first
/// time.
async fn in_order(mut calls: Vec<Answer<'_>>) -> Vec<Result<Vec<Row>, tokio_postgres::Error>> {
    let mut answers: Vec<_> = calls.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (call, answer) in calls.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(rows) = call.as_mut().poll(context)
            {
                *answer = Some(rows);
            }
        }
        match answers.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// A connection that no other call uses.
pub(crate) struct Connection<'a> {
    of: &'a Client,
    object: Option<Object>,
    /// Whether a statement or a transaction is under way.
    engaged: bool,
}

impl Connection<'_> {
    fn client(&mut self) -> Result<&mut Object, StoreError> {
        self.object.as_mut().ok_or_else(|| too_late(Duration::ZERO, false))
    }

    /// Runs a statement. `writes` says that it commits what it does.
    pub(crate) async fn query(
        &mut self,
        text: &str,
        values: &[Value<'_>],
        writes: bool,
    ) -> Result<Vec<Row>, StoreError> {
        let (limit, inside) = (self.of.timeout, self.engaged);
        self.engaged = true;
        let prepared = self.prepared(text).await?;
        let client = self.client()?;
        let done = tokio::time::timeout(limit, client.query(&prepared, values)).await;
        match done.map_err(|_| too_late(limit, writes))? {
            Ok(rows) => {
                self.engaged = inside;
                Ok(rows)
            }
            Err(error) => Err(self.explained(&error, writes).await),
        }
    }

    async fn prepared(&mut self, text: &str) -> Result<Statement, StoreError> {
        let limit = self.of.timeout;
        let prepared = tokio::time::timeout(limit, self.client()?.prepare_cached(text)).await;
        match prepared.map_err(|_| too_late(limit, false))? {
            Ok(prepared) => Ok(prepared),
            Err(error) => Err(self.explained(&error, false).await),
        }
    }

    /// Runs these statements in one transaction and one round trip.
    pub(crate) async fn together(&mut self, all: &[Call<'_>]) -> Together {
        let limit = self.of.timeout;
        self.engaged = true;
        let mut prepared = Vec::with_capacity(all.len());
        for call in all {
            match self.prepared(call.text).await {
                Ok(statement) => prepared.push(statement),
                Err(error) => return Together::Failed(error),
            }
        }
        let client = match self.client() {
            Ok(client) => &*client,
            Err(error) => return Together::Failed(error),
        };
        let begin = async || client.batch_execute(BEGIN_TOGETHER).await.map(|()| Vec::new());
        let end = async || client.batch_execute("COMMIT").await.map(|()| Vec::new());
        let mut calls: Vec<Answer<'_>> = vec![Box::pin(begin())];
        for (statement, call) in prepared.iter().zip(all) {
            calls.push(Box::pin(client.query(statement, &call.values)));
        }
        calls.push(Box::pin(end()));
        let Ok(answers) = tokio::time::timeout(limit, in_order(calls)).await else {
            return Together::Failed(too_late(limit, true));
        };
        match answers.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(mut rows) => {
                self.engaged = false;
                rows.truncate(all.len() + 1);
                Together::Done(rows.split_off(1))
            }
            Err(error) => match failed(&error, true) {
                // After a failed statement, the end undoes the others.
                failed if error.as_db_error().is_some() && !failed.is_ambiguous() => {
                    self.engaged = client.is_closed();
                    Together::Undone
                }
                failed => Together::Failed(failed),
            },
        }
    }

    /// Runs statements without values or answers.
    pub(crate) async fn execute(&mut self, text: &str, writes: bool) -> Result<(), StoreError> {
        let (limit, inside) = (self.of.timeout, self.engaged);
        self.engaged = true;
        let client = self.client()?;
        let done = tokio::time::timeout(limit, client.batch_execute(text)).await;
        done.map_err(|_| too_late(limit, writes))?.map_err(|error| failed(&error, writes))?;
        self.engaged = inside;
        Ok(())
    }

    /// Begins a transaction, which ends without an effect unless it is committed.
    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN", false).await?;
        self.engaged = true;
        Ok(())
    }

    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", true).await?;
        self.engaged = false;
        Ok(())
    }

    /// Ends a transaction that has written nothing.
    pub(crate) async fn end(&mut self) -> Result<(), StoreError> {
        self.execute("ROLLBACK", false).await?;
        self.engaged = false;
        Ok(())
    }

    /// What the failure of a statement means; where the functions are missing, a newer version may
    /// have replaced them.
    async fn explained(&mut self, error: &tokio_postgres::Error, writes: bool) -> StoreError {
        let is_closed = self.object.as_ref().is_none_or(|client| client.is_closed());
        if is_missing(error) && !is_closed {
            let newer = Box::pin(self.newer()).await;
            return newer.unwrap_or_else(|| failed(error, writes));
        }
        if error.as_db_error().is_some() && !is_closed {
            // A new transaction can begin; one that is open ends with the connection.
            self.engaged = false;
            if self.execute("ROLLBACK", false).await.is_err() {
                self.engaged = true;
            }
        }
        failed(error, writes)
    }

    async fn newer(&mut self) -> Option<StoreError> {
        self.engaged = false;
        self.execute("ROLLBACK", false).await.ok()?;
        match self.version().await {
            Ok(Some(found)) if found > FORMAT => Some(newer(found)),
            _ => None,
        }
    }

    /// The version of the tables; `None` if the schema has no store.
    pub(crate) async fn version(&mut self) -> Result<Option<u32>, StoreError> {
        let schema = self.of.schema.clone();
        // Not `to_regclass`: while it waits for a lock, it does not see what others have made since.
        let text = "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                    WHERE n.nspname = $1 AND c.relname = 'store'";
        if self.query(text, &[&schema], false).await?.is_empty() {
            return Ok(None);
        }
        let text = format!("SELECT version FROM {}.store", quoted(&schema));
        let rows = self.query(&text, &[], false).await?;
        let version = rows.first().and_then(|row| row.try_get::<_, i32>(0).ok());
        match version.and_then(|version| u32::try_from(version).ok()) {
            Some(version) => Ok(Some(version)),
            None => Err(StoreError::Unsuitable(format!(
                "the schema `{schema}` has a table `store` of another program (choose another \
                 schema)"
            ))),
        }
    }
}

/// A connection that may be in the middle of a statement or a transaction is not used again: the server
/// undoes what was not committed when it is closed.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.engaged
            && let Some(object) = self.object.take()
        {
            drop(Object::take(object));
        }
    }
}
