//! Resuming a stored session, with answers or without.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::compat::Compatible;
use crate::context::Context;
use crate::id::InterruptId;
use crate::inbox::{Checked, check_answers, resolutions, send_all, send_expired, unfit};
use crate::journal::{Read, When, read};
use crate::run::{Answered, Begin, Kind, OnBusy, Outcome, RunError};
use crate::session::{Change, End, Recorded, Recovered, Resolved, RunStarted, Session, Settled};
use crate::state::State;
use crate::step::{Answers, Failure, FailureKind, StepError};
use crate::store::{Message, Phase, Released};

use super::claimed::Claimed;
use super::refuse::read_error;
use super::{Entered, Taken, Taker};

/// A position at which so many runs in a row did not settle is given up.
const CRASHES: u32 = 5;

/// What the caller of a session has given to it.
pub(super) struct Given {
    /// Sent by this call, so they are durable.
    pub(super) messages: Vec<Message>,
    /// Whether answers were given, now or before.
    pub(super) recorded: bool,
}

/// Resumes a session, with answers or without.
pub(crate) async fn resume<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    answers: Answers,
) -> Result<Outcome<S>, RunError> {
    let recorded = !answers.list.is_empty();
    // A live run keeps no room for how its session was recovered.
    let taken = Box::pin(recover(taker, answers, recorded)).await?;
    Ok(taken.outcome().await)
}

/// Applies what came while a session at rest was held. Whether answers were `recorded` before
/// decides what it means that another run holds the session or has ended it since.
pub(super) fn look_again<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    recorded: bool,
) -> Pin<Box<dyn Future<Output = Result<Taken<C, S>, RunError>> + Send>> {
    Box::pin(recover(taker, Answers::none(), recorded))
}

/// The same for a run that has nothing of its own to do; `None` if another run holds the session.
pub(super) async fn look_after<C: Context, S: State>(
    mut taker: Box<Taker<C, S>>,
) -> Option<Result<Taken<C, S>, RunError>> {
    taker.launched.on_busy = OnBusy::Reject;
    let looked = look_again(taker, true).await;
    (!looked.as_ref().is_err_and(RunError::is_busy)).then_some(looked)
}

/// Recovers a session. Answers were `recorded` if any are given here, or were before.
async fn recover<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    answers: Answers,
    recorded: bool,
) -> Result<Taken<C, S>, RunError> {
    let id = taker.session().clone();
    let given = !answers.list.is_empty();
    let found = read(taker.store(), &id).await.map_err(|error| read_error(&id, error))?;
    let Some(found) = found else { return Err(Kind::NotFound(id).into()) };
    let compatible = taker.check(&found.recorded)?;
    let Checked { messages, repeated } = taker.send_answers(&found, answers).await?;
    let mut claimed = match taker.claim(Some(found)).await {
        Err(Kind::Busy { session, until, .. }) => {
            return Err(Kind::Busy { session, until, answers_recorded: recorded }.into());
        }
        other => other?,
    };
    let Some(now) = claimed.recorded.take() else {
        claimed.give_back().await;
        return Err(Kind::NotFound(id).into());
    };
    let compatible = match claimed.known {
        true => Ok(compatible),
        false => taker.check(&now),
    };
    let compatible = match compatible {
        Ok(compatible) => compatible,
        Err(refused) => {
            // A program that fits may apply them.
            claimed.give_back().await;
            return Err(refused.into());
        }
    };
    let phase = now.session.phase;
    let over = match phase {
        Phase::Ended if !recorded => Some(Err(Kind::NotWaiting(id))),
        Phase::Running => None,
        // Everything that was given was applied before, by a run that has settled since.
        _ if given && repeated && messages.is_empty() => Some(Ok(())),
        Phase::Ended => Some(Ok(())),
        _ => None,
    };
    match over {
        Some(Err(refused)) => {
            claimed.give_back().await;
            Err(refused.into())
        }
        Some(Ok(())) => {
            let more = claimed.give_back().await;
            taker.left(more, &now.session, compatible.state, recorded).await
        }
        None => taker.enter(claimed, now, compatible, Given { messages, recorded }).await,
    }
}

impl<C: Context, S: State> Taker<C, S> {
    /// Sends answers, once all of them are judged; expiries that are due go first.
    async fn send_answers(&self, found: &Read, answers: Answers) -> Result<Checked, Kind> {
        let (store, id, session) = (self.store(), self.session(), &found.recorded.session);
        send_expired(store, id, session).await.map_err(Kind::Store)?;
        let fits = |asked: &_, value: &_| unfit(self.wiring(), asked, value);
        let checked = check_answers(store, id, session, fits, answers).await;
        let checked = checked.map_err(|error| Kind::not_given(id, error))?;
        if !checked.messages.is_empty() {
            let sent = send_all(store, id, &checked.messages).await;
            sent.map_err(|error| Kind::not_given(id, error))?;
        }
        Ok(checked)
    }

