//! Records what was decided, and publishes its events.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::compat::decode_state;
use crate::context::Context;
use crate::graph::Wiring;
use crate::journal::{Broken, When};
use crate::observe::EventKind;
use crate::question::BreakpointAt;
use crate::session::{
    Asked as AskedChange, AttemptFailed, Change, Committed, Diverted, End, Finishing, Session,
    Timer, TimerWait,
};
use crate::state::{State, to_json};
use crate::step::{Asked, Failure, FailureKind, Interrupt, Place, StepError};

use super::boundary::place_in;
use super::breakpoints::breakpoint;
use super::conclusion::{Conclusion, Recorded};
use super::driver::Driver;
use super::transition::{Attempted, Finally, Next, Settle, transition};

impl<C: Context, S: State> Driver<C, S> {
    /// Decides what comes next, and records it.
    pub(super) fn advance(&mut self, wiring: &Wiring, attempted: Attempted) -> Recorded {
        let mut done = None;
        let breakpoints = self.breakpoints.as_deref();
        let breaks = breakpoints.and_then(|it| self.core.session(|session| it.after(session)));
        let (ops, heard) = (&mut self.left.ops, !self.core.is_silent());
        let decided = self.core.record_where(|session| {
            match transition(wiring, &session.cursor, attempted) {
                Next::Enter { step } => {
                    done = heard.then(|| (place_in(session, None), step));
                    let (next, ops) = (Some(step), std::mem::take(ops));
                    Ok(Change::Committed(Committed { next, ops }))
                }
                next => Err(next),
            }
        });
        match decided {
            Ok(Ok(())) => {
                if let Some((place, step)) = done {
                    self.publish_committed(wiring, place, branch_of(attempted), Some(step));
                }
                match breaks {
                    Some(step) => self.break_after(wiring, step),
                    None => Recorded::Step,
                }
            }
            Ok(Err(broken)) => Recorded::End(Box::new(self.unrecorded(&broken))),
            Err(next) => self.record(wiring, attempted, next),
        }
    }

    /// Asks after the commit of `step` that was just recorded.
    fn break_after(&mut self, wiring: &Wiring, step: usize) -> Recorded {
        let place = self.place(None);
        let conclusion = match breakpoint(wiring, step, BreakpointAt::After) {
            Ok(asked) => match self.record_asked(wiring, place, vec![asked]) {
                Ok(()) => Conclusion::of(End::Interrupted),
                Err(broken) => self.unrecorded(&broken),
            },
            Err(error) => {
                let failure = self.failure(wiring, place, Some(error));
                Conclusion::of(End::Failed { failure })
            }
        };
        Recorded::End(Box::new(conclusion))
    }

    /// Records what was decided.
    fn record(&mut self, wiring: &Wiring, attempted: Attempted, next: Next) -> Recorded {
        let recorded = match next {
            // `advance` has done the same in its own look at the session.
            Next::Enter { step } => self.record_step(wiring, branch_of(attempted), Some(step)),
            Next::Divert { step } => self.record_divert(wiring, step),
            Next::Finish { end, step } => self.record_finishing(wiring, attempted, end, step),
            Next::Ask => {
                let asked = std::mem::take(&mut self.left.asked);
                let place = self.place(None);
                let recorded = self.record_asked(wiring, place, asked);
                match recorded.and_then(|()| self.record_left_waits(place)) {
                    Ok(()) => return Recorded::End(Box::new(Conclusion::of(End::Interrupted))),
                    Err(broken) => Err(broken),
                }
            }
            Next::Sleep => match self.record_left_waits(self.place(None)) {
                Ok(()) => return Recorded::Timers,
                Err(broken) => Err(broken),
            },
            Next::Retry => {
                let failure = self.left.failure.take();
                match self.record_retry(wiring, None, failure) {
                    Ok(delay) => return Recorded::Retry(delay),
                    Err(broken) => Err(broken),
                }
            }
            Next::Settle(end) => {
                return Recorded::End(Box::new(self.conclusion(wiring, attempted, end)));
            }
        };
        match recorded {
            Ok(()) => Recorded::Step,
            Err(broken) => Recorded::End(Box::new(self.unrecorded(&broken))),
        }
    }

