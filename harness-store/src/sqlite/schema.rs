//! The tables, and how a database comes to have those of this version.

use harness::store::StoreError;
use rusqlite::Connection;

use super::error::Fault;

/// Identifies databases of this store in their headers.
pub(crate) const APPLICATION: i32 = 0x4861_726e;

/// What each version changes of the one before it. The first makes the tables.
pub(crate) const VERSIONS: &[&str] = &[FIRST, DUE];

/// The version of the tables that this program reads and writes.
pub(crate) const FORMAT: u32 = VERSIONS.len() as u32;

/// A `place` is the key of a session times 2^32 plus the number of an entry or of a message, so that
/// the rows of one session are neighbours and need no index. `session.head` is 0 while a session is
/// only claimed. A `sum` is a CRC-32 of the other columns, but for those of the lease.
/// No index names a column that an append without a new phase changes.
const FIRST: &str = "
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    floor INTEGER NOT NULL,             -- no session that is gone had a higher fence
    flushes INTEGER NOT NULL            -- changed by a flush that has nothing else to write
) STRICT;
INSERT INTO store VALUES (1, 0, 0);
CREATE TABLE session (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    made INTEGER NOT NULL,              -- random: another session under the same id has another
    fence INTEGER NOT NULL,
    token BLOB,                         -- none if the lease was released
    owner INTEGER NOT NULL,             -- the number of the store that made the claim
    until INTEGER NOT NULL,             -- by the clock of leases
    bare INTEGER NOT NULL,              -- whether the last batch of the token has no entries
    head INTEGER NOT NULL,
    first INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,          -- the last; 0 if there is none
    inbox INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    open INTEGER NOT NULL,              -- how many interrupts
    agent BLOB,
    phase INTEGER,
    summary BLOB,
    sum INTEGER NOT NULL
) STRICT;
CREATE INDEX session_agent ON session (agent, id) WHERE agent IS NOT NULL;
CREATE INDEX session_phase ON session (phase, id) WHERE phase IS NOT NULL;
CREATE INDEX session_agent_phase ON session (agent, phase, id) WHERE agent IS NOT NULL;
CREATE INDEX session_open ON session (id) WHERE open > 0;
CREATE INDEX session_agent_open ON session (agent, id) WHERE open > 0;
CREATE TABLE batch (
    place INTEGER PRIMARY KEY,          -- of its last entry
    first INTEGER NOT NULL,             -- its first entry that is kept
    token BLOB NOT NULL,
    snapshot INTEGER,                   -- the place of its last snapshot
    entries BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
CREATE INDEX batch_snapshot ON batch (snapshot) WHERE snapshot IS NOT NULL;
CREATE TABLE bare (                     -- the last batch of a token, if it has no entries
    session INTEGER NOT NULL,
    token BLOB NOT NULL,
    after INTEGER NOT NULL,
    changes BLOB NOT NULL,
    PRIMARY KEY (session, token)
) STRICT, WITHOUT ROWID;
CREATE TABLE message (
    place INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    key BLOB NOT NULL,
    digest BLOB NOT NULL,
    interrupt BLOB,
    expiry INTEGER NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_key ON message (session, key);
CREATE TABLE interrupt (
    session INTEGER NOT NULL,
    id BLOB NOT NULL,
    since INTEGER NOT NULL,
    expires INTEGER,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
";

/// Finds sessions that are due. What is due in an older database follows from what is in its rows.
/// `read` is the last message that a holder had read when it released the session, and `due` is what
/// `rules::due_from` says, which is written only when it changes.
const DUE: &str = "
ALTER TABLE session ADD COLUMN read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN due INTEGER;
UPDATE session SET due = CASE
    WHEN phase = 1 THEN 0
    WHEN NOT json_valid(CAST(summary AS TEXT)) THEN 0
    WHEN inbox > ifnull(json_extract(CAST(summary AS TEXT), '$.inbox'), 0) THEN 0
    ELSE CAST(min(json_extract(CAST(summary AS TEXT), '$.due'), 9223372036854775807) AS INTEGER)
END WHERE summary IS NOT NULL;
CREATE INDEX session_due ON session (agent, due) WHERE due IS NOT NULL;
";

/// What the header of a database says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing was ever written to it.
    Empty,
    /// It is one of this store, of this version.
    Store(u32),
    /// It is one of another program.
    Other,
}

/// As of one moment: another process may be making the tables.
pub(crate) fn kind_at_once(conn: &Connection) -> rusqlite::Result<Kind> {
    let snapshot = conn.unchecked_transaction()?;
    let kind = kind(&snapshot)?;
    snapshot.finish()?;
    Ok(kind)
}

/// Within a transaction.
fn kind(conn: &Connection) -> rusqlite::Result<Kind> {
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version = version(conn)?;
    if application == APPLICATION {
        return Ok(Kind::Store(version));
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && version == 0 && tables == 0 { Kind::Empty } else { Kind::Other })
}

fn version(conn: &Connection) -> rusqlite::Result<u32> {
    let version: i32 =
        conn.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    Ok(version.cast_unsigned())
}

/// Refuses a database that a newer version has changed since it was opened.
pub(crate) fn check(conn: &Connection) -> Result<(), Fault> {
    let found = version(conn)?;
    if found > FORMAT {
        Err(StoreError::NewerFormat { found, known: FORMAT }.into())
    } else {
        Ok(())
    }
}

/// Brings a database to the last of these versions, in one transaction. Of several processes that
/// try, one does it.
pub(crate) fn migrate(conn: &Connection, versions: &[&str]) -> Result<(), Fault> {
    let known = versions.len() as u32;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = (|| {
        let found = match kind(conn)? {
            Kind::Empty => 0,
            Kind::Store(found) => found,
            Kind::Other => return Err(foreign().into()),
        };
        if found > known {
            return Err(StoreError::NewerFormat { found, known }.into());
        }
        for (version, change) in versions.iter().enumerate().skip(found as usize) {
            conn.execute_batch(change)?;
            conn.pragma_update(None, "user_version", version as u32 + 1)?;
            conn.pragma_update(None, "application_id", APPLICATION)?;
        }
        Ok(())
    })();
    match done {
        Ok(()) => Ok(conn.execute_batch("COMMIT")?),
        Err(fault) => {
            // If this fails, the transaction ends with the connection.
            let _ = conn.execute_batch("ROLLBACK");
            Err(fault)
        }
    }
}

pub(crate) fn foreign() -> StoreError {
    StoreError::Unsuitable(
        "the file is a database of another program (choose another path for the sessions)".into(),
    )
}
