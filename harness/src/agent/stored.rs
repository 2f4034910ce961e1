//! Sessions in a store: taking one up, giving it its input or its answers, going on with it.

use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::id::SessionId;
use crate::journal::{
    Broken, Journal, LetterBody, OnBusy, OpenError, Opening, Read, Valid, When, input_key, look,
    post_expired, read,
};
use crate::log::{
    Adopted, Entry, EntryKind, Fitted, HowEnded, HowSettled, Recovered, Resolved, RunStarted,
    Saved, Settled, check_value, fit,
};
use crate::run::{How, Kind, Launched, Outcome, RunError, Settlement, resolutions};
use crate::session::Session;
use crate::state::{State, encode};
use crate::step::{Answers, BoxFuture, Failure, FailureKind, StepError};
use crate::store::{Message, Phase, StoreError};

use super::input::{Base, Begun, Given, begin, queue};
use super::validate::{post, validate};
use super::{Agent, Stored};

/// A position that so many runs have taken over from ones that did not settle is given up.
const CRASHES: u32 = 5;

/// Starts a turn: of a new session, or of one that has ended.
pub(super) async fn run<C: Context, S: State>(
    agent: Agent<C, S>,
    input: S::Update,
    slots: C::Runtime,
    launched: Launched,
) -> Result<Outcome<S>, RunError> {
    let stored = agent.stored()?;
    let session = launched.session.clone();
    let named = launched.input_id.is_some() || launched.on_busy == OnBusy::Queue;
    let given = match named {
        true => {
            let id = launched.input_id.clone().unwrap_or_else(|| launched.run.to_string());
            let update = encode(&input).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
            check_value(&update).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
            Some(Given { key: input_key(&id), id, update })
        }
        false => None,
    };
    if !launched.withdraw && !named {
        refuse_while_asked(&agent, &stored, &session).await?;
    }
    let mut left = false;
    let mut opening = match stored.claim(&session, None, &launched).await {
        Err(Kind::Busy { .. }) if launched.on_busy == OnBusy::Queue => {
            let opening;
            (opening, left) = queue(&agent, &stored, &session, &launched, given.as_ref()).await?;
            opening
        }
        other => other?,
    };
    let asks = opening.saved.as_ref().is_some_and(|saved| saved.phase == Phase::Interrupted);
    let begun = begin(&agent, &stored, &mut opening, input, given.as_ref(), &launched).await;
    let begun = match begun {
        Ok(begun) => begun,
        Err(refused) => {
            if opening.release().await && asks {
                // Whoever has answered meanwhile was told that this run would see to it.
                let id = session.clone();
                if let Some(Err(error)) = look_after(agent, slots, launched).await {
                    tracing::warn!(session = %id, %error, "answers that came are not taken up");
                }
            }
            return Err(match refused {
                // The input is left: whoever ends this turn takes it as the next.
                Kind::PendingInterrupt { .. } | Kind::Unsettled { .. } if left => {
                    Kind::Queued { session }.into()
                }
                refused => refused.into(),
            });
        }
    };
    match begun {
        Begun::Settled(saved, state) => {
            let settled = agent.at_rest(*saved, state, &launched);
            if opening.release().await && asks {
                // Whoever has answered meanwhile was told that this run would see to it.
                return look_after(agent, slots, launched).await.unwrap_or(Ok(settled));
            }
            Ok(settled)
        }
        Begun::GoesOn(taken) => {
            let nothing = Gave { letters: Vec::new(), recorded: false };
            agent.go_on(&stored, opening, *taken, nothing, slots, launched).await
        }
        Begun::Turn { entries, session, base, withdrawn } => {
            let journal = match base {
                Base::Kept(saved) => Journal::new(opening, *saved, stored.durability),
                Base::New(opened) => Journal::open(opening, *opened, stored.durability)
                    .map_err(|broken| agent.cut_off(broken))?,
            };
            let wrote = journal.write(entries, When::Kept, Vec::new()).await;
            if let Err(broken) = wrote {
                journal.release().await;
                return Err(agent.cut_off(broken).into());
            }
            if let Some(given) = &given {
                // From here on the key is taken, also by an input that came first.
                let letter = LetterBody::input(&given.id, given.update.clone());
                if let Err(error) = stored.store.send(&session.id, &[letter]).await {
                    tracing::warn!(session = %session.id, %error, "the input's id was not kept");
                }
            }
            let journal = Some(Box::new(journal));
            let mut begun = agent.driver(launched, *session, None, None, journal, slots);
            if withdrawn {
                begun.driver.look_back();
            }
            begun.run().await
        }
    }
}

