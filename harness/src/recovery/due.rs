//! Running a session that was claimed because it is due: its run has crashed, its time has come, or
//! its inbox has a message that no run has read.

use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::compat::Compatible;
use crate::context::Context;
use crate::id::SessionId;
use crate::inbox::{
    note_applied, note_skipped, read_inbox, send_child_settled, send_expired, waiting_inputs,
};
use crate::journal::{Journal, LeaseGuard};
use crate::observe::{Fanout, Observer, Observers};
use crate::run::{Kind, Outcome, RunError, fold_input};
use crate::session::{Change, Digest, InputKey, Recorded, RunStarted};
use crate::state::State;
use crate::store::{self, Phase};

use super::claimed::Claimed;
use super::refuse::read_error;
use super::resume::Given;
use super::turn::Turn;
use super::{Taken, Taker};

/// What came of a session that was due.
pub(crate) struct Worked<S: State> {
    /// Whether it is not due any more for the same reason: a run was at work, a parent was notified, or
    /// the messages were read.
    pub(crate) done: bool,
    pub(crate) outcome: Outcome<S>,
}

/// Decides whether a session continues whose run has ended without settling. If it is
/// [observed](Admitted::Observed), it receives the events of the run.
pub(crate) trait Admission: Observer {
    /// `recovered` is how many runs before that one have ended so at the same position.
    fn admit(&self, recovered: u32) -> Admitted;
}

/// Whether a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    Freely,
    Observed,
    NotNow,
}

/// Runs a session that was claimed because it is due, until it settles. If it cannot be run, it is
/// released as it was, so that it is still due for a program that can; so it is if it is not
/// admitted, which is `None`.
pub(crate) async fn run_due<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    lease: LeaseGuard,
    claimed: store::Claimed,
    admission: Option<Arc<dyn Admission>>,
) -> Result<Option<Worked<S>>, RunError> {
    let Some((taken, done)) = Box::pin(take(taker, lease, claimed, admission)).await? else {
        return Ok(None);
    };
    let done = done || matches!(taken, Taken::Run(_));
    Ok(Some(Worked { done, outcome: taken.outcome().await }))
}

/// Takes the session. Says whether it is not due any more for the same reason if nothing runs.
async fn take<C: Context, S: State>(
    mut taker: Box<Taker<C, S>>,
    lease: LeaseGuard,
    claimed: store::Claimed,
    admission: Option<Arc<dyn Admission>>,
) -> Result<Option<(Taken<C, S>, bool)>, RunError> {
    let id = taker.session().clone();
    // Messages alone: a late notice, say, of a child that the session does not wait for any more.
    let for_messages = claimed.summary.as_ref().is_some_and(|summary| {
        let timely = summary.due.is_some_and(|due| due <= UtcMillis::now());
        summary.phase != Phase::Running && !timely
    });
    let stop = Arc::new(taker.launched.stop.clone());
    let held = Claimed::of(&taker.storage.store, lease, claimed, None, stop).await;
    let mut held = held.map_err(|error| read_error(&id, error))?;
    let Some(recorded) = held.recorded.take() else {
        held.give_back().await;
        return Err(Kind::NotFound(id).into());
    };
    let crashed = recorded.session.phase == Phase::Running;
    if let Some(admission) = admission.filter(|_| crashed) {
        match admission.admit(recorded.session.recovered) {
            Admitted::Freely => {}
            Admitted::Observed => {
                let mut observers = Observers::default();
                observers.add(admission);
                taker.launched.fanout.join(&Fanout::new(observers, None));
            }
            Admitted::NotNow => {
                held.give_back().await;
                return Ok(None);
            }
        }
    }
    let ready = match taker.check(&recorded) {
        Ok(compatible) => taker.expire(&mut held, &recorded).await.map(|()| compatible),
        Err(refused) => Err(refused),
    };
    let compatible = match ready {
        Ok(compatible) => compatible,
        Err(refused) => {
            held.give_back().await;
            return Err(refused.into());
        }
    };
    if let Some(parent) = recorded.session.owes_notice() {
        let parent = parent.session.clone();
        let taken = taker.notify(held, recorded, compatible.state, &parent).await?;
        return Ok(Some((taken, true)));
    }
    let taken = match recorded.session.phase {
        Phase::Ended => taker.next_turn(held, recorded, compatible).await,
        Phase::Running | Phase::Interrupted | Phase::Waiting => {
            // What came was recorded by the process that sent it.
            let given = Given { messages: Vec::new(), recorded: true };
            taker.enter(held, recorded, compatible, given).await
        }
        // A person decides whether such a turn continues.
        _ => taker.leave(held, &recorded.session, compatible.state, true).await,
    };
    Ok(Some((taken?, for_messages)))
}

