//! Does what was decided: commits, questions, back-off.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::graph::Wiring;
use crate::journal::Broken;
use crate::log::{AttemptFailed, EntryKind};
use crate::observe::EventKind;
use crate::session::{Commit, Ending, Finishing, Question};
use crate::state::State;
use crate::step::{Failure, FailureKind, Interrupt, StepError};

use super::advance::Left;
use super::driver::Driver;
use super::settle::How;
use super::transition::{End, Finally, Happened, Transition};

impl<C: Context, S: State> Driver<C, S> {
    /// Does what was decided. Says how the run settles, once it does.
    pub(super) async fn perform(
        &mut self,
        wiring: &Wiring,
        happened: Happened,
        next: Transition,
        left: Left,
    ) -> Option<How> {
        let branch = match happened {
            Happened::Done { branch } => branch,
            _ => None,
        };
        match next {
            Transition::Enter { step } => {
                self.commit(wiring, Commit::Done { branch, next: Some(step) }).await
            }
            Transition::Retry => self.back_off(wiring, left).await,
            Transition::Divert { step } => {
                let failure = self.failure(wiring, left.failure);
                self.commit(wiring, Commit::Diverted { failure, next: step }).await
            }
            Transition::Wait => {
                let questions = self.questions(wiring, left);
                let cut = self.commit(wiring, Commit::Asked { questions }).await;
                Some(cut.unwrap_or(How::Interrupted))
            }
            Transition::Finish { end, step } => {
                let ending = match end {
                    End::Exhausted(limit) => Ending::Exhausted(limit),
                    End::Failed => Ending::Failed(self.failure(wiring, left.failure)),
                    _ => self.ended(wiring, branch).await,
                };
                self.account_time();
                if !matches!(ending, Ending::Ended { .. }) {
                    let memory = self.core.desk().memory.split_position();
                    self.session.park(memory);
                }
                let finishing = Box::new(Finishing { ending, since: self.session.cursor.steps });
                self.commit(wiring, Commit::Finishing { finishing, next: step }).await
            }
            Transition::Settle(end) => Some(match end {
                End::Ended { .. } => How::Turn(self.ended(wiring, branch).await, None),
                End::Failed => {
                    let failure = self.failure(wiring, left.failure);
                    // What a reducer does in the last steps does not change how the turn has
                    // ended, where the log has the state as it was.
                    let finishing = &mut self.session.cursor.finishing;
                    match finishing.take_if(|_| self.durable.is_some()) {
                        Some(kept) => How::Turn(kept.ending, Some(failure)),
                        None => How::Turn(Ending::Failed(failure), None),
                    }
                }
                End::Exhausted(limit) => How::Turn(Ending::Exhausted(limit), None),
                End::Stopped => How::Stopped,
                End::Cancelled => How::Cancelled,
                End::Cut => self.cut(&Broken::LeaseLost),
                End::Kept { finally } => {
                    let failure = self.finally_failure(wiring, finally, left);
                    if matches!(happened, Happened::Done { .. }) {
                        self.commit(wiring, Commit::Done { branch, next: None }).await;
                    }
                    let kept = self.session.cursor.finishing.take();
                    let ending = kept.map(|kept| kept.ending).unwrap_or_else(Ending::plain);
                    How::Turn(ending, failure)
                }
            }),
        }
    }

    /// Records that a step is done and the loop goes on, which nearly every commit does.
    pub(super) fn commit_done(&mut self, wiring: &Wiring, branch: Option<usize>, next: usize) {
        if self.silent && self.session.cursor.failure.is_none() {
            self.session.done(Some(next));
            self.core.leave();
        } else {
            self.commit_now(wiring, Commit::Done { branch, next: Some(next) });
        }
    }

    /// Records one step's result in this process, then tells of it.
    pub(super) fn commit_now(&mut self, wiring: &Wiring, commit: Commit) {
        let place = self.session.cursor.place();
        let silent = self.core.fanout.is_silent();
        let step = self.session.cursor.step;
        let events = if silent { Vec::new() } else { commit_events(wiring, step, &commit) };
        self.record_now(commit);
        for event in events {
            self.core.publish(Some(place), || event);
        }
    }

    /// Moves the session on by one step's result.
    pub(super) fn record_now(&mut self, commit: Commit) {
        let left_memory = !matches!(commit, Commit::Asked { .. });
        let had_failure = self.session.cursor.failure.is_some();
        self.session.record(commit);
        if left_memory {
            self.core.leave();
        }
        if had_failure || self.session.cursor.failure.is_some() {
            self.core.set_failure(self.session.cursor.failure.clone());
        }
    }

