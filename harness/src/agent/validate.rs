//! Whether answers fit the questions of a loop whose types are at hand.

use serde_json::Value;

use crate::graph::Wiring;
use crate::id::SessionId;
use crate::journal::{self, Refused, Valid};
use crate::log::Saved;
use crate::question::mismatch;
use crate::run::Kind;
use crate::step::{Answers, Interrupt};
use crate::store::{Message, SessionStore};

/// Looks through all answers: each must be to a question that the session asks or has asked, fit
/// it, and not contradict what was answered before.
///
/// # Errors
/// The first that may not be given; none is, then.
pub(crate) async fn validate(
    store: &dyn SessionStore,
    session: &SessionId,
    saved: &Saved,
    wiring: &Wiring,
    answers: Answers,
) -> Result<Valid, Kind> {
    let unfit = |asked: &Interrupt, value: &Value| unfit(asked, wiring, value);
    let valid = journal::validate(store, session, saved, unfit, answers).await;
    valid.map_err(|refused| kind(session, refused))
}

/// Posts letters about questions: all or none.
pub(super) async fn post(
    store: &dyn SessionStore,
    session: &SessionId,
    letters: &[Message],
) -> Result<(), Kind> {
    let posted = journal::post_all(store, session, letters).await;
    posted.map_err(|refused| kind(session, refused))
}

fn kind(session: &SessionId, refused: Refused) -> Kind {
    let session = session.clone();
    match refused {
        Refused::Store(error) => Kind::Store(error),
        Refused::Unknown { id, open } => Kind::UnknownInterrupt { session, id, open },
        Refused::Conflict { id, recorded } => Kind::Conflict { session, id, recorded },
        Refused::AnotherQuestion { id, given, asked } => Kind::AnotherQuestion { id, given, asked },
        Refused::IllTyped { id, asked, why } => Kind::IllTypedAnswer { id, asked, why },
        Refused::Expired { id } => Kind::Expired { session, id },
    }
}

/// Why a value is no answer to the question. The type itself says so where the loop knows it, else
/// the schema that was stored with the question.
fn unfit(asked: &Interrupt, wiring: &Wiring, value: &Value) -> Option<String> {
    let gate = wiring
        .nodes
        .iter()
        .filter(|_| asked.key.is_none())
        .filter_map(|node| node.question.as_ref())
        .find(|question| question.name == asked.name);
    match gate {
        Some(question) => (question.check)(value).err(),
        None => mismatch(&asked.answer_schema, value),
    }
}
