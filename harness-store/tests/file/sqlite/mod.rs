//! The store of sessions in an SQLite database.

mod agents;
mod backup;
pub(crate) mod contract;
mod damage;
mod model;
mod process;
mod size;

use std::path::{Path, PathBuf};

use harness_store::{SqliteStore, SqliteStoreOptions, Sync};
use rusqlite::Connection;

use crate::support::{append, claim, page};

fn database(dir: &Path) -> PathBuf {
    dir.join("sessions.db")
}

/// Without syncs: what is tested does not depend on them.
async fn open(dir: &Path) -> SqliteStore {
    SqliteStoreOptions::new().sync(Sync::Never).open(database(dir)).await.unwrap()
}

/// The database as another program sees it.
pub(crate) fn raw(dir: &Path) -> Connection {
    let conn = Connection::open(database(dir)).unwrap();
    conn.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    conn
}
