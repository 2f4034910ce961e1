//! Failures of the server, as the caller of a store understands them.

use std::error::Error as _;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use harness::store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What a failed statement means. `may_have_effect` says whether it could have committed if the server
/// did not say that it failed.
pub(crate) fn failed(error: &Error, may_have_effect: bool) -> StoreError {
    let Some(said) = error.as_db_error() else {
        return StoreError::Unavailable {
            what: "the connection to the server is lost (is the server up?)".into(),
            ambiguous: may_have_effect,
            source: Some(chain(error).into()),
        };
    };
    // Not its details, which may have values in them.
    let text = format!("{} (SQLSTATE {})", said.message(), said.code().code());
    let code = said.code();
    let of_class = |class: &str| code.code().starts_with(class);
    if *code == SqlState::DISK_FULL {
        return StoreError::Full(format!("{text} (make room on the server and try again)"));
    }
    let unsuitable = |hint: &str| StoreError::Unsuitable(format!("{text} ({hint})"));
    if of_class("28") {
        return unsuitable("check the user and the password");
    }
    if *code == SqlState::INVALID_CATALOG_NAME {
        return unsuitable("create the database");
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return unsuitable("grant the user what it lacks");
    }
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        return unsuitable("connect to the primary server");
    }
    if is_missing(error) {
        return unsuitable("the tables of the store are missing: open it again");
    }
    // When it ends the connection, the server may not have said what came of a commit.
    let ended = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::DATABASE_DROPPED,
    ];
    let unsure = ended.contains(code) || of_class("08") || code.code() == "40003";
    StoreError::Unavailable {
        what: "the server has refused a statement".into(),
        ambiguous: may_have_effect && unsure,
        source: Some(text.into()),
    }
}

/// Whether a function or a table of the store is not there.
pub(crate) fn is_missing(error: &Error) -> bool {
    let missing =
        [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.code().is_some_and(|code| missing.contains(code))
}

/// An error with its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Whether one end has refused to encrypt a connection: another try comes to the same.
fn is_refused(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    // The others are failures of the network.
    let is_final = source.is_none_or(|source| source.kind() == std::io::ErrorKind::InvalidData);
    error.to_string().starts_with("error performing TLS handshake") && is_final
}

/// What it means that there was no connection for a call.
pub(crate) fn no_connection(error: PoolError, size: usize, waited: Duration) -> StoreError {
    let what = match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            return match error.as_db_error() {
                Some(_) => failed(&error, false),
                None if is_refused(&error) => StoreError::Unsuitable(format!(
                    "{} (the certificate of the server must be valid, for the name in the URL; \
                     without encryption, use `sslmode=disable`)",
                    chain(&error)
                )),
                None => StoreError::Unavailable {
                    what: "failed to connect to the server (is it up?)".into(),
                    ambiguous: false,
                    source: Some(chain(&error).into()),
                },
            };
        }
        PoolError::Timeout(TimeoutType::Wait) => return exhausted(size, waited),
        PoolError::Timeout(_) => "the server did not accept a connection in time".into(),
        other => format!("there is no connection to the server: {other}"),
    };
    StoreError::Unavailable { what, ambiguous: false, source: None }
}

/// What it means that all connections were in use for too long.
pub(crate) fn exhausted(size: usize, waited: Duration) -> StoreError {
    StoreError::Unavailable {
        what: format!(
            "all {size} connections were in use for {waited:?} (allow more with \
             `max_connections`, or use the store less at once)"
        ),
        ambiguous: false,
        source: None,
    }
}

/// The same failure for another call of the same transaction.
pub(crate) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::NewerFormat { found, known } => {
            StoreError::NewerFormat { found: *found, known: *known }
        }
        StoreError::Full(what) => StoreError::Full(what.clone()),
        StoreError::Unsuitable(what) => StoreError::Unsuitable(what.clone()),
        StoreError::Unavailable { what, ambiguous, source } => StoreError::Unavailable {
            what: what.clone(),
            ambiguous: *ambiguous,
            source: source.as_ref().map(|source| source.to_string().into()),
        },
        other => StoreError::Unavailable { what: other.to_string(), ambiguous: true, source: None },
    }
}

/// What it means that the server has not answered in time.
pub(crate) fn too_late(waited: Duration, may_have_effect: bool) -> StoreError {
    StoreError::Unavailable {
        what: format!("the server did not answer within {waited:?}"),
        ambiguous: may_have_effect,
        source: None,
    }
}

/// What it means that the answer of a function lacks what it should have.
pub(crate) fn unexpected(what: &str) -> StoreError {
    StoreError::Unavailable {
        what: format!("the server has answered with {what} (were its functions changed?)"),
        ambiguous: false,
        source: None,
    }
}
