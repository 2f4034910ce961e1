//! Running the child of a session: started once, attached to after that.

use serde_json::Value;

use crate::compat::Compatible;
use crate::context::Context;
use crate::journal::read;
use crate::run::{Kind, OnBusy, Outcome, RunError};
use crate::session::{ParentSession, Recorded, Session};
use crate::state::{State, of_json};
use crate::store::Phase;

use super::claimed::Claimed;
use super::refuse::read_error;
use super::resume::Given;
use super::{Taken, Taker};

/// Runs a child until its run settles; one whose turn is over is left as it is. Waits while another
/// process runs it.
pub(crate) async fn attach<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    input: Value,
    parent: ParentSession,
) -> Result<Outcome<S>, RunError> {
    // A live run keeps no room for how its session was recovered.
    Ok(Box::pin(taker.attach(input, parent)).await?.outcome().await)
}

/// Whether the turn is over, and only a person decides whether it continues.
fn is_over(session: &Session) -> bool {
    matches!(session.phase, Phase::Ended | Phase::Failed | Phase::Exhausted)
}

impl<C: Context, S: State> Taker<C, S> {
    async fn attach(
        mut self: Box<Self>,
        input: Value,
        parent: ParentSession,
    ) -> Result<Taken<C, S>, RunError> {
        self.launched.on_busy = OnBusy::Wait;
        let id = self.session().clone();
        let found = read(self.store(), &id).await.map_err(|error| read_error(&id, error))?;
        if let Some(found) = &found
            && is_over(&found.recorded.session)
        {
            let compatible = self.check_child(&found.recorded, &parent)?;
            return Ok(self.at_rest(&found.recorded.session, compatible.state));
        }
        let mut claimed = self.claim(found).await?;
        let Some(recorded) = claimed.recorded.take() else {
            return self.start_child(claimed, input, parent).await;
        };
        let ready = match self.check_child(&recorded, &parent) {
            Ok(compatible) => self.expire(&mut claimed, &recorded).await.map(|()| compatible),
            Err(refused) => Err(refused),
        };
        match ready {
            Err(refused) => {
                claimed.give_back().await;
                Err(refused.into())
            }
            Ok(compatible) if is_over(&recorded.session) => {
                claimed.give_back().await;
                Ok(self.at_rest(&recorded.session, compatible.state))
            }
            Ok(compatible) => {
                let given = Given { messages: Vec::new(), recorded: false };
                self.enter(claimed, recorded, compatible, given).await
            }
        }
    }

    /// The session must be of this agent, and of this parent.
    fn check_child(
        &self,
        recorded: &Recorded,
        parent: &ParentSession,
    ) -> Result<Compatible<S>, Kind> {
        let known = recorded.session.parent.as_ref();
        if known.is_none_or(|known| known.session != parent.session) {
            return Err(Kind::NotAChild(self.session().clone()));
        }
        self.check(recorded)
    }

    async fn start_child(
        self: Box<Self>,
        claimed: Claimed,
        input: Value,
        parent: ParentSession,
    ) -> Result<Taken<C, S>, RunError> {
        let begun = of_json::<S::Update, _>(input)
            .map_err(|error| Kind::InputNotEncodable(error.to_string()))
            .and_then(|input| self.first_turn(input, None));
        match begun {
            Ok(mut turn) => {
                if let Some(opened) = &mut turn.opened {
                    opened.parent = Some(parent.clone());
                }
                turn.session.parent = Some(parent);
                self.begin(claimed, turn, None).await
            }
            Err(refused) => {
                claimed.give_back().await;
                Err(refused.into())
            }
        }
    }
}
