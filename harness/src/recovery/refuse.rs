//! What keeps a session from being recovered.

use crate::id::SessionId;
use crate::journal::ReadError;
use crate::run::Kind;
use crate::session::Session;
use crate::store::{Phase, StoreError};

/// The session could not be claimed or read.
pub(super) fn read_error(session: &SessionId, error: ReadError) -> Kind {
    match error {
        ReadError::Store(StoreError::Busy { until, .. }) => {
            Kind::Busy { session: session.clone(), until: Some(until), answers_recorded: false }
        }
        ReadError::Store(error) => Kind::Store(error),
        ReadError::Replay(cause) => Kind::Replay { session: session.clone(), cause },
    }
}

/// The session waits for answers.
pub(super) fn pending(id: &SessionId, session: &Session) -> Kind {
    let open = session.open_interrupts().map(|interrupt| interrupt.id.to_string()).collect();
    Kind::OpenInterrupts { session: id.clone(), open }
}

/// The turn has not ended. Its `effect` may have happened.
pub(super) fn unsettled(id: &SessionId, phase: Phase, effect: Option<&str>) -> Kind {
    Kind::Unsettled { session: id.clone(), phase, in_doubt: effect.map(str::to_owned) }
}
