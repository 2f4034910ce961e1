//! Sessions in a store: taking one up, giving it its input or its answers, going on with it.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::id::{Seq, SessionId};
use crate::journal::{
    Broken, Journal, LetterBody, OnBusy, OpenError, Opening, Valid, When, input_key, note_taken,
    post_expired, read, taken_key,
};
use crate::log::{
    Adopted, Entry, EntryKind, FORMAT, Fitted, HowEnded, HowSettled, Opened, Recovered, Resolved,
    RunStarted, Salt, Saved, Settled, fit,
};
use crate::run::{How, Kind, Launched, Outcome, RunError, Settlement, reduce, resolutions, words};
use crate::session::Session;
use crate::state::{State, encode};
use crate::step::{Answers, Failure, FailureKind, StepError};
use crate::store::{From, Mail, Phase, Posted, StoreError};

use super::validate::{post, validate};
use super::{Agent, Stored};

/// A position that so many runs have taken over from ones that did not settle is given up.
const CRASHES: u32 = 5;

/// How long to wait before looking again for a session that is about to begin.
const BEGINNING: Duration = Duration::from_millis(5);

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
            Some(Given { key: input_key(&id), id, update })
        }
        false => None,
    };
    if !launched.withdraw && !named {
        refuse_while_asked(&agent, &stored, &session).await?;
    }
    let mut opening = match stored.claim(&session, &launched).await {
        Err(Kind::Busy { .. }) if launched.on_busy == OnBusy::Queue => {
            queue(&agent, &stored, &session, &launched, given.as_ref()).await?
        }
        other => other?,
    };
    let begun = begin(&agent, &stored, &mut opening, input, given.as_ref(), &launched).await;
    let begun = match begun {
        Ok(begun) => begun,
        Err(refused) => {
            opening.release().await;
            return Err(refused.into());
        }
    };
    match begun {
        Begun::Settled(saved, state) => {
            opening.release().await;
            Ok(agent.at_rest(*saved, state, &launched))
        }
        Begun::GoesOn(taken) => agent.go_on(&stored, opening, *taken, slots, launched).await,
        Begun::Turn { entries, session, base } => {
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
                if let Err(error) = stored.store.post(&session.id, &[letter]).await {
                    tracing::warn!(session = %session.id, %error, "the input's id was not kept");
                }
            }
            let journal = Some(Box::new(journal));
            let begun = agent.driver(launched, *session, None, None, journal, slots);
            Ok(begun.run().await)
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
    let (nothing, none) = (From::Seq(Seq(u64::MAX)), Mail(u64::MAX));
    let page = stored.store.read(session, nothing, none, 0).await.map_err(Kind::Store)?;
    if page.is_none_or(|page| page.facts.phase != Phase::Interrupted) {
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

fn pending(session: &SessionId, saved: &Saved) -> Kind {
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
    let stored = agent.stored()?;
    let session = launched.session.clone();
    let given = !answers.list.is_empty();
    let found = read(&*stored.store, &session).await.map_err(|e| open_error(&session, e))?;
    let Some(found) = found else { return Err(Kind::NotFound(session).into()) };
    agent.owns(&session, &found.saved)?;
    agent.fits(&stored, &found.saved)?;
    post_expired(&*stored.store, &session, &found.saved).await.map_err(Kind::Store)?;
    let wiring = &agent.inner.harness.graph().wiring;
    let Valid { letters, consumed } =
        validate(&*stored.store, &session, &found.saved, wiring, answers).await?;
    if !letters.is_empty() {
        post(&*stored.store, &session, &letters).await?;
    }
    let mut opening = match stored.claim(&session, &launched).await {
        Err(Kind::Busy { session, .. }) => {
            return Err(Kind::Busy { session, answers_recorded: given }.into());
        }
        other => other?,
    };
    let Some(saved) = opening.saved.take() else {
        opening.release().await;
        return Err(Kind::NotFound(session).into());
    };
    let fitted = match agent.fits(&stored, &saved) {
        Ok(fitted) => fitted,
        Err(refused) => {
            opening.release().await;
            return Err(refused.into());
        }
    };
    let over = match saved.phase {
        Phase::Ended if !given => Some(Err(Kind::NotWaiting(session))),
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
            opening.release().await;
            Ok(agent.at_rest(saved, fitted.state, &launched))
        }
        None => {
            let taken = TakenUp { saved, fitted };
            agent.go_on(&stored, opening, taken, slots, launched).await
        }
    }
}

/// An input that has a name.
struct Given {
    id: String,
    key: String,
    update: Value,
}

/// A session that was taken up, and fits.
struct TakenUp<S> {
    saved: Saved,
    fitted: Fitted<S>,
}

/// What comes of a run's input.
enum Begun<S> {
    /// It was taken before: this is what came of it.
    Settled(Box<Saved>, S),
    /// It was taken before, by a run that crashed.
    GoesOn(Box<TakenUp<S>>),
    /// A turn begins.
    Turn { entries: Vec<Entry>, session: Box<Session<S>>, base: Base },
}

/// What a turn begins behind.
enum Base {
    /// The first entry of a new session.
    New(Box<Entry>),
    /// What the log adds up to.
    Kept(Box<Saved>),
}

/// Decides what a run's input means to the session as it is.
async fn begin<C: Context, S: State>(
    agent: &Agent<C, S>,
    stored: &Stored,
    opening: &mut Opening,
    input: S::Update,
    given: Option<&Given>,
    launched: &Launched,
) -> Result<Begun<S>, Kind> {
    let id = &launched.session;
    let graph = agent.inner.harness.graph();
    let wiring = &graph.wiring;
    let start = Arc::clone(&wiring.nodes[wiring.start].name);
    let key = given.map(|given| given.key.clone());
    let entry = |kind| Entry { at: UtcMillis::now(), spent: None, kind };
    let turn = |ops| {
        let trace = launched.trace.clone();
        let run = RunStarted::turn(launched.run.clone(), start, ops, key, Mail(0)).traced(trace);
        entry(EntryKind::RunStarted(Box::new(run)))
    };
    let Some(saved) = opening.saved.take() else {
        let mut state = catch_unwind(S::default)
            .map_err(|panic| Kind::InputPanicked(format!("its `Default`: {}", words(&*panic))))?;
        let first = encode(&state).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
        let ops = reduce(&mut state, input)?;
        let salt = Salt::random();
        let opened = Opened {
            format: FORMAT,
            agent: agent.id().clone(),
            salt: salt.clone(),
            graph: agent.lineage().fingerprint.clone(),
            schema: S::schema(),
            state: first,
            from: None,
        };
        let opened = entry(EntryKind::Opened(Box::new(opened)));
        let mut session = Session::new(id.clone(), state, wiring);
        session.salt = Some(salt);
        let base = Base::New(Box::new(opened));
        return Ok(Begun::Turn { entries: vec![turn(ops)], session: Box::new(session), base });
    };
    agent.owns(id, &saved)?;
    let fitted = agent.fits(stored, &saved)?;
    if let Some(given) = given
        && taken_before(stored, id, &saved, given).await?
    {
        return Ok(match saved.phase {
            Phase::Running if saved.input.as_ref() == Some(&given.key) => {
                Begun::GoesOn(Box::new(TakenUp { saved, fitted }))
            }
            _ => Begun::Settled(Box::new(saved), fitted.state),
        });
    }
    match saved.phase {
        Phase::Ended => {}
        Phase::Interrupted if launched.withdraw => withdraw(stored, id, &saved).await?,
        Phase::Interrupted => return Err(pending(id, &saved)),
        Phase::Waiting => return Err(Kind::Waiting(id.clone())),
        phase => return Err(Kind::Unsettled { session: id.clone(), phase }),
    }
    let Fitted { mut state, adopted } = fitted;
    let ops = reduce(&mut state, input)?;
    if let Some(before) = &saved.input {
        note_taken(&*stored.store, id, before).await.map_err(Kind::Store)?;
    }
    let mut session = Session::restore(id.clone(), &saved, state, wiring)
        .unwrap_or_else(|| Session::new(id.clone(), S::default(), wiring));
    session.cursor.last = saved.cursor.last;
    session.begin_turn(wiring);
    let mut entries = adoption(adopted);
    entries.push(turn(ops));
    let base = Base::Kept(Box::new(saved));
    Ok(Begun::Turn { entries, session: Box::new(session), base })
}

/// Leaves the input to the run that holds the session; unless that has settled meanwhile.
async fn queue<C: Context, S: State>(
    agent: &Agent<C, S>,
    stored: &Stored,
    session: &SessionId,
    launched: &Launched,
    given: Option<&Given>,
) -> Result<Opening, Kind> {
    let Some(given) = given else {
        return Err(Kind::Busy { session: session.clone(), answers_recorded: false });
    };
    loop {
        let found = read(&*stored.store, session).await.map_err(|e| open_error(session, e))?;
        let exists = found.is_some();
        if let Some(found) = found {
            agent.owns(session, &found.saved)?;
            let letter = LetterBody::input(&given.id, given.update.clone());
            match stored.store.post(session, &[letter]).await.map_err(Kind::Store)? {
                Posted::Here(_) => {}
                _ => {
                    let id = given.id.clone();
                    return Err(Kind::InputConflict { session: session.clone(), id });
                }
            }
        }
        match stored.claim(session, launched).await {
            Err(Kind::Busy { session, .. }) if exists => return Err(Kind::Queued { session }),
            // Nobody can write to a session before its first entry is there.
            Err(Kind::Busy { .. }) => tokio::time::sleep(BEGINNING).await,
            other => return other,
        }
    }
}

/// Whether an input was taken before. One that differs from what was given under its name is
/// refused.
async fn taken_before(
    stored: &Stored,
    session: &SessionId,
    saved: &Saved,
    given: &Given,
) -> Result<bool, Kind> {
    let letters = crate::journal::letters(&*stored.store, session).await.map_err(Kind::Store)?;
    let noted = taken_key(&given.key);
    let taken = saved.input.as_ref() == Some(&given.key)
        || letters.iter().any(|letter| letter.key == noted);
    let Some(letter) = letters.into_iter().find(|letter| letter.key == given.key) else {
        return Ok(taken);
    };
    match letter.body {
        Some(LetterBody::Input(input)) if input.update == given.update => Ok(taken),
        _ => Err(Kind::InputConflict { session: session.clone(), id: given.id.clone() }),
    }
}

/// Decides that the questions that wait are answered no more.
async fn withdraw(stored: &Stored, session: &SessionId, saved: &Saved) -> Result<(), Kind> {
    let open = saved.open().map(|asked| LetterBody::withdrawn(&asked.interrupt.id));
    let letters: Vec<_> = open.collect();
    post(&*stored.store, session, &letters).await
}

fn adoption(adopted: Option<Adopted>) -> Vec<Entry> {
    let kind = adopted.map(|adopted| EntryKind::Adopted(Box::new(adopted)));
    kind.into_iter().map(|kind| Entry { at: UtcMillis::now(), spent: None, kind }).collect()
}

fn open_error(session: &SessionId, error: OpenError) -> Kind {
    match error {
        OpenError::Store(StoreError::Busy { .. }) => {
            Kind::Busy { session: session.clone(), answers_recorded: false }
        }
        OpenError::Store(error) => Kind::Store(error),
        OpenError::Replay(source) => Kind::Replay { session: session.clone(), source },
    }
}

impl Stored {
    async fn claim(&self, session: &SessionId, launched: &Launched) -> Result<Opening, Kind> {
        let run = Arc::new(launched.brakes.clone());
        Opening::claim(&self.store, session, self.ttl, launched.on_busy, run)
            .await
            .map_err(|error| open_error(session, error))
    }
}

impl<C: Context, S: State> Agent<C, S> {
    fn stored(&self) -> Result<Stored, Kind> {
        // Only agents with a store come here.
        self.inner.stored.clone().ok_or_else(|| Kind::Cut("the agent has no store".to_owned()))
    }

    fn owns(&self, session: &SessionId, saved: &Saved) -> Result<(), Kind> {
        if saved.agent == *self.id() {
            return Ok(());
        }
        let (session, expected) = (session.clone(), self.id().clone());
        Err(Kind::WrongAgent { session, expected, found: saved.agent.clone() })
    }

    /// The session's state, if this loop can go on with it.
    fn fits(&self, stored: &Stored, saved: &Saved) -> Result<Fitted<S>, Kind> {
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
        settlement.into_outcome(&launched.abandoned, Arc::new(self.clone()))
    }

    /// Goes on where the session stands, with what letters say became of its questions.
    async fn go_on(
        self,
        stored: &Stored,
        opening: Opening,
        taken: TakenUp<S>,
        slots: C::Runtime,
        launched: Launched,
    ) -> Result<Outcome<S>, RunError> {
        let TakenUp { saved, fitted: Fitted { state, adopted } } = taken;
        let wiring = &self.inner.harness.graph().wiring;
        let entry = |kind| Entry { at: UtcMillis::now(), spent: None, kind };
        let mut resolved: Vec<Resolved> = resolutions(opening.letters.clone());
        resolved.retain(|resolved| saved.open().any(|asked| asked.interrupt.id == resolved.id));
        let still_open = saved.open().count() > resolved.len();
        if still_open && resolved.is_empty() {
            // Whoever has answered meanwhile was told that this run would see to it.
            if opening.release().await {
                return Box::pin(resume(self, Answers::none(), slots, launched)).await;
            }
            return Ok(self.at_rest(saved, state, &launched));
        }
        let mut entries = adoption(adopted);
        let crashed = saved.phase == Phase::Running;
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
            let how = HowSettled::Turn(HowEnded::Failed { failure: Box::new(failure) });
            let settled = Settled {
                how,
                finally_failure: None,
                active_ms: saved.active_ms,
                attempt: saved.cursor.attempt,
            };
            entries.push(entry(EntryKind::Settled(Box::new(settled))));
        }
        // A step behind an answered question may act on it at once.
        let durably = given_up || !answered.is_empty();
        let journal = Journal::new(opening, saved, stored.durability);
        let when = if durably { When::Now } else { When::Kept };
        if let Err(broken) = journal.write(entries, when, Vec::new()).await {
            journal.release().await;
            return Err(self.cut_off(broken).into());
        }
        let now = journal.saved(Saved::clone).await;
        if given_up {
            journal.release().await;
            return Ok(self.at_rest(now, state, &launched));
        }
        let session = Session::restore(launched.session.clone(), &now, state, wiring)
            .ok_or_else(|| Kind::Cut("the session rests at a step the loop lacks".to_owned()))?;
        drop(now);
        let journal = Some(Box::new(journal));
        let begun = self.driver(launched, session, None, Some(answered), journal, slots);
        Ok(begun.run().await)
    }
}