    /// Appends what was recorded, and waits before a retry. Returns how the run settles, once it
    /// does.
    pub(super) async fn commit(
        &mut self,
        wiring: &Wiring,
        recorded: Recorded,
    ) -> Option<Box<Conclusion>> {
        match recorded {
            Recorded::Step => self.write(Ok(()), When::Mode).await.map(Box::new),
            // A crash must not start them again.
            Recorded::Timers => self.write(Ok(()), When::Now).await.map(Box::new),
            Recorded::Retry(delay) => Box::pin(self.back_off(wiring, delay)).await.map(Box::new),
            Recorded::End(conclusion) => Some(conclusion),
        }
    }

    /// Appends what was recorded. Returns how the run settles, if that fails.
    pub(super) async fn write(
        &mut self,
        recorded: Result<(), Broken>,
        when: When,
    ) -> Option<Conclusion> {
        let written = match recorded {
            Ok(()) => self.append(when).await,
            Err(broken) => Err(broken),
        };
        written.err().map(|broken| self.unrecorded(&broken))
    }

    /// Appends what was recorded, and a snapshot if one is due.
    pub(super) async fn append(&self, when: When) -> Result<(), Broken> {
        self.core.commit(when).await?;
        match self.core.is_snapshot_due() {
            true => Box::pin(self.write_snapshot()).await,
            false => Ok(()),
        }
    }

    async fn write_snapshot(&self) -> Result<(), Broken> {
        let live = to_json(&*self.state).map_err(Broken::unsound)?;
        match self.core.snapshot(live, &S::schema())? {
            // It adds nothing to what is durable already.
            true => self.core.commit(When::Kept).await,
            false => Ok(()),
        }
    }

    /// Goes back to the state that the log replays to.
    pub(super) fn restore_state(&mut self) -> Result<(), StepError> {
        let Some(journal) = &self.core.journal else { return Ok(()) };
        let state = decode_state::<S>(&journal.state())
            .map_err(|error| StepError::of(FailureKind::NotReplayable, false, error.to_string()))?;
        self.state = Arc::new(state);
        Ok(())
    }

    /// Records that a step is done.
    fn record_step(
        &mut self,
        wiring: &Wiring,
        branch: Option<usize>,
        next: Option<usize>,
    ) -> Result<(), Broken> {
        let ops = std::mem::take(&mut self.left.ops);
        let place = (!self.core.is_silent()).then(|| self.place(None));
        self.core.record(Change::Committed(Committed { next, ops }))?;
        if let Some(place) = place {
            self.publish_committed(wiring, place, branch, next);
        }
        Ok(())
    }

    fn publish_committed(
        &self,
        wiring: &Wiring,
        place: Place,
        branch: Option<usize>,
        next: Option<usize>,
    ) {
        let signal = wiring.nodes[place.step].exit.signal(branch).map(|(_, signal)| signal);
        let next = next.map(|step| wiring.name_of(step));
        self.core.publish_recorded(place, EventKind::Committed { signal, next });
    }

    fn record_divert(&mut self, wiring: &Wiring, next: usize) -> Result<(), Broken> {
        let place = self.place(None);
        let failure = self.left_failure(wiring, place);
        let diverted = Diverted { failure: Arc::clone(&failure), next };
        self.core.record(Change::Diverted(Box::new(diverted)))?;
        let (failure, next) = ((*failure).clone(), wiring.name_of(next));
        self.core.publish_recorded(place, EventKind::Diverted { failure, next });
        Ok(())
    }

    /// Records questions that have no answer.
    pub(super) fn record_asked(
        &mut self,
        wiring: &Wiring,
        place: Place,
        asked: Vec<(Option<String>, Asked)>,
    ) -> Result<(), Broken> {
        let asked_at = UtcMillis::now();
        let (salt, asked) = self.core.session(|session| {
            // A timer enters a step again that waits for answers as well: what it asked stays asked.
            let known = |key: Option<&str>, asked: &Asked| {
                session.asked(place.item, key).is_some_and(|before| asked.is(&before.interrupt))
            };
            let mut asked = asked;
            asked.retain(|(key, asked)| !known(key.as_deref(), asked));
            (session.salt.clone(), asked)
        });
        if asked.is_empty() {
            return Ok(());
        }
        let interrupt = |(key, asked): (Option<String>, Asked)| {
            let Asked { name, question, answer_schema, expires, .. } = asked;
            let id = salt.interrupt_id(place, key.as_deref(), name, &question, &answer_schema);
            Interrupt {
                id,
                name: name.to_owned(),
                question,
                answer_schema,
                step: wiring.nodes[place.step].name.to_string(),
                position: place.position,
                item: place.item,
                key,
                asked_at,
                expires_at: expires.map(|after| asked_at.after(after)),
            }
        };
        let interrupts: Vec<Interrupt> = asked.into_iter().map(interrupt).collect();
        let events = if self.core.is_silent() { Vec::new() } else { interrupts.clone() };
        let asked = Change::Asked(AskedChange { interrupts });
        self.core.record_as(place, asked, || {
            events.into_iter().map(|interrupt| EventKind::Asked { interrupt }).collect()
        })
    }

