//! Changes of sessions by tools that know no agent: a fork, an edit of the state, an input.

use serde_json::Value;

use crate::id::{RunId, Seq, SessionId};
use crate::inbox::{SentFrom, queue_input};
use crate::session::{Change, Edited, Recorded, check_ops};
use crate::state::{Op, Segment, fold};
use crate::store::ReadRequest;

use super::edit::edit;
use super::error::store_error;
use super::fork::fork;
use super::{Kind, Sessions, SessionsError};

impl Sessions {
    /// Creates the session `to` from `session` as it was after the entry `seq`, as
    /// [`Agent::fork`](crate::Agent::fork) does.
    ///
    /// # Errors
    /// Those of [`Agent::fork`](crate::Agent::fork), but that the agent is not checked.
    pub async fn fork(
        &self,
        session: impl AsRef<str>,
        seq: Seq,
        to: impl AsRef<str>,
    ) -> Result<(), SessionsError> {
        let (session, to) = (SessionId::new(session)?, SessionId::new(to)?);
        fork(&*self.store, &session, seq, &to, |_| Ok(())).await
    }

    /// Corrects the state of a session that is at rest, as
    /// [`Agent::edit_json`](crate::Agent::edit_json) does. `head` is the last entry that the editor has
    /// seen: an edit of a session that has changed since is refused.
    ///
    /// The type of the state is not known here. A field must be one of those that the log names, and a
    /// value keeps its JSON type, unless it was null before. Whether the state still decodes, the next
    /// run finds out: it returns [`Incompatible`](crate::compat::Incompatible) otherwise, and the state
    /// can be edited again.
    ///
    /// # Errors
    /// The session [has changed](SessionsError::is_stale); the edit is
    /// [refused](SessionsError::is_bad_edit); a run [holds](SessionsError::is_busy) the session, or has
    /// [left it in the middle of a step](SessionsError::is_not_at_rest). Also those of
    /// [`status`](Sessions::status).
    pub async fn edit_json(
        &self,
        session: impl AsRef<str>,
        head: Seq,
        ops: Vec<Op>,
        by: impl Into<String>,
        why: impl Into<String>,
    ) -> Result<Seq, SessionsError> {
        let session = SessionId::new(session)?;
        let (by, why) = (by.into(), why.into());
        let changes = |recorded: &Recorded, found: Seq| {
            if found != head {
                return Err(
                    Kind::Stale { session: session.clone(), seen: head, head: found }.into()
                );
            }
            check(recorded, &ops).map_err(|why| Kind::BadEdit { session: session.clone(), why })?;
            Ok(vec![Change::Edited(Box::new(Edited::new(by, why, ops)))])
        };
        edit(&self.store, &session, changes).await
    }

    /// Queues an input for a session that exists, as [`Agent::enqueue`](crate::Agent::enqueue) does:
    /// `update` is the JSON of an update of its state. Returns the id of the input. A run skips an input
    /// that does not decode.
    ///
    /// # Errors
    /// The session [does not exist](SessionsError::is_not_found); the store failed.
    pub async fn enqueue_json(
        &self,
        session: impl AsRef<str>,
        update: Value,
    ) -> Result<String, SessionsError> {
        let session = SessionId::new(session)?;
        self.page(&session, ReadRequest::summary()).await?;
        let id = RunId::fresh().to_string();
        // No other input has a fresh id.
        queue_input(&*self.store, &session, &id, &update, SentFrom::here())
            .await
            .map_err(store_error)?;
        Ok(id)
    }
}

/// Whether operations keep the fields of a state and the types of their values.
fn check(recorded: &Recorded, ops: &[Op]) -> Result<(), String> {
    check_ops(ops).map_err(|error| error.to_string())?;
    let fields = recorded.session.schema.fields();
    for op in ops {
        let named = |name: &str| fields.iter().any(|field| field.name() == name);
        match op.path().segments().first() {
            Some(Segment::Key(name)) if named(name) => {}
            _ => return Err(format!("the state has no field `{}`", op.path())),
        }
    }
    let mut after = recorded.state.clone();
    fold(&mut after, ops).map_err(|error| error.to_string())?;
    let fields = recorded.state.as_object().into_iter().flatten();
    for (name, before) in fields {
        let now = after.get(name).unwrap_or(&Value::Null);
        if !before.is_null() && kind(before) != kind(now) {
            return Err(format!("`{name}` is {}, and not {}", kind(before), kind(now)));
        }
    }
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