/// A session that waits for answers is refused without being held, so that whoever answers
/// meanwhile is not told that it is.
async fn refuse_while_asked<C: Context, S: State>(
    agent: &Agent<C, S>,
    stored: &Stored,
    session: &SessionId,
) -> Result<(), Kind> {
    if stored.phase(session).await? != Some(Phase::Interrupted) {
        return Ok(());
    }
    match read(&*stored.store, session).await.map_err(|error| open_error(session, error))? {
        Some(found) if found.saved.phase == Phase::Interrupted => {
            agent.owns(session, &found.saved)?;
            Err(pending(session, &found.saved))
        }
        _ => Ok(()),
    }
}

pub(super) fn pending(session: &SessionId, saved: &Saved) -> Kind {
    let open = saved.open().map(|asked| asked.interrupt.id.to_string()).collect();
    Kind::PendingInterrupt { session: session.clone(), open }
}

/// Goes on with a session, with answers or without.
pub(super) async fn resume<C: Context, S: State>(
    agent: Agent<C, S>,
    answers: Answers,
    slots: C::Runtime,
    launched: Launched,
) -> Result<Outcome<S>, RunError> {
    let recorded = !answers.list.is_empty();
    take_up(agent, answers, recorded, slots, launched).await
}

/// Goes on with what came while a session that is at rest was held. Whether answers were `recorded`
/// before decides what a session means that others hold or have ended since.
fn look_again<C: Context, S: State>(
    agent: Agent<C, S>,
    recorded: bool,
    slots: C::Runtime,
    launched: Launched,
) -> BoxFuture<Result<Outcome<S>, RunError>> {
    Box::pin(take_up(agent, Answers::none(), recorded, slots, launched))
}

/// The same for a run that goes on with nothing of its own; `None` if others see to it.
async fn look_after<C: Context, S: State>(
    agent: Agent<C, S>,
    slots: C::Runtime,
    mut launched: Launched,
) -> Option<Result<Outcome<S>, RunError>> {
    launched.on_busy = OnBusy::Reject;
    let looked = look_again(agent, true, slots, launched).await;
    (!looked.as_ref().is_err_and(RunError::is_busy)).then_some(looked)
}

/// Goes on with a session. Answers were `recorded` if any are given here, or were before.
async fn take_up<C: Context, S: State>(
    agent: Agent<C, S>,
    answers: Answers,
    recorded: bool,
    slots: C::Runtime,
    launched: Launched,
) -> Result<Outcome<S>, RunError> {
    let stored = agent.stored()?;
    let session = launched.session.clone();
    let given = !answers.list.is_empty();
    let found = read(&*stored.store, &session).await.map_err(|e| open_error(&session, e))?;
    let Some(found) = found else { return Err(Kind::NotFound(session).into()) };
    agent.owns(&session, &found.saved)?;
    let fitted = agent.fits(&stored, &found.saved)?;
    post_expired(&*stored.store, &session, &found.saved).await.map_err(Kind::Store)?;
    let wiring = &agent.inner.harness.graph().wiring;
    let Valid { letters, consumed } =
        validate(&*stored.store, &session, &found.saved, wiring, answers).await?;
    if !letters.is_empty() {
        post(&*stored.store, &session, &letters).await?;
    }
    let mut opening = match stored.claim(&session, Some(found), &launched).await {
        Err(Kind::Busy { session, .. }) => {
            return Err(Kind::Busy { session, answers_recorded: recorded }.into());
        }
        other => other?,
    };
    let Some(saved) = opening.saved.take() else {
        opening.release().await;
        return Err(Kind::NotFound(session).into());
    };
    let fitted = match opening.known {
        true => Ok(fitted),
        false => agent.owns(&session, &saved).and_then(|()| agent.fits(&stored, &saved)),
    };
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(refused) => {
            opening.release().await;
            return Err(refused.into());
        }
    };
    let over = match saved.phase {
        Phase::Ended if !recorded => Some(Err(Kind::NotWaiting(session))),
        Phase::Waiting => Some(Err(Kind::Waiting(session))),
        Phase::Running => None,
        // All that was given was taken before, by a run that has settled since.
        _ if given && consumed && letters.is_empty() => Some(Ok(())),
        Phase::Ended => Some(Ok(())),
        _ => None,
    };
    match over {
        Some(Err(refused)) => {
            opening.release().await;
            Err(refused.into())
        }
        Some(Ok(())) => {
            if opening.release().await && saved.phase == Phase::Interrupted {
                // Whoever has answered meanwhile was told that this run would see to it.
                return look_again(agent, recorded, slots, launched).await;
            }
            Ok(agent.at_rest(saved, fitted.state, &launched))
        }
        None => {
            let taken = TakenUp { saved, fitted };
            let gave = Gave { letters, recorded };
            agent.go_on(&stored, opening, taken, gave, slots, launched).await
        }
    }
}

