//! Sessions in a PostgreSQL database: a step beside a bare insert, and many sessions at once beside one
//! after the other. The server is that of `HARNESS_POSTGRES_URL`.

use harness_store::{PostgresStore, PostgresStoreOptions};
use tokio_postgres::{Client, NoTls, Statement};

use super::at_once::at_once;
use super::disk::line;
use super::growing;
use super::{Figure, block_on, compare_waiting, failed};

const SCHEMA: &str = "harness_measure";

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn url() -> Fallible<String> {
    std::env::var("HARNESS_POSTGRES_URL")
        .map_err(|_| "`HARNESS_POSTGRES_URL` is not set: it says which server to measure".into())
}

fn measured(case: &str, figure: Fallible<Figure>) -> Vec<Figure> {
    let not = |error| {
        eprintln!("measure: {case}: {error}");
        failed(case)
    };
    vec![figure.unwrap_or_else(not)]
}

/// A schema without the sessions of an earlier time, and a connection to the same database.
async fn open(url: &str) -> Fallible<(PostgresStore, Client)> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")).await?;
    let store = PostgresStoreOptions::new().schema(SCHEMA).connect(url).await?;
    for name in ["server_version", "fsync", "synchronous_commit", "full_page_writes"] {
        let row = client.query_one("SELECT current_setting($1)", &[&name]).await?;
        eprintln!("measure: the server has {name} = {}", row.try_get::<_, &str>(0)?);
    }
    Ok((store, client))
}

/// A table of lines, each inserted with the settings of the store.
async fn bare(client: &Client) -> Fallible<Statement> {
    let text = "SET synchronous_commit TO on;
                CREATE TABLE harness_measure.line
                    (at bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text bytea)";
    client.batch_execute(text).await?;
    Ok(client.prepare("INSERT INTO harness_measure.line (text) VALUES ($1)").await?)
}

/// A run of a state that grows by a message of 200 bytes a step, each durable before the next.
pub(super) fn log() -> Vec<Figure> {
    const STEPS: u64 = 200;
    let measure = || -> Fallible<Figure> {
        let (store, client) = block_on(open(&url()?))?;
        let insert = block_on(bare(&client))?;
        let agent = growing::agent(STEPS)?.store(store);
        let by_hand = async || {
            for nth in 0..STEPS as usize {
                let inserted = client.execute(&insert, &[&line(nth).as_bytes()]).await;
                assert!(inserted.is_ok(), "{inserted:?}");
            }
        };
        Ok(compare_waiting(
            format!("log-postgres/{STEPS}"),
            STEPS,
            || growing::run(&agent, STEPS),
            || block_on(by_hand()),
        ))
    };
    measured("log-postgres", measure())
}

/// The time of a step of 1,000 sessions at once, beside that of sessions one after the other.
pub(super) fn sessions() -> Vec<Figure> {
    let measure = || -> Fallible<Figure> {
        let (store, _) = block_on(open(&url()?))?;
        at_once("sessions-postgres", store).ok_or_else(|| "its loop does not build".into())
    };
    measured("sessions-postgres", measure())
}
