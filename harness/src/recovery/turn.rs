//! What the input of a run means to a stored session: a turn, one that was applied before, or a
//! refusal.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::compat::Compatible;
use crate::context::Context;
use crate::inbox::{
    Body, applied_key, input_key, interrupt_key, note_applied, read_inbox, send_all, send_expired,
    summary,
};
use crate::journal::{When, read};
use crate::run::{Begin, Kind, OnBusy, Outcome, RunError, reduce};
use crate::session::{Change, FORMAT, Opened, Recorded, RunStarted, Salt, Session, check_value};
use crate::state::{State, encode};
use crate::store::{InboxSeq, Phase, Released, Sent};
use crate::text::words;

use super::claimed::Claimed;
use super::refuse::{pending, read_error};
use super::resume::{Given, look_after};
use super::{Entered, Taken, Taker};

/// How long to wait before looking again at a session that is about to begin.
const BEGINNING: Duration = Duration::from_millis(5);

/// An input that has a name.
struct Named {
    id: String,
    key: String,
    update: Value,
}

/// What an input means.
enum Meaning<S> {
    /// It was applied before: the session is what came of it.
    Settled(Box<Session>, S),
    /// It was applied before, by a run that crashed.
    Crashed(Box<Recorded>, Compatible<S>),
    /// It begins a turn.
    Turn(Box<Turn<S>>),
}

/// A turn that is about to begin.
struct Turn<S> {
    opened: Option<Box<Opened>>,
    session: Session,
    /// The JSON of the state before the input.
    stored: Value,
    state: S,
    changes: Vec<Change>,
    /// The turn before has not ended: inputs that waited for that were passed over.
    withdrawn: bool,
}

/// Starts a turn: of a new session, or of one that has ended.
pub(crate) async fn run<C: Context, S: State>(
    taker: Taker<C, S>,
    input: S::Update,
) -> Result<Outcome<S>, RunError> {
    // A live run keeps no room for how its session was recovered.
    let taken = Box::pin(take_input(taker, input)).await?;
    Ok(taken.outcome().await)
}

async fn take_input<C: Context, S: State>(
    taker: Taker<C, S>,
    input: S::Update,
) -> Result<Taken<C, S>, RunError> {
    let queues = taker.launched.on_busy == OnBusy::Queue;
    let named = match taker.launched.input_id.is_some() || queues {
        true => {
            let launched = &taker.launched;
            let id = launched.input_id.clone().unwrap_or_else(|| launched.run.to_string());
            let update = encode(&input).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
            check_value(&update).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
            Some(Named { key: input_key(&id), id, update })
        }
        false => None,
    };
    if !taker.launched.withdraw && named.is_none() {
        Box::pin(taker.refuse_while_asked()).await?;
    }
    let mut left = false;
    let mut claimed = match taker.claim(None).await {
        Err(Kind::Busy { .. }) if queues => {
            let claimed;
            (claimed, left) = Box::pin(taker.queue(named.as_ref())).await?;
            claimed
        }
        other => other?,
    };
    let recorded = claimed.recorded.take();
    let asks = recorded.as_ref().is_some_and(|it| it.session.phase == Phase::Interrupted);
    let meaning = match taker.meaning(recorded, input, named.as_ref()).await {
        Ok(meaning) => meaning,
        Err(refused) => return Err(Box::pin(taker.refuse(claimed, refused, asks, left)).await),
    };
    match meaning {
        Meaning::Settled(session, state) => {
            let settled = taker.at_rest(&session, state);
            if claimed.release().await == Released::MoreMessages && asks {
                // A process that answered meanwhile relies on this run to apply the answer.
                return Box::pin(look_after(taker)).await.unwrap_or(Ok(settled));
            }
            Ok(settled)
        }
        Meaning::Crashed(recorded, compatible) => {
            let nothing = Given { messages: Vec::new(), recorded: false };
            Box::pin(taker.enter(claimed, *recorded, compatible, nothing)).await
        }
        Meaning::Turn(turn) => taker.begin(claimed, *turn, named).await,
    }
}

