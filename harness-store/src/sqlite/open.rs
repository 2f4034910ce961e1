//! Opening a database: whose file it is, how it is set up, and the threads that use it.

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use harness::store::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::local::Sync;
use crate::local::disk::{Disk, RealDisk, is_own};
use crate::local::error::{failed, refuse_foreign, refuse_network};
use crate::local::liveness::Liveness;

use super::error::{Fault, is_busy};
use super::options::SqliteStoreOptions;
use super::readers::{self, Read};
use super::schema::{self, Kind};
use super::shared::{Known, Shared};
use super::writer::{Call, Writer};

/// A write-ahead log that has grown beyond this is cut back when it begins again.
const MAX_WAL: i64 = 64 << 20;

/// A path beside the database, with an ending of its own.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(crate) fn open(path: &Path, options: &SqliteStoreOptions) -> Result<Shared, StoreError> {
    let dir = path.parent().unwrap_or(path);
    let made: Vec<_> = dir.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::create_dir_all(dir).map_err(|error| failed("make", dir, error))?;
    refuse_network(dir)?;
    make_file(path)?;
    for ending in ["", "-wal", "-shm", "-journal"] {
        refuse_foreign_file(&beside(path, ending))?;
    }
    let conn = connect(path, options.patience).map_err(|fault| fault.into_error(None))?;
    set_up(&conn, options.patience).map_err(|fault| fault.into_error(None))?;
    if options.sync == Sync::Flush {
        // SQLite syncs the directory of the database, and none above it.
        for path in made.iter().filter_map(|path| path.parent()) {
            RealDisk.sync_dir(path).map_err(|error| failed("sync", path, error))?;
        }
    }
    let open_stores = beside(path, "-open");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let liveness = Liveness::new(&disk, open_stores.clone())
        .map_err(|error| failed("lock a file in", &open_stores, error))?;
    refuse_foreign(&open_stores, false)?;
    let (writes, calls) = mpsc::channel::<Box<dyn Call>>();
    let writer = Writer::new(conn, options.patience, options.sync == Sync::Flush);
    readers::spawn("sqlite-writer", move || writer.run(&calls))?;
    let (reads, calls) = mpsc::channel::<Read>();
    let calls = Arc::new(Mutex::new(calls));
    for _ in 0..options.readers {
        let conn = connect(path, options.patience).and_then(|conn| {
            conn.pragma_update(None, "query_only", true)?;
            Ok(conn)
        });
        let (conn, calls) = (conn.map_err(|fault| fault.into_error(None))?, Arc::clone(&calls));
        readers::spawn("sqlite-reader", move || readers::run(&conn, &calls))?;
    }
    Ok(Shared::new(path.to_owned(), Arc::new(Known::new(liveness)), writes, reads))
}

/// Makes the file of a new database, which only this user may read. SQLite gives the files beside it
/// the same mode.
fn make_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(failed("make", path, error))
        }
        _ => Ok(()),
    }
}

/// Refuses a file that another user may have put there, or may write to.
fn refuse_foreign_file(path: &Path) -> Result<(), StoreError> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| failed("look at", path, error))?,
    };
    let wrong = if !found.is_file() {
        "it is not a regular file"
    } else if !is_own(&found) {
        "it belongs to another user"
    } else if found.mode() & 0o002 != 0 {
        "every user may write to it"
    } else {
        return Ok(());
    };
    Err(StoreError::Unsuitable(format!(
        "failed to use `{}`: {wrong} (choose a file that only this user writes to)",
        path.display()
    )))
}

pub(crate) fn connect(path: &Path, patience: Duration) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(patience)?;
    conn.set_prepared_statement_cache_capacity(64);
    // What is in a row that was changed by hand or by a failing disk is not trusted.
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    // On systems where a sync alone leaves data in the cache of the disk.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(conn)
}

/// Makes a new database, or brings an older one to this version.
fn set_up(conn: &Connection, patience: Duration) -> Result<(), Fault> {
    let begun = Instant::now();
    loop {
        match try_set_up(conn) {
            // Another process is at it. SQLite does not wait where two could wait for each other.
            Err(Fault::Sql(error)) if is_busy(&error) && begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

fn try_set_up(conn: &Connection) -> Result<(), Fault> {
    // A file that is not ours is left as it is.
    match schema::kind_at_once(conn)? {
        Kind::Other => return Err(schema::foreign().into()),
        Kind::Store(found) if found > schema::FORMAT => {
            return Err(StoreError::NewerFormat { found, known: schema::FORMAT }.into());
        }
        _ => {}
    }
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::Unsuitable(
            "the file system has no shared memory for a write-ahead log (choose a local disk)"
                .into(),
        )
        .into());
    }
    conn.pragma_update(None, "journal_size_limit", MAX_WAL)?;
    // The first transaction of a database must be there as a whole, whatever comes.
    conn.pragma_update(None, "synchronous", "FULL")?;
    match schema::kind_at_once(conn)? {
        Kind::Store(schema::FORMAT) => {}
        _ => schema::migrate(conn, schema::VERSIONS)?,
    }
    // The writer waits by itself.
    conn.busy_timeout(Duration::ZERO)?;
    Ok(())
}