/// A session that was taken up, and fits.
pub(super) struct TakenUp<S> {
    pub(super) saved: Saved,
    pub(super) fitted: Fitted<S>,
}

/// What the caller of a session gave to it.
struct Gave {
    /// Posted by this call, so they are durable.
    letters: Vec<Message>,
    /// Whether answers were given, now or before.
    recorded: bool,
}

pub(super) fn adoption(adopted: Option<Adopted>) -> Vec<Entry> {
    let kind = adopted.map(|adopted| EntryKind::Adopted(Box::new(adopted)));
    kind.into_iter().map(|kind| Entry { at: UtcMillis::now(), spent: None, kind }).collect()
}

pub(super) fn open_error(session: &SessionId, error: OpenError) -> Kind {
    match error {
        OpenError::Store(StoreError::Busy { .. }) => {
            Kind::Busy { session: session.clone(), answers_recorded: false }
        }
        OpenError::Store(error) => Kind::Store(error),
        OpenError::Replay(source) => Kind::Replay { session: session.clone(), source },
    }
}

impl Stored {
    /// Where in its life a session is; `None` if there is none.
    pub(super) async fn phase(&self, session: &SessionId) -> Result<Option<Phase>, Kind> {
        let page = look(&*self.store, session).await.map_err(Kind::Store)?;
        Ok(page.map(|page| page.summary.phase))
    }

    pub(super) async fn claim(
        &self,
        session: &SessionId,
        known: Option<Read>,
        launched: &Launched,
    ) -> Result<Opening, Kind> {
        let run = Arc::new(launched.brakes.clone());
        Opening::claim(&self.store, session, known, self.ttl, launched.on_busy, run)
            .await
            .map_err(|error| open_error(session, error))
    }
}

impl<C: Context, S: State> Agent<C, S> {
    fn stored(&self) -> Result<Stored, Kind> {
        // Only agents with a store come here.
        self.inner.stored.clone().ok_or_else(|| Kind::Cut("the agent has no store".to_owned()))
    }

    pub(super) fn owns(&self, session: &SessionId, saved: &Saved) -> Result<(), Kind> {
        if saved.agent == *self.id() {
            return Ok(());
        }
        let (session, expected) = (session.clone(), self.id().clone());
        Err(Kind::WrongAgent { session, expected, found: saved.agent.clone() })
    }

    /// The session's state, if this loop can go on with it.
    pub(super) fn fits(&self, stored: &Stored, saved: &Saved) -> Result<Fitted<S>, Kind> {
        let lineage = self.lineage();
        Ok(fit::<S>(saved, &lineage.successor(stored.fit))?)
    }

    fn cut_off(&self, broken: Broken) -> Kind {
        match broken {
            Broken::Store(error) => Kind::NotWritten(error),
            other => Kind::Cut(other.to_error().to_string()),
        }
    }

    /// The outcome of a session that nothing is done to.
    fn at_rest(&self, saved: Saved, state: S, launched: &Launched) -> Outcome<S> {
        let wiring = &self.inner.harness.graph().wiring;
        let id = launched.session.clone();
        let how = saved.settled.as_ref().map_or(How::Cancelled, |how| How::restore(how, wiring));
        let session = Session::restore(id.clone(), &saved, state.clone(), wiring)
            .unwrap_or_else(|| Session::new(id, state, wiring));
        let run = saved.run.unwrap_or_else(|| launched.run.clone());
        let settlement = Settlement { session, how, lost: false, run, home: None, durable: true };
        settlement.into_outcome(&launched.brakes, || Arc::new(self.clone()))
    }