impl<C: Context, S: State> Taker<C, S> {
    /// A session that waits for answers is refused without being held, so that a process that
    /// answers meanwhile does not find it busy.
    async fn refuse_while_asked(&self) -> Result<(), Kind> {
        let (store, id) = (self.store(), self.session());
        let page = summary(store, id).await.map_err(Kind::Store)?;
        if page.is_none_or(|page| page.summary.phase != Phase::Interrupted) {
            return Ok(());
        }
        match read(store, id).await.map_err(|error| read_error(id, error))? {
            Some(found) if found.recorded.session.phase == Phase::Interrupted => {
                self.owns(&found.recorded)?;
                Err(pending(id, &found.recorded.session))
            }
            _ => Ok(()),
        }
    }

    /// Releases a session whose input is refused.
    async fn refuse(self, claimed: Claimed, refused: Kind, asks: bool, left: bool) -> RunError {
        let session = self.session().clone();
        if claimed.release().await == Released::MoreMessages && asks {
            // A process that answered meanwhile relies on this run to apply the answer.
            match look_after(self).await {
                Some(Ok(taken)) => drop(taken.outcome().await),
                Some(Err(error)) => {
                    tracing::warn!(%session, %error, "failed to apply the answers in the inbox");
                }
                None => {}
            }
        }
        match refused {
            // The input is in the inbox: the run that ends this turn applies it as the next.
            Kind::OpenInterrupts { .. } | Kind::Unsettled { .. } if left => {
                Kind::Queued { session }.into()
            }
            refused => refused.into(),
        }
    }

    /// Decides what an input means to the session as it is.
    async fn meaning(
        &self,
        recorded: Option<Recorded>,
        input: S::Update,
        named: Option<&Named>,
    ) -> Result<Meaning<S>, Kind> {
        let Some(recorded) = recorded else { return self.first_turn(input, named) };
        let id = self.session();
        let compatible = self.check(&recorded)?;
        let session = &recorded.session;
        if let Some(named) = named
            && Box::pin(self.was_applied(session, named)).await?
        {
            let crashed =
                session.phase == Phase::Running && session.input.as_ref() == Some(&named.key);
            return Ok(match crashed {
                true => Meaning::Crashed(Box::new(recorded), compatible),
                false => Meaning::Settled(Box::new(recorded.session), compatible.state),
            });
        }
        match session.phase {
            Phase::Ended => {}
            Phase::Interrupted if self.launched.withdraw => {}
            Phase::Interrupted => return Err(pending(id, session)),
            Phase::Waiting => return Err(Kind::Waiting(id.clone())),
            phase => return Err(Kind::Unsettled { session: id.clone(), phase }),
        }
        let Compatible { mut state, adopted } = compatible;
        let ops = reduce(&mut state, input)?;
        let withdrawn = session.phase == Phase::Interrupted;
        if withdrawn {
            // After everything that may refuse the input.
            Box::pin(self.withdraw(session)).await?;
        }
        if let Some(before) = &session.input {
            let noted = Box::pin(note_applied(self.store(), id, before)).await;
            noted.map_err(Kind::Store)?;
        }
        let mut changes: Vec<Change> =
            adopted.into_iter().map(|adopted| Change::Adopted(Box::new(adopted))).collect();
        changes.push(self.turn_started(ops, named));
        let Recorded { session, state: stored } = recorded;
        let turn = Turn { opened: None, session, stored, state, changes, withdrawn };
        Ok(Meaning::Turn(Box::new(turn)))
    }

    fn first_turn(&self, input: S::Update, named: Option<&Named>) -> Result<Meaning<S>, Kind> {
        let mut state = catch_unwind(S::default)
            .map_err(|panic| Kind::InputPanicked(format!("its `Default`: {}", words(&*panic))))?;
        let stored = encode(&state).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
        let ops = reduce(&mut state, input)?;
        let opened = Opened {
            format: FORMAT,
            agent: self.agent.clone(),
            salt: Salt::random(),
            graph: Arc::clone(&self.identity.fingerprint),
            schema: Arc::clone(&self.identity.schema),
            state: stored.clone(),
            from: None,
        };
        let session = Session::opened(&opened);
        let changes = vec![self.turn_started(ops, named)];
        let opened = Some(Box::new(opened));
        let turn = Turn { opened, session, stored, state, changes, withdrawn: false };
        Ok(Meaning::Turn(Box::new(turn)))
    }

