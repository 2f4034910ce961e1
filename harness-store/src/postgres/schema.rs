//! The tables and functions of a store, and how older ones become those of this version.

use harness::store::StoreError;

use super::client::Connection;
use super::error::unexpected;
use super::version::{FORMAT, newer, quoted};

/// The versions of the tables, the first one first.
const VERSIONS: [&str; FORMAT as usize] =
    [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];
/// The functions of the last version.
const FUNCTIONS: &str = include_str!("schema/functions.sql");
/// The names of the functions that some version has, without the version.
const NAMES: [&str; 19] = [
    "now",
    "ready",
    "durable",
    "unflushed",
    "damage",
    "claim",
    "claim_due",
    "notify",
    "renew",
    "release",
    "takes",
    "append",
    "snapshot",
    "read",
    "inbox",
    "put",
    "lock",
    "remove",
    "prune",
];

/// Makes the tables, or brings those of an older version to this one, in one transaction. Of several
/// processes that do so at once, one does it.
pub(crate) async fn set_up(
    connection: &mut Connection<'_>,
    schema: &str,
) -> Result<(), StoreError> {
    match connection.version().await? {
        Some(FORMAT) => return Ok(()),
        Some(version) if version > FORMAT => return Err(newer(version)),
        _ => {}
    }
    connection.begin().await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('harness ' || $1, 0))";
    connection.query(lock, &[&schema], false).await?;
    // Another process may have done it in between.
    let version = connection.version().await?.unwrap_or(0);
    if version > FORMAT {
        return Err(newer(version));
    }
    if version < FORMAT {
        migrate(connection, schema, version).await?;
    }
    connection.commit().await
}

async fn migrate(
    connection: &mut Connection<'_>,
    schema: &str,
    version: u32,
) -> Result<(), StoreError> {
    let name = quoted(schema);
    if version == 0 {
        let there = "SELECT FROM pg_namespace WHERE nspname = $1";
        if connection.query(there, &[&schema], false).await?.is_empty() {
            connection.execute(&format!("CREATE SCHEMA {name}"), false).await?;
        }
        let table = "CREATE TABLE IF NOT EXISTS store (version integer NOT NULL)";
        connection.execute(table, false).await?;
        connection.execute("INSERT INTO store SELECT 0", false).await?;
    }
    // Those of the older version are gone with it.
    let functions = "SELECT p.oid::regprocedure::text FROM pg_proc p \
                     JOIN pg_namespace n ON n.oid = p.pronamespace \
                     WHERE n.nspname = $1 AND p.proname = ANY ($2)";
    let names = NAMES.iter().flat_map(|name| (1..FORMAT).map(move |of| format!("{name}_{of}")));
    let names: Vec<String> = names.collect();
    for row in connection.query(functions, &[&schema, &names], false).await? {
        let function: String = row.try_get(0).map_err(|_| unexpected("no name of a function"))?;
        connection.execute(&format!("DROP FUNCTION IF EXISTS {function} CASCADE"), false).await?;
    }
    for text in VERSIONS.iter().skip(version as usize).chain([&FUNCTIONS]) {
        connection.execute(text, false).await?;
    }
    connection.execute(&format!("UPDATE store SET version = {FORMAT}"), false).await
}