    /// Records for what the last attempt waits.
    fn record_left_waits(&mut self, place: Place) -> Result<(), Broken> {
        let timers = std::mem::take(&mut self.left.timers);
        let children = std::mem::take(&mut self.left.children);
        self.record_waits(place, timers, children)
    }

    /// Records for which timers and children an attempt waits, in place of those that the one before
    /// has waited for.
    pub(super) fn record_waits(
        &self,
        place: Place,
        timers: Vec<Timer>,
        children: Vec<String>,
    ) -> Result<(), Broken> {
        let (known, waited) = self.core.session(|session| {
            let known = session.timers_of(place.item).cloned().unwrap_or_default();
            (known, session.waits_for_child(place.item))
        });
        if timers.is_empty() && known.first_due().is_none() && children.is_empty() && !waited {
            return Ok(());
        }
        // The `.after(..)` of a step waits before its first attempt.
        let before = timers.iter().any(|timer| timer.key.is_none());
        let (n, item) = (if before { 0 } else { place.attempt }, place.item);
        let is_new = |timer: &&Timer| known.due(timer.key.as_deref()).is_none();
        let new: Vec<Timer> = timers.iter().filter(is_new).cloned().collect();
        let wait = Change::Timer(TimerWait { n, item, timers, children });
        self.core.record_as(place, wait, || {
            let started = |Timer { key, due }| EventKind::TimerStarted { key, due };
            new.into_iter().map(started).collect()
        })
    }

    /// Records that the turn ends by way of `.finally(..)`.
    fn record_finishing(
        &mut self,
        wiring: &Wiring,
        attempted: Attempted,
        end: Settle,
        next: usize,
    ) -> Result<(), Broken> {
        let place = self.place(None);
        let end = match end {
            Settle::Exhausted(limit) => End::Exhausted { limit },
            Settle::Failed => End::Failed { failure: self.left_failure(wiring, place) },
            _ => {
                let branch = branch_of(attempted);
                self.record_step(wiring, branch, None)?;
                ended_by(wiring, place, branch)
            }
        };
        let active_ms = self.active_ms();
        let finishing = Finishing { end: end.clone(), next, active_ms };
        self.core.record(Change::Finishing(Box::new(finishing)))?;
        // The last steps have a time of their own.
        self.clock = self.clock.map(|_| tokio::time::Instant::now());
        let next = wiring.name_of(next);
        self.core.publish_recorded(place, EventKind::Finishing { end, next });
        Ok(())
    }

    /// How long the turn has run, waiting and the last steps not counted.
    pub(super) fn active_ms(&self) -> u64 {
        let elapsed = self.clock.map_or(Duration::ZERO, |started| started.elapsed());
        self.core.session(|session| match session.cursor.finishing {
            Some(_) => session.active_ms,
            None => session.active_with(elapsed),
        })
    }

    fn conclusion(&mut self, wiring: &Wiring, attempted: Attempted, end: Settle) -> Conclusion {
        let place = self.place(None);
        let branch = branch_of(attempted);
        let done = matches!(attempted, Attempted::Done { .. });
        let kept = self.core.session(|session| session.cursor.finishing.clone());
        let (end, finally_failure, commits) = match end {
            Settle::Ended { .. } => (ended_by(wiring, place, branch), None, true),
            Settle::Failed => {
                let failure = self.left_failure(wiring, place);
                // A reducer that panics in the last steps does not change how the turn has ended,
                // where the log has the state as it was.
                match kept.filter(|_| self.core.journal.is_some()) {
                    Some(kept) => (kept.end, Some(failure), false),
                    None => (End::Failed { failure }, None, false),
                }
            }
            Settle::Exhausted(limit) => (End::Exhausted { limit }, None, false),
            Settle::Interrupted => (End::Interrupted, None, false),
            Settle::Waiting => {
                let until = self.core.session(Session::first_due);
                (End::Waiting { until }, None, false)
            }
            Settle::Stopped => (End::Stopped, None, false),
            Settle::Cancelled => (End::Cancelled, None, false),
            Settle::LeaseLost => return self.unrecorded(&Broken::LeaseLost),
            Settle::Kept { finally } => {
                let failure = self.left.failure.take();
                let failure = self.finally_failure(wiring, place, finally, failure);
                (kept.map_or_else(End::plain, |kept| kept.end), failure, done)
            }
        };
        if commits && let Err(broken) = self.record_step(wiring, branch, None) {
            return self.unrecorded(&broken);
        }
        Conclusion::Settle { end, finally_failure }
    }

