//! Correcting the state of a session.

use serde_json::Value;

use crate::compat::{check, decode_state};
use crate::context::Context;
use crate::id::{Seq, SessionId};
use crate::inspect::{Kind, SessionsError, edit};
use crate::run::reduce;
use crate::session::{Change, Edited, Recorded, check_ops};
use crate::state::{Op, Segment, State, fold, to_json};

use super::Agent;

impl<C: Context, S: State> Agent<C, S> {
    /// Corrects the state of a session that is at rest, as `update` says. The log records it with
    /// `by` (who does it) and `why`. Returns the entry, which is in the session's
    /// [history](Self::history).
    ///
    /// Nothing runs, and the session stays where it is: its open interrupts, its effects and its
    /// position are the same, and its next run continues with the edited state. The reducers of the
    /// state fold the update in, as they do with an update of a step.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # use harness::store::MemoryStore;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Order { city: String, sent: bool }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Order>::builder("d").start(Step::Ask).steps(|define, step| match step {
    /// #     Step::Ask => define
    /// #         .ask(|order: View<Order>, _| async move { Ok(Send { to: order.city.clone() }) })
    /// #         .answer(|_, _, said| async move { Ok(Order::update().sent(said.answer)) }).end(),
    /// # }).build()?;
    /// let agent = harness.agent("orders", ()).store(MemoryStore::new());
    /// let outcome = agent.run(Order::update().city("Bern"), ()).session("o-7").await?;
    /// let Outcome::Interrupted(waiting) = outcome else { panic!() };
    ///
    /// agent.edit("o-7", Order::update().city("Basel"), "sam", "the customer has moved").await?;
    /// let answer = waiting.pending::<Send>()?.answer(true);
    /// let ended = agent.resume("o-7", answer, ()).await?.ended()?;
    /// assert_eq!(ended.state.city, "Basel");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// A run [holds](SessionsError::is_busy) the session, or has
    /// [left it in the middle of a step](SessionsError::is_not_at_rest); a reducer refuses the update
    /// or panics ([`is_bad_edit`](SessionsError::is_bad_edit)); the session is
    /// [incompatible](SessionsError::incompatible) with this agent, [belongs to another
    /// one](SessionsError::is_wrong_agent), [does not exist](SessionsError::is_not_found) or
    /// [is damaged](SessionsError::is_damaged); the store failed, or the agent has none.
    pub async fn edit(
        &self,
        session: impl AsRef<str>,
        update: S::Update,
        by: impl Into<String>,
        why: impl Into<String>,
    ) -> Result<Seq, SessionsError> {
        let session = SessionId::new(session)?;
        let ops = |mut state: S| reduce(&mut state, update).map_err(|error| error.to_string());
        self.edit_with(&session, ops, by.into(), why.into()).await
    }

    /// [`edit`](Self::edit) with operations on the JSON of the state, for tools that do not know its
    /// type. What they lead to must decode as the state of this agent, and encode as the same JSON.
    ///
    /// # Errors
    /// As [`edit`](Self::edit); [`is_bad_edit`](SessionsError::is_bad_edit) if an operation names a
    /// field that the state does not have, does not fit the JSON, or leads to what is no state.
    pub async fn edit_json(
        &self,
        session: impl AsRef<str>,
        ops: Vec<Op>,
        by: impl Into<String>,
        why: impl Into<String>,
    ) -> Result<Seq, SessionsError> {
        let session = SessionId::new(session)?;
        self.edit_with(&session, |_| Ok(ops), by.into(), why.into()).await
    }

    async fn edit_with(
        &self,
        session: &SessionId,
        ops: impl FnOnce(S) -> Result<Vec<Op>, String> + Send,
        by: String,
        why: String,
    ) -> Result<Seq, SessionsError> {
        let store = self.session_store(session)?;
        let target = self.identity().target(self.compatibility_rule());
        let changes = |recorded: &Recorded, _| {
            self.check_agent(session, recorded)?;
            let incompatible = |cause| Kind::Incompatible { session: session.clone(), cause };
            let found = check::<S>(recorded, &target).map_err(incompatible)?;
            let adopted = found.adopted.as_ref().and_then(|adopted| adopted.state.as_ref());
            let before = adopted.unwrap_or(&recorded.state);
            let bad = |why| Kind::BadEdit { session: session.clone(), why };
            let ops = ops(found.state).map_err(bad)?;
            check_edit::<S>(before, &ops).map_err(bad)?;
            let adopted = found.adopted.map(|adopted| Change::Adopted(Box::new(adopted)));
            let edited = Change::Edited(Box::new(Edited::new(by, why, ops)));
            Ok(adopted.into_iter().chain([edited]).collect())
        };
        edit(&store, session, changes).await
    }
}

/// Whether operations lead from the JSON of a state to that of another.
fn check_edit<S: State>(before: &Value, ops: &[Op]) -> Result<(), String> {
    check_ops(ops).map_err(|error| error.to_string())?;
    let schema = S::schema();
    for op in ops {
        let named = |name: &str| schema.fields().iter().any(|field| field.name() == name);
        match op.path().segments().first() {
            Some(Segment::Key(name)) if named(name) => {}
            _ => return Err(format!("the state has no field `{}`", op.path())),
        }
    }
    let mut after = before.clone();
    fold(&mut after, ops).map_err(|error| error.to_string())?;
    let state = decode_state::<S>(&after).map_err(|error| error.to_string())?;
    let again = to_json(&state).map_err(|error| error.to_string())?;
    match schema.difference(&again, &after) {
        Some(field) => Err(format!("`{field}` is stored in another form than the edit gives it")),
        None => Ok(()),
    }
}