    /// Goes on where the session stands, with what letters say became of its questions.
    async fn go_on(
        self,
        stored: &Stored,
        opening: Opening,
        taken: TakenUp<S>,
        gave: Gave,
        slots: C::Runtime,
        launched: Launched,
    ) -> Result<Outcome<S>, RunError> {
        let TakenUp { saved, fitted: Fitted { state, adopted } } = taken;
        let wiring = &self.inner.harness.graph().wiring;
        let entry = |kind| Entry { at: UtcMillis::now(), spent: None, kind };
        let mut resolved: Vec<Resolved> = resolutions(opening.letters.clone());
        resolved.retain(|resolved| saved.open().any(|asked| asked.interrupt.id == resolved.id));
        let still_open = saved.open().count() > resolved.len();
        let crashed = saved.phase == Phase::Running;
        if still_open && resolved.is_empty() && !crashed {
            // Whoever has answered meanwhile was told that this run would see to it.
            if opening.release().await {
                return look_again(self, gave.recorded, slots, launched).await;
            }
            return Ok(self.at_rest(saved, state, &launched));
        }
        let mut entries = adoption(adopted);
        if crashed {
            entries.push(entry(EntryKind::Recovered(Recovered { run: launched.run.clone() })));
        }
        let run = RunStarted::resumed(launched.run.clone()).traced(launched.trace.clone());
        entries.push(entry(EntryKind::RunStarted(Box::new(run))));
        let mut answered = Vec::new();
        for resolved in resolved {
            answered.push((resolved.id.clone(), resolved.resolution.by()));
            entries.push(entry(EntryKind::Resolved(Box::new(resolved))));
        }
        let given_up = crashed && saved.recovered + 1 >= CRASHES;
        if given_up {
            let message = format!(
                "{CRASHES} runs in a row ended without settling at this step (see what ends the \
                 process there; resume the session to try again)"
            );
            let error = StepError::of(FailureKind::CrashLoop, false, message);
            let cursor = &saved.cursor;
            let failure = Failure::new(&error, &cursor.step, cursor.position, cursor.attempt);
            let failure = Box::new(failure);
            // What the last steps of a turn do does not change how it has ended.
            let (ending, finally_failure) = match &cursor.finishing {
                Some(finishing) => (finishing.ending.clone(), Some(failure)),
                None => (HowEnded::Failed { failure }, None),
            };
            let settled = Settled {
                how: HowSettled::Turn(ending),
                finally_failure,
                active_ms: saved.active_ms,
                attempt: saved.cursor.attempt,
            };
            entries.push(entry(EntryKind::Settled(Box::new(settled))));
        }
        // A step behind an answered question may act on it at once, so the answer must not be lost.
        // What was posted here is durable, and whoever finds the session without these entries
        // finds the same answer among its letters. They are flushed before an effect acts, like
        // everything before it. A letter that somebody else has posted may not be durable yet.
        let is_posted =
            |id| gave.letters.iter().any(|letter| letter.interrupt.as_ref() == Some(id));
        let durably = given_up || answered.iter().any(|(id, _)| !is_posted(id));
        let journal = Journal::new(opening, saved, stored.durability);
        let when = if durably { When::Now } else { When::Kept };
        if let Err(broken) = journal.write(entries, when, Vec::new()).await {
            journal.release().await;
            return Err(self.cut_off(broken).into());
        }
        if given_up {
            let now = journal.saved(Saved::clone).await;
            journal.release().await;
            return Ok(self.at_rest(now, state, &launched));
        }
        let id = launched.session.clone();
        let session = journal.saved(|now| Session::restore(id, now, state, wiring)).await;
        let session = session
            .ok_or_else(|| Kind::Cut("the session rests at a step the loop lacks".to_owned()))?;
        let journal = Some(Box::new(journal));
        let begun = self.driver(launched, session, None, Some(answered), journal, slots);
        begun.run().await
    }
}
