//! How a run settles.

use std::sync::Arc;

use crate::compat::decode_state;
use crate::context::Context;
use crate::inbox::send_child_settled;
use crate::journal::{Broken, When, in_background, in_background_again, read};
use crate::observe::EventKind;
use crate::session::{Change, End, Settled};
use crate::state::State;
use crate::step::Failure;

use super::conclusion::Conclusion;
use super::driver::Driver;
use super::outcome::rest::Resting;
use super::outcome::{Child, Settlement};
use super::parent::Parent;

impl<C: Context, S: State> Driver<C, S> {
    /// Settles the run; `None` if the inbox has what the session waits for.
    pub(super) async fn settle(&mut self, conclusion: Conclusion) -> Option<Settlement<S>> {
        let conclusion = self.record_settled(conclusion).await;
        let (end, finally_failure) = match conclusion {
            Conclusion::Settle { end, finally_failure } => {
                if self.resumes_from_inbox(&end).await {
                    return None;
                }
                (end, finally_failure)
            }
            Conclusion::Unrecorded(failure) => {
                self.read_back().await;
                (End::Failed { failure }, None)
            }
        };
        if matches!(end, End::Ended { .. }) {
            // A turn that is over stays over, even if its outcome has no receiver.
            self.home = None;
        }
        // A session that lives here returns to where it came from if the run is dropped before its
        // outcome is there.
        self.settled = self.core.journal.is_some();
        let (steps, spent) = self.core.session(|it| (it.cursor.steps, it.spent));
        self.observed = false;
        self.core.publish(None, || EventKind::Settled { end: end.clone(), steps, spent });
        self.core.fanout.flush().await;
        self.settled = true;
        Some(self.settlement(end, finally_failure))
    }

    /// Records how the run settles.
    async fn record_settled(&mut self, mut conclusion: Conclusion) -> Conclusion {
        let journal = self.core.journal.as_ref();
        if let Some(journal) = journal
            && matches!(conclusion, Conclusion::Settle { .. })
            && !journal.holds().await
        {
            conclusion = self.unrecorded(&Broken::LeaseLost);
        }
        if self.lost && self.core.journal.is_some() {
            let restored = self.restore_state();
            self.lost = restored.is_err();
            if let (Err(error), Conclusion::Settle { end: End::Ended { .. }, .. }) =
                (restored, &conclusion)
            {
                // The outcome of an end holds its state.
                conclusion = self.unrecorded(&Broken::unsound(error.source()));
            }
        }
        let Conclusion::Settle { end, finally_failure } = conclusion else { return conclusion };
        // The failure of a step counts its attempts, and the last steps are not resumed.
        let uncounted = matches!(end, End::Ended { .. } | End::Failed { .. });
        let parked = self.core.session(|session| session.parked.is_some());
        let attempt = if uncounted || parked { 0 } else { self.core.attempts_begun() };
        let settled = Settled {
            end: end.clone(),
            finally_failure: finally_failure.clone(),
            active_ms: self.active_ms(),
            attempt,
            notify: end.is_of_turn() && self.has_absent_parent(),
        };
        let recorded = self.core.record(Change::Settled(Box::new(settled)));
        match self.write(recorded, When::Now).await {
            Some(unrecorded) => unrecorded,
            None => {
                self.notify_parent().await;
                Conclusion::Settle { end, finally_failure }
            }
        }
    }

    /// Whether the session has a parent no run of which waits for this one.
    fn has_absent_parent(&self) -> bool {
        let awaited = self.core.parent.as_ref().is_some_and(Parent::awaits);
        !awaited && self.core.session(|session| session.parent.is_some())
    }

