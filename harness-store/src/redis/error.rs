//! Failures of the server, as the caller of a store understands them.

use std::time::Duration;

use harness::SessionId;
use harness::store::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::sql::corrupt;

/// What a failed call means. `may_have_effect` says whether it could have had one if the server did not
/// say that it refused the call.
pub(crate) fn failed(error: &RedisError, limit: Duration, may_have_effect: bool) -> StoreError {
    let unavailable = |what: String, ambiguous: bool| StoreError::Unavailable {
        what,
        ambiguous: ambiguous && may_have_effect,
        source: Some(text(error).into()),
    };
    if error.is_timeout() {
        return unavailable(format!("the server did not answer within {limit:?}"), true);
    }
    let unsuitable = |hint: &str| StoreError::Unsuitable(format!("{} ({hint})", text(error)));
    if error.kind() == ErrorKind::AuthenticationFailed {
        return unsuitable("check the user and the password");
    }
    let Some(code) = error.code() else {
        return unavailable(
            "the connection to the server is lost (is the server up?)".into(),
            true,
        );
    };
    match (error.kind(), code) {
        (_, "OOM") => StoreError::Full(
            "the memory of the server is full (raise `maxmemory`, or remove sessions)".into(),
        ),
        (_, "NOAUTH" | "WRONGPASS" | "DENIED") => unsuitable("check the user and the password"),
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => {
            unsuitable("grant the user all commands on the keys of the store")
        }
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => {
            unsuitable("the server is a replica now: connect to the master")
        }
        (_, "WRONGTYPE") => unsuitable("another program uses these keys: choose another prefix"),
        // These precede the execution.
        (ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown), _)
        | (_, "BUSY" | "MISCONF" | "NOREPLICAS") => {
            unavailable("the server has refused a call".into(), false)
        }
        // It may have failed in the middle.
        _ => unavailable("the server has failed in a call".into(), true),
    }
}

/// What it means that no connection could be made.
pub(crate) fn no_connection(error: &RedisError, limit: Duration) -> StoreError {
    if error.code().is_some() || error.kind() == ErrorKind::AuthenticationFailed {
        return failed(error, limit, false);
    }
    if is_untrusted(error) {
        return StoreError::Unsuitable(format!(
            "{} (the certificate of the server must be valid, for the name in the URL)",
            text(error)
        ));
    }
    StoreError::Unavailable {
        what: if error.is_timeout() {
            format!("the server did not accept a connection within {limit:?}")
        } else {
            "failed to connect to the server (is it up?)".into()
        },
        ambiguous: false,
        source: Some(text(error).into()),
    }
}

/// Whether one end has refused to encrypt a connection: another try comes to the same.
fn is_untrusted(error: &RedisError) -> bool {
    let source = std::error::Error::source(error).and_then(|source| {
        source.downcast_ref::<std::sync::Arc<dyn std::error::Error + Send + Sync>>()
    });
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::InvalidData)
}

/// What it means that replicas do not have in time what was written.
pub(crate) fn not_replicated() -> StoreError {
    StoreError::Unavailable {
        what: "the server has done it, and not enough replicas have it on disk (are they up?)"
            .into(),
        ambiguous: true,
        source: None,
    }
}

/// An error without its type, which cannot show what it was made from.
fn text(error: &RedisError) -> String {
    error.to_string()
}

/// What it means that a script has found a log damaged.
pub(crate) fn damaged(session: &SessionId, after: u64) -> StoreError {
    corrupt(session, after, "the next batch is missing, or is not what was written")
}

/// What it means that the answer of a script lacks what it should have.
pub(crate) fn unexpected(what: &str) -> StoreError {
    StoreError::Unavailable {
        what: format!("the server has answered with {what} (does another program write its keys?)"),
        ambiguous: false,
        source: None,
    }
}

/// What it means that the store itself is missing, which was there when it was opened.
pub(crate) fn emptied() -> StoreError {
    StoreError::Unsuitable(
        "the keys of the store are gone from the server (restore them, or open the store again to \
         begin with an empty one)"
            .into(),
    )
}