    /// The failure that the last attempt has left.
    fn left_failure(&mut self, wiring: &Wiring, place: Place) -> Arc<Failure> {
        let failure = self.left.failure.take();
        self.failure(wiring, place, failure)
    }

    pub(super) fn failure(
        &self,
        wiring: &Wiring,
        place: Place,
        error: Option<StepError>,
    ) -> Arc<Failure> {
        let error = error.unwrap_or_else(|| StepError::fatal("the step failed"));
        let step = &wiring.nodes[place.step].name;
        // An attempt that was not begun is not counted.
        Arc::new(Failure::new(&error, step, place.position, place.attempt))
    }

    /// Nothing more can be recorded.
    pub(super) fn unrecorded(&self, broken: &Broken) -> Conclusion {
        let failure = self.failure(self.core.wiring(), self.place(None), Some(broken.to_error()));
        Conclusion::Unrecorded(failure)
    }

    fn finally_failure(
        &self,
        wiring: &Wiring,
        place: Place,
        finally: Finally,
        error: Option<StepError>,
    ) -> Option<Arc<Failure>> {
        let error = match finally {
            Finally::Well => return None,
            Finally::Failed => error,
            Finally::Asked => Some(StepError::of(
                FailureKind::AskInFinally,
                false,
                "a step that `finally` runs asked a question (ask before the end)".into(),
            )),
            Finally::Over(limit) => Some(StepError::of(
                FailureKind::FinallyBudget,
                false,
                format!("the steps that `finally` runs used up their own budget of {limit}"),
            )),
        };
        Some(self.failure(wiring, place, error))
    }

    /// Records a failed attempt that is repeated. Returns how long to wait before that.
    pub(super) fn record_retry(
        &mut self,
        wiring: &Wiring,
        item: Option<u32>,
        error: Option<StepError>,
    ) -> Result<Duration, Broken> {
        let place = self.place(item);
        let after = error.as_ref().and_then(StepError::retry_after).unwrap_or_default();
        let failure = self.failure(wiring, place, error);
        let retries = self.core.session(|session| session.retries(item));
        let retry = wiring.nodes[place.step].policy.retry;
        let delay = retry.map_or(Duration::ZERO, |retry| retry.delay(retries)).max(after);
        self.core.publish(Some(place), || EventKind::Retrying {
            failure: (*failure).clone(),
            after_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        });
        let retry_at = UtcMillis::now().after(delay);
        let tried = AttemptFailed { n: place.attempt, item, failure, retry_at };
        self.core.record(Change::Attempt(Box::new(tried)))?;
        Ok(delay)
    }

    /// Appends that an attempt failed, and waits before the next one; a stop, a cancel or the wall
    /// budget end the wait.
    async fn back_off(&mut self, wiring: &Wiring, delay: Duration) -> Option<Conclusion> {
        if let Some(conclusion) = self.write(Ok(()), When::Mode).await {
            return Some(conclusion);
        }
        let wall = self.wall_deadline(wiring);
        let out_of_time = async {
            match wall {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.core.stop.stopping().cancelled() => {}
            () = out_of_time => {}
        }
        None
    }
}

/// The end of a turn by this branch of its last step's route.
fn ended_by(wiring: &Wiring, place: Place, branch: Option<usize>) -> End {
    let signal = wiring.nodes[place.step].exit.signal(branch);
    End::Ended { by: signal.map(|(signals, signal)| (signals.into(), signal.into())) }
}

/// The branch that the route of a step took.
fn branch_of(attempted: Attempted) -> Option<usize> {
    match attempted {
        Attempted::Done { branch } => branch,
        _ => None,
    }
}