    /// Commits the last step of a turn.
    pub(super) async fn ended(&mut self, wiring: &Wiring, branch: Option<usize>) -> Ending {
        let exit = &wiring.nodes[self.session.cursor.step].exit;
        // What is one with the settling cannot fail before it.
        self.commit(wiring, Commit::Done { branch, next: None }).await;
        let (signals, signal) = exit.signal(branch).unzip();
        Ending::Ended { signals, signal }
    }

    fn failure(&self, wiring: &Wiring, error: Option<StepError>) -> Arc<Failure> {
        let cursor = &self.session.cursor;
        let error = error.unwrap_or_else(|| StepError::fatal("the step failed"));
        let step = &wiring.nodes[cursor.step].name;
        Arc::new(Failure::new(&error, step, cursor.position, cursor.attempt))
    }

    fn finally_failure(
        &self,
        wiring: &Wiring,
        finally: Finally,
        left: Left,
    ) -> Option<Arc<Failure>> {
        let error = match finally {
            Finally::Well => return None,
            Finally::Failed => left.failure,
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
        Some(self.failure(wiring, error))
    }

    /// Turns what a step asked into questions that wait.
    fn questions(&mut self, wiring: &Wiring, left: Left) -> Vec<Question> {
        let (step, position) = (self.session.cursor.step, self.session.cursor.position);
        let asked_at = UtcMillis::now();
        let inline = left.asked.into_iter().map(|(key, asked)| (Some(key), asked));
        let gate = left.gate.map(|asked| (None, asked));
        inline
            .chain(gate)
            .map(|(key, asked)| Question {
                interrupt: Interrupt {
                    id: self.session.interrupt_id(key.as_deref(), &asked),
                    name: asked.name.to_owned(),
                    question: asked.question,
                    answer_schema: asked.answer_schema,
                    step: wiring.nodes[step].name.to_string(),
                    position,
                    key,
                    asked_at,
                    expires_at: asked.expires.map(|after| asked_at.after(after)),
                },
                check: asked.check,
                answer: None,
                expired: false,
            })
            .collect()
    }

    /// Waits before the next attempt; a stop, a cancel or the wall budget end the wait.
    async fn back_off(&mut self, wiring: &Wiring, left: Left) -> Option<How> {
        let after = left.failure.as_ref().and_then(StepError::retry_after).unwrap_or_default();
        let failure = self.failure(wiring, left.failure);
        let cursor = &mut self.session.cursor;
        let retry = wiring.nodes[cursor.step].policy.retry;
        let delay = retry.map_or(Duration::ZERO, |retry| retry.delay(cursor.retries)).max(after);
        cursor.retries += 1;
        let place = cursor.place();
        self.core.publish(Some(place), || EventKind::Retrying {
            failure: (*failure).clone(),
            after_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        });
        if self.durable.is_some() {
            let cursor = &self.session.cursor;
            let tried = AttemptFailed {
                n: cursor.attempt,
                failure: (*failure).clone(),
                retry_at: UtcMillis::now().after(delay),
            };
            let cut = self.write_entry(EntryKind::Attempt(Box::new(tried))).await;
            if cut.is_some() {
                return cut;
            }
        }
        let wall = self.wall_deadline();
        let out_of_time = async {
            match wall {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.core.brakes.stopping().cancelled() => {}
            () = out_of_time => {}
        }
        None
    }
}

pub(super) fn commit_events(wiring: &Wiring, step: usize, commit: &Commit) -> Vec<EventKind> {
    let name = |step: usize| Arc::clone(&wiring.nodes[step].name);
    match commit {
        Commit::Done { branch, next } => vec![EventKind::Committed {
            signal: wiring.nodes[step].exit.signal(*branch).map(|(_, signal)| signal),
            next: next.map(name),
        }],
        Commit::Asked { questions } => questions
            .iter()
            .map(|question| EventKind::Asked { interrupt: question.interrupt.clone() })
            .collect(),
        Commit::Diverted { failure, next } => {
            vec![EventKind::Diverted { failure: (**failure).clone(), next: name(*next) }]
        }
        Commit::Finishing { finishing, next } => {
            vec![EventKind::Finishing { outcome: finishing.ending.describe(), next: name(*next) }]
        }
    }
}