    pub(super) async fn claim(&self, known: Option<Read>) -> Result<Claimed, Kind> {
        let run = Arc::new(self.launched.stop.clone());
        let (store, ttl) = (&self.storage.store, self.storage.ttl);
        Claimed::claim(store, self.session(), known, ttl, self.launched.on_busy, run)
            .await
            .map_err(|error| read_error(self.session(), error))
    }

    /// Releases a session that nothing is done to, whatever its messages say.
    pub(super) async fn leave(
        self: Box<Self>,
        claimed: Claimed,
        session: &Session,
        state: S,
        recorded: bool,
    ) -> Result<Taken<C, S>, RunError> {
        let more = claimed.release().await;
        self.left(more, session, state, recorded).await
    }

    /// What is left to do for a session that was released.
    pub(super) async fn left(
        self: Box<Self>,
        released: Released,
        session: &Session,
        state: S,
        recorded: bool,
    ) -> Result<Taken<C, S>, RunError> {
        if released == Released::MoreMessages && session.phase == Phase::Interrupted {
            // A process that has answered relies on a run to apply the answer.
            return look_again(self, recorded).await;
        }
        Ok(self.at_rest(session, state))
    }

    /// Enters a session where it stands, with the answers that its inbox has.
    pub(super) async fn enter(
        self: Box<Self>,
        claimed: Claimed,
        recorded: Recorded,
        compatible: Compatible<S>,
        given: Given,
    ) -> Result<Taken<C, S>, RunError> {
        let Recorded { session, state: stored } = recorded;
        let Compatible { state, adopted } = compatible;
        let mut resolved: Vec<Resolved> = resolutions(claimed.unread.clone());
        let open: HashSet<&InterruptId> =
            session.open_interrupts().map(|interrupt| &interrupt.id).collect();
        resolved.retain(|resolved| open.contains(&resolved.id));
        let crashed = session.phase == Phase::Running;
        // One that was stopped, say, settles as interrupted first.
        let waits = match session.phase {
            Phase::Interrupted => !open.is_empty(),
            Phase::Waiting => true,
            _ => false,
        };
        // A run looks at the children itself.
        let calls = session.awaited_children().next().is_some();
        if waits && !calls && resolved.is_empty() && session.is_idle(UtcMillis::now()) {
            return self.leave(claimed, &session, state, given.recorded).await;
        }
        let mut changes: Vec<Change> =
            adopted.into_iter().map(|adopted| Change::Adopted(Box::new(adopted))).collect();
        if crashed {
            let (run, former) = (self.launched.run.clone(), claimed.former);
            changes.push(Change::Recovered(Recovered { run, former }));
        }
        let run = RunStarted::resumed(self.launched.run.clone());
        changes.push(Change::RunStarted(Box::new(run)));
        let begin = Begin::resuming(&session, Answered::of(&session, &resolved));
        // A step behind an answer may act on it at once, so the answer must not be lost. One that was
        // sent here is durable, and a run that finds the session without these entries finds the
        // answer in the inbox. One that another process has sent may not be durable yet.
        let sent: HashSet<_> =
            given.messages.iter().filter_map(|it| it.interrupt.as_ref()).collect();
        let durably = resolved.iter().any(|it| !sent.contains(&it.id));
        changes.extend(resolved.into_iter().map(|it| Change::Resolved(Box::new(it))));
        let given_up = crashed && session.recovered + 1 >= CRASHES;
        if given_up {
            changes.push(Change::Settled(Box::new(crash_loop(&session))));
        }
        let (guard, start) = claimed.into_start(stored, session.inbox);
        let when = if durably || given_up { When::Now } else { When::Kept };
        let (opened, input) = (None, None);
        self.record_begin(Entered {
            guard,
            start,
            session,
            opened,
            changes,
            state,
            when,
            begin,
            input,
        })
        .await
    }
}

/// The end of a turn whose step ends its process again and again.
fn crash_loop(session: &Session) -> Settled {
    let message = format!(
        "{CRASHES} runs in a row ended without settling at this step (find what ends the process \
         there, and resume the session)"
    );
    let error = StepError::of(FailureKind::CrashLoop, false, message);
    let cursor = &session.cursor;
    let attempts = cursor.attempt.saturating_add(1);
    let failure = Arc::new(Failure::new(&error, &cursor.step, cursor.position, attempts));
    // What the last steps of a turn do does not change how it has ended.
    let (end, finally_failure) = match &cursor.finishing {
        Some(kept) => (kept.end.clone(), Some(failure)),
        None => (End::Failed { failure }, None),
    };
    let (active_ms, notify) = (session.active_ms, session.parent.is_some());
    Settled { end, finally_failure, active_ms, attempt: 0, notify }
}