impl<C: Context, S: State> Taker<C, S> {
    /// Reports the interrupts that have expired.
    pub(super) async fn expire(&self, held: &mut Claimed, recorded: &Recorded) -> Result<(), Kind> {
        let session = &recorded.session;
        let now = UtcMillis::now();
        if !session.interrupts.iter().any(|asked| asked.is_overdue(now)) {
            return Ok(());
        }
        send_expired(self.store(), self.session(), session).await.map_err(Kind::Store)?;
        held.read_inbox(self.store(), session.inbox).await.map_err(Kind::Store)
    }

    /// Notifies the parent that the turn is over, which the run that ended it did not.
    async fn notify(
        self: Box<Self>,
        held: Claimed,
        recorded: Recorded,
        state: S,
        parent: &SessionId,
    ) -> Result<Taken<C, S>, RunError> {
        let Recorded { mut session, state: stored } = recorded;
        if let Err(error) = send_child_settled(self.store(), parent, self.session()).await {
            held.give_back().await;
            return Err(Kind::Store(error).into());
        }
        session.notified = true;
        let (guard, start) = held.into_start(stored, session.inbox);
        let journal = Journal::new(guard, start, self.storage.durability);
        journal.summarize(session.summary(&session.cursor.step));
        // An input that waits for the end of the turn makes it due again.
        let _ = journal.release().await;
        Ok(self.at_rest(&session, state))
    }

    /// Begins the next turn with the first input that waits.
    async fn next_turn(
        self: Box<Self>,
        held: Claimed,
        recorded: Recorded,
        compatible: Compatible<S>,
    ) -> Result<Taken<C, S>, RunError> {
        let Recorded { session, state: stored } = recorded;
        let Compatible { state, adopted } = compatible;
        let (store, id) = (Arc::clone(&self.storage.store), self.session().clone());
        let inbox = match read_inbox(&*store, &id).await {
            Ok(inbox) => inbox,
            Err(error) => {
                held.give_back().await;
                return Err(Kind::Store(error).into());
            }
        };
        for (key, seq, input) in waiting_inputs(inbox, session.input.as_deref()) {
            let digest = Digest::of(&input.update);
            let from = input.from.clone();
            let folded = fold_input(&state, input);
            let noted = match (&folded, &session.input) {
                (Err(why), _) => note_skipped(&*store, &id, &key, why).await,
                (Ok(_), Some(before)) => {
                    note_applied(&*store, &id, before, session.input_digest.as_ref()).await
                }
                (Ok(_), None) => Ok(()),
            };
            if let Err(error) = noted {
                held.give_back().await;
                return Err(Kind::Store(error).into());
            }
            let Ok((next, ops)) = folded else { continue };
            let mut changes: Vec<Change> =
                adopted.into_iter().map(|adopted| Change::Adopted(Box::new(adopted))).collect();
            let start = self.wiring().name_of(self.wiring().start);
            let (run, input) = (self.launched.run.clone(), InputKey { key, digest });
            let run = RunStarted::turn(run, start, ops, Some(input), seq);
            changes.push(Change::RunStarted(Box::new(run)));
            let (state, look_back) = (next, true);
            let turn = Turn { opened: None, session, stored, state, changes, look_back, from };
            return self.begin(held, turn, None).await;
        }
        self.leave(held, &session, state, true).await
    }
}
