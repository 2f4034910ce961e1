//! Failures of SQLite, as the caller of a store understands them.

use harness::SessionId;
use harness::store::StoreError;
use rusqlite::ffi::{self, ErrorCode};

use crate::sql::corrupt;

/// Why work on the database ended early.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The rules say so. Nothing was written.
    Refused(StoreError),
    /// The database failed.
    Sql(rusqlite::Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// What the caller gets if nothing was written.
    pub(crate) fn into_error(self, session: Option<&SessionId>) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => failed(error, session),
        }
    }
}

fn codes(error: &rusqlite::Error) -> Option<ffi::Error> {
    match error {
        rusqlite::Error::SqliteFailure(codes, _) => Some(*codes),
        _ => None,
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    codes(error).is_some_and(|it| busy.contains(&it.code))
}

/// Whether it says that there is no room, so that a transaction was undone as a whole.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    codes(error).is_some_and(|it| it.code == ErrorCode::DiskFull)
}

/// Whether a sync has failed: what the disk has of earlier writes is unknown then, whatever a later
/// sync says.
pub(crate) fn is_sync(error: &rusqlite::Error) -> bool {
    let syncs = [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC];
    codes(error).is_some_and(|it| syncs.contains(&it.extended_code))
}

/// What a failure means that had no effect.
pub(crate) fn failed(error: rusqlite::Error, session: Option<&SessionId>) -> StoreError {
    match codes(&error).map(|it| it.code) {
        Some(ErrorCode::DiskFull) => StoreError::Full(format!("{error} (make room and try again)")),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::Unsuitable(format!("{error} (let this user write to the database)"))
        }
        Some(ErrorCode::NotADatabase) if session.is_none() => StoreError::Unsuitable(
            "the file is no SQLite database (choose another path for the sessions)".into(),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::unavailable(
            "another process has the database locked for longer than this one waits (is that \
             process suspended? let it continue, or end it)",
            error,
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => match session {
            Some(session) => corrupt(session, 0, error.to_string()),
            None => StoreError::unavailable("the database is damaged (restore a backup)", error),
        },
        _ => StoreError::unavailable("SQLite failed", error),
    }
}

/// What a call answers whose thread ended before it did.
pub(crate) fn ended() -> StoreError {
    StoreError::Unavailable {
        what: "a thread of the store ended before it had answered (open the store again)".into(),
        ambiguous: true,
        source: None,
    }
}