    fn turn_started(&self, ops: Vec<crate::state::Op>, named: Option<&Named>) -> Change {
        let wiring = self.wiring();
        let start = wiring.name_of(wiring.start);
        let key = named.map(|named| named.key.clone());
        let run = RunStarted::turn(self.launched.run.clone(), start, ops, key, InboxSeq(0));
        Change::RunStarted(Box::new(run.traced(self.launched.trace.clone())))
    }

    async fn begin(
        self,
        claimed: Claimed,
        turn: Turn<S>,
        named: Option<Named>,
    ) -> Result<Taken<C, S>, RunError> {
        let Turn { opened, session, stored, state, changes, withdrawn } = turn;
        let (guard, start) = claimed.into_start(stored, session.inbox);
        let begin = Begin { look_back: withdrawn, ..Begin::default() };
        // From here on the input's key is taken, also by an input that is applied at once.
        let input = named.map(|named| Body::input(&named.id, named.update));
        let when = When::Kept;
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

    /// Leaves the input to the run that holds the session, unless that has settled meanwhile. Says
    /// whether the input was left all the same.
    async fn queue(&self, named: Option<&Named>) -> Result<(Claimed, bool), Kind> {
        let (store, id) = (self.store(), self.session());
        let Some(named) = named else {
            return Err(Kind::Busy { session: id.clone(), answers_recorded: false });
        };
        loop {
            let found = read(store, id).await.map_err(|error| read_error(id, error))?;
            let exists = found.is_some();
            if let Some(found) = found {
                self.owns(&found.recorded)?;
                let message = Body::input(&named.id, named.update.clone());
                match store.send(id, &[message]).await.map_err(Kind::Store)? {
                    Sent::Accepted(_) => {}
                    _ => {
                        let input = named.id.clone();
                        return Err(Kind::InputConflict { session: id.clone(), id: input });
                    }
                }
            }
            match self.claim(None).await {
                // No process can write to a session before its first entry is there; and the holder
                // of one that has ended only looks at it, or is about to begin its next turn.
                Err(Kind::Busy { .. }) if !exists || self.phase().await? == Some(Phase::Ended) => {
                    tokio::time::sleep(BEGINNING).await;
                }
                Err(Kind::Busy { session, .. }) => return Err(Kind::Queued { session }),
                other => return other.map(|claimed| (claimed, exists)),
            }
        }
    }

    async fn phase(&self) -> Result<Option<Phase>, Kind> {
        let page = summary(self.store(), self.session()).await.map_err(Kind::Store)?;
        Ok(page.map(|page| page.summary.phase))
    }

    /// Whether an input was applied before. One that differs from what was given under its name is
    /// refused.
    async fn was_applied(&self, session: &Session, named: &Named) -> Result<bool, Kind> {
        let id = self.session();
        let messages = read_inbox(self.store(), id).await.map_err(Kind::Store)?;
        let noted = applied_key(&named.key);
        let applied = session.input.as_ref() == Some(&named.key)
            || messages.iter().any(|message| message.key == noted);
        let Some(message) = messages.into_iter().find(|message| message.key == named.key) else {
            return Ok(applied);
        };
        match message.body {
            Some(Body::Input(input)) if input.update == named.update => Ok(applied),
            _ => Err(Kind::InputConflict { session: id.clone(), id: named.id.clone() }),
        }
    }

    /// Decides that the interrupts that wait are no longer asked.
    async fn withdraw(&self, session: &Session) -> Result<(), Kind> {
        let (store, id) = (self.store(), self.session());
        // An interrupt that has expired need not be withdrawn, and cannot be.
        send_expired(store, id, session).await.map_err(Kind::Store)?;
        let inbox = read_inbox(store, id).await.map_err(Kind::Store)?;
        let mut first = std::collections::HashMap::new();
        for message in &inbox {
            first.entry(message.key.as_str()).or_insert(&message.body);
        }
        let messages: Vec<_> = session
            .open_interrupts()
            .filter(|interrupt| {
                let decided = first.get(&*interrupt_key(&interrupt.id));
                decided.is_none_or(|body| matches!(body, Some(Body::Answer(_))))
            })
            .map(|interrupt| Body::withdrawn(&interrupt.id))
            .collect();
        if messages.is_empty() {
            return Ok(());
        }
        let sent = send_all(store, id, &messages).await;
        sent.map_err(|error| Kind::not_given(id, error))
    }
}
