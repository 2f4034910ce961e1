//! What the input of a run means to its session: a turn, one that was taken before, or a refusal.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::id::{InterruptId, SessionId};
use crate::journal::{
    LetterBody, Opening, note_taken, post_expired, question_key, read, taken_key,
};
use crate::log::{Entry, EntryKind, FORMAT, Fitted, Opened, RunStarted, Salt, Saved};
use crate::run::{Kind, Launched, reduce};
use crate::session::Session;
use crate::state::{State, encode};
use crate::store::{InboxSeq, Phase, Sent};
use crate::text::words;

use super::stored::{TakenUp, adoption, open_error, pending};
use super::validate::post;
use super::{Agent, Stored};

/// How long to wait before looking again for a session that is about to begin.
const BEGINNING: Duration = Duration::from_millis(5);

/// An input that has a name.
pub(super) struct Given {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) update: Value,
}

/// What comes of a run's input.
pub(super) enum Begun<S> {
    /// It was taken before: this is what came of it.
    Settled(Box<Saved>, S),
    /// It was taken before, by a run that crashed.
    GoesOn(Box<TakenUp<S>>),
    /// A turn begins.
    Turn {
        entries: Vec<Entry>,
        session: Box<Session<S>>,
        base: Base,
        /// The turn before has not ended: inputs that waited for that were passed over.
        withdrawn: bool,
    },
}

/// What a turn begins behind.
pub(super) enum Base {
    /// The first entry of a new session.
    New(Box<Entry>),
    /// What the log adds up to.
    Kept(Box<Saved>),
}

/// Decides what a run's input means to the session as it is.
pub(super) async fn begin<C: Context, S: State>(
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
        let run =
            RunStarted::turn(launched.run.clone(), start, ops, key, InboxSeq(0)).traced(trace);
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
        let (entries, session) = (vec![turn(ops)], Box::new(session));
        return Ok(Begun::Turn { entries, session, base, withdrawn: false });
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
        Phase::Interrupted if launched.withdraw => {}
        Phase::Interrupted => return Err(pending(id, &saved)),
        Phase::Waiting => return Err(Kind::Waiting(id.clone())),
        phase => return Err(Kind::Unsettled { session: id.clone(), phase }),
    }
    let Fitted { mut state, adopted } = fitted;
    let ops = reduce(&mut state, input)?;
    let withdrawn = saved.phase == Phase::Interrupted;
    if withdrawn {
        // Behind all that may refuse the input.
        withdraw(stored, id, &saved).await?;
    }
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
    Ok(Begun::Turn { entries, session: Box::new(session), base, withdrawn })
}

/// Leaves the input to the run that holds the session; unless that has settled meanwhile. Says
/// whether the input was left all the same.
pub(super) async fn queue<C: Context, S: State>(
    agent: &Agent<C, S>,
    stored: &Stored,
    session: &SessionId,
    launched: &Launched,
    given: Option<&Given>,
) -> Result<(Opening, bool), Kind> {
    let Some(given) = given else {
        return Err(Kind::Busy { session: session.clone(), answers_recorded: false });
    };
    loop {
        let found = read(&*stored.store, session).await.map_err(|e| open_error(session, e))?;
        let exists = found.is_some();
        if let Some(found) = found {
            agent.owns(session, &found.saved)?;
            let letter = LetterBody::input(&given.id, given.update.clone());
            match stored.store.send(session, &[letter]).await.map_err(Kind::Store)? {
                Sent::Accepted(_) => {}
                _ => {
                    let id = given.id.clone();
                    return Err(Kind::InputConflict { session: session.clone(), id });
                }
            }
        }
        match stored.claim(session, None, launched).await {
            // Nobody can write to a session before its first entry is there; and who holds one that
            // has ended may only look at it, or is about to begin its next turn.
            Err(Kind::Busy { .. })
                if !exists || stored.phase(session).await? == Some(Phase::Ended) =>
            {
                tokio::time::sleep(BEGINNING).await;
            }
            Err(Kind::Busy { session, .. }) => return Err(Kind::Queued { session }),
            other => return other.map(|opening| (opening, exists)),
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
    // A question whose time is over need not be withdrawn, and cannot be.
    post_expired(&*stored.store, session, saved).await.map_err(Kind::Store)?;
    let all = crate::journal::letters(&*stored.store, session).await.map_err(Kind::Store)?;
    let over = |id: &InterruptId| {
        let first = all.iter().find(|letter| letter.key == question_key(id));
        first.is_some_and(|letter| !matches!(letter.body, Some(LetterBody::Answer(_))))
    };
    let ids = saved.open().map(|asked| &asked.interrupt.id).filter(|id| !over(id));
    let letters: Vec<_> = ids.map(LetterBody::withdrawn).collect();
    if letters.is_empty() {
        return Ok(());
    }
    post(&*stored.store, session, &letters).await
}
