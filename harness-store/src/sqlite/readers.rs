//! The threads that read: each has a connection of its own, and each call one read transaction.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use harness::store::StoreError;
use rusqlite::Connection;

use super::error::Fault;
use super::schema;

/// A call that reads, and answers by itself.
pub(crate) type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Works until no store sends calls any more.
pub(crate) fn run(conn: &Connection, calls: &Arc<Mutex<Receiver<Read>>>) {
    loop {
        let next = calls.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(read) => read(conn),
            Err(_) => return,
        }
    }
}

/// Reads one state of the database.
pub(crate) fn consistently<T>(
    conn: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    let found = schema::check(conn).and_then(|()| read(conn));
    if !conn.is_autocommit() {
        // Nothing was written.
        let _ = conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
    }
    found
}

/// A thread for a store.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(|error| StoreError::unavailable("failed to start a thread", error))
}