    /// Notifies the parent that the turn is over. If that fails, the session stays due, and a worker
    /// does it.
    async fn notify_parent(&self) {
        let parent = self.core.session(|session| session.owes_notice().cloned());
        let (Some(parent), Some(journal)) = (parent, &self.core.journal) else { return };
        let (store, session) = journal.place();
        match send_child_settled(&**store, &parent.session, session).await {
            Ok(()) => {
                self.core.notified();
                journal.summarize(self.core.summary());
            }
            Err(error) => {
                tracing::warn!(%session, parent = %parent.session, %error, "failed to notify a parent");
            }
        }
    }

    /// Nothing more can be recorded: the state is the one that the store has.
    async fn read_back(&mut self) {
        let Some(journal) = &self.core.journal else { return };
        journal.give_up();
        let (store, session) = journal.place();
        let found = read(&**store, session).await.ok().flatten();
        let state = found.and_then(|found| decode_state::<S>(&found.recorded.state).ok());
        self.lost = state.is_none();
        self.state = Arc::new(state.unwrap_or_default());
        let _ = journal.release().await;
    }

    fn settlement(&mut self, end: End, finally_failure: Option<Arc<Failure>>) -> Settlement<S> {
        let durable = self.core.journal.is_some();
        let state = (!self.lost).then(|| Arc::clone(&self.state));
        let ended = matches!(end, End::Ended { .. });
        let (interrupts, due, children, spent, steps) = self.core.session(|session| {
            let interrupts = session.open_interrupts().cloned().collect();
            let children = Child::awaited(session);
            (interrupts, session.due(), children, session.spent, session.cursor.steps)
        });
        let resting = state.as_ref().filter(|_| !durable && !ended).map(|state| {
            let session = self.core.session(Clone::clone);
            Resting { session, state: Arc::clone(state) }
        });
        // The outcome of an end moves the state out.
        if ended {
            self.state = Arc::default();
        }
        Settlement {
            session: self.core.ids.session.clone(),
            run: self.core.ids.run.clone(),
            end,
            finally_failure,
            state,
            spent,
            steps,
            interrupts,
            due,
            children,
            resting,
            durable,
            home: self.home.take(),
        }
    }
}

impl<C: Context, S: State> Drop for Driver<C, S> {
    /// A run that is dropped settles as cancelled, as of its last commit, once its effects in flight
    /// are recorded.
    fn drop(&mut self) {
        if self.observed {
            self.core.publish(None, || EventKind::Dropped);
        }
        if self.settled {
            return;
        }
        self.settled = true;
        self.core.abort_tasks();
        let settled = Settled {
            end: End::Cancelled,
            finally_failure: None,
            active_ms: self.active_ms(),
            attempt: self.core.attempts_begun(),
            notify: false,
        };
        let settled = Change::Settled(Box::new(settled));
        let (core, home) = (Arc::clone(&self.core), self.home.take());
        if core.journal.is_none() {
            let Some(home) = home.filter(|_| !self.lost) else { return };
            let state = Arc::clone(&self.state);
            let give_back = move |core: &super::core::RunCore| {
                // It may have settled, without a receiver.
                let running = core.session(|session| session.settled.is_none());
                if !running || core.record(settled).is_ok() {
                    let session = core.session(Clone::clone);
                    *home.lock() = Some(Resting { session, state });
                }
            };
            if core.has_effects() {
                in_background(async move {
                    core.effects_over().await;
                    give_back(&core);
                });
            } else {
                give_back(&core);
            }
            return;
        }
        // Also if the runtime ends with the run: the process lives, and the session must not stay held
        // until the lease expires.
        in_background_again(move || {
            let (core, settled) = (Arc::clone(&core), settled.clone());
            async move {
                core.effects_over().await;
                let Some(journal) = &core.journal else { return };
                // It may have settled, without a receiver.
                let settles = core.session(|session| session.settled.is_none())
                    && !core.stop.is_handed_over()
                    && !journal.may_be_lost();
                if settles && core.record(settled).is_ok() {
                    // A store that fails here leaves a session that looks like a crashed one.
                    let _ = core.commit(When::Now).await;
                }
                let _ = journal.release().await;
            }
        });
    }
}
