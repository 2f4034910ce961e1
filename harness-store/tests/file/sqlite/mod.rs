//! The store of sessions in an SQLite database.

mod agents;
mod backup;
pub(crate) mod contract;
mod damage;
mod model;
mod process;
mod size;

use std::path::{Path, PathBuf};

use harness::store::{
    Appended, Batch, InboxSeq, Lease, NewEntry, Page, Phase, ReadRequest, SessionStore as _,
    StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::{SqliteStore, SqliteStoreOptions, Sync};
use rusqlite::Connection;

use crate::support::{LONG, summary};

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

async fn claim(store: &SqliteStore, session: &SessionId) -> Lease {
    store.claim(session, LONG).await.unwrap().lease
}

async fn append(
    store: &SqliteStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
    phase: Option<Phase>,
) -> Result<Appended, StoreError> {
    let summary = phase.map(summary);
    let entries = [NewEntry { bytes, snapshot: false }];
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(1_000 + after),
        entries: &entries,
        summary: summary.as_ref(),
        flush: true,
        ..Batch::default()
    };
    store.append(lease, batch).await
}

async fn page(store: &SqliteStore, session: &SessionId) -> Result<Option<Page>, StoreError> {
    store
        .read(session, ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0)).limit(u64::MAX))
        .await
}
