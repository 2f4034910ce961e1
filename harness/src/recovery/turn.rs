//! What the input of a run means to a stored session: a turn, one that was applied before, or a
//! refusal.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::compat::{Compatible, LoopIdentity};
use crate::context::Context;
use crate::id::AgentId;
use crate::inbox::{
    Body, KnownInput, SentFrom, input_key, interrupt_key, known_input, note_applied, queue_input,
    read_inbox, reserve_input, send_all, send_expired, summary,
};
use crate::journal::{When, read};
use crate::run::{Begin, Kind, OnBusy, Outcome, QueueStatus, Queued, RunError, reduce};
use crate::session::{
    Change, Digest, FORMAT, InputKey, Opened, Recorded, RunStarted, Salt, Session, check_value,
};
use crate::state::{State, to_json, update_to_json};
use crate::store::{InboxSeq, Phase, Released};
use crate::text::words;

use super::claimed::Claimed;
use super::refuse::{pending, read_error, unsettled};
use super::resume::{Given, look_after};
use super::{Entered, Taken, Taker};

/// How long to wait before looking again at a session that is about to begin.
const BEGINNING: Duration = Duration::from_millis(5);

/// An input that has an id.
pub(super) struct Named {
    id: String,
    key: InputKey,
    update: Value,
    /// The caller chose the id: other inputs may be given under it.
    chosen: bool,
}

/// What became of an input that found the session held.
enum Left {
    /// The session is free meanwhile. Says whether the input is in its inbox.
    Free(Box<Claimed>, bool),
    /// The run that holds the session has the input.
    Queued(QueueStatus),
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
pub(super) struct Turn<S> {
    pub(super) opened: Option<Box<Opened>>,
    pub(super) session: Box<Session>,
    /// The JSON of the state before the input.
    pub(super) stored: Value,
    pub(super) state: S,
    pub(super) changes: Vec<Change>,
    /// Inputs may wait that were passed over before.
    pub(super) look_back: bool,
    /// When and where the input was sent, if it waited in the inbox.
    pub(super) from: SentFrom,
}

/// Starts a turn: of a new session, or of one that has ended.
pub(crate) async fn run<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    input: S::Update,
) -> Result<Outcome<S>, RunError> {
    // A live run keeps no room for how its session was recovered.
    let taken = Box::pin(take_input(taker, input)).await?;
    Ok(taken.outcome().await)
}

async fn take_input<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
    input: S::Update,
) -> Result<Taken<C, S>, RunError> {
    let queues = taker.launched.on_busy == OnBusy::Queue;
    let named = match taker.launched.input_id.is_some() || queues {
        true => {
            let launched = &taker.launched;
            let id = launched.input_id.clone().unwrap_or_else(|| launched.run.to_string());
            let update = encoded::<S>(&input)?;
            let key = InputKey { key: input_key(&id), digest: Digest::of(&update) };
            Some(Named { key, id, update, chosen: launched.input_id.is_some() })
        }
        false => None,
    };
    if !taker.launched.withdraw && named.is_none() {
        Box::pin(taker.refuse_while_asked()).await?;
    }
    let mut left = false;
    let mut claimed = match taker.claim(None).await {
        Err(Kind::Busy { .. }) if queues => match Box::pin(taker.queue(named.as_ref())).await? {
            Left::Free(claimed, sent) => {
                left = sent;
                *claimed
            }
            Left::Queued(status) => return Ok(taker.queued(named, status)),
        },
        other => other?,
    };
    let recorded = claimed.recorded.take();
    let asks = recorded.as_ref().is_some_and(|it| it.session.phase == Phase::Interrupted);
    let meaning = match taker.meaning(recorded, input, named.as_ref()).await {
        Ok(meaning) => meaning,
        Err(refused) => {
            let unsettled = matches!(
                refused,
                Kind::OpenInterrupts { .. } | Kind::Unsettled { .. } | Kind::Waiting(_)
            );
            let queued = (left && unsettled).then(|| taker.queued(named, QueueStatus::Unsettled));
            let error = Box::pin(taker.refuse(claimed, refused, asks)).await;
            // The input is in the inbox: the run that ends this turn applies it as the next.
            return queued.ok_or(error);
        }
    };
    match meaning {
        Meaning::Settled(session, state) => {
            let settled = taker.at_rest(&session, state);
            if Box::pin(claimed.give_back()).await == Released::MoreMessages && asks {
                // A process that has answered relies on a run to apply the answer.
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

/// The first entry of a session of this agent, and the state that it begins with.
pub(super) fn opened<S: State>(
    agent: &AgentId,
    identity: &LoopIdentity,
) -> Result<(Opened, S), Kind> {
    let state = catch_unwind(S::default)
        .map_err(|panic| Kind::InputPanicked(format!("its `Default`: {}", words(&*panic))))?;
    let opened = Opened {
        format: FORMAT,
        agent: agent.clone(),
        salt: Salt::random(),
        graph: Arc::clone(&identity.fingerprint),
        schema: Arc::clone(&identity.schema),
        state: to_json(&state).map_err(|e| Kind::InputNotEncodable(e.to_string()))?,
        from: None,
        parent: None,
    };
    Ok((opened, state))
}

/// The JSON of an input, which a log or an inbox can keep.
pub(crate) fn encoded<S: State>(input: &S::Update) -> Result<Value, Kind> {
    let update = update_to_json(input).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
    check_value(&update).map_err(|e| Kind::InputNotEncodable(e.to_string()))?;
    Ok(update)
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
    async fn refuse(self: Box<Self>, claimed: Claimed, refused: Kind, asks: bool) -> RunError {
        let session = self.session().clone();
        if claimed.give_back().await == Released::MoreMessages && asks {
            // A process that has answered relies on a run to apply the answer.
            match look_after(self).await {
                Some(Ok(taken)) => drop(taken.outcome().await),
                Some(Err(error)) => {
                    tracing::warn!(%session, %error, "failed to apply the answers in the inbox");
                }
                None => {}
            }
        }
        refused.into()
    }

    /// The outcome of an input that waits in the inbox.
    fn queued(&self, named: Option<Named>, status: QueueStatus) -> Taken<C, S> {
        let input_id = named.map(|named| named.id).unwrap_or_default();
        let queued =
            Queued::new(self.session().clone(), input_id, status, Arc::clone(&self.resumer));
        Taken::AtRest(Box::new(Outcome::Queued(queued)))
    }

    /// Decides what an input means to the session as it is.
    async fn meaning(
        &self,
        recorded: Option<Recorded>,
        input: S::Update,
        named: Option<&Named>,
    ) -> Result<Meaning<S>, Kind> {
        let Some(recorded) = recorded else {
            return Ok(Meaning::Turn(Box::new(self.first_turn(input, named)?)));
        };
        let id = self.session();
        let compatible = self.check(&recorded)?;
        let session = &recorded.session;
        let known = match named {
            Some(named) if named.chosen => Box::pin(self.known(session, named)).await?,
            _ => KnownInput::No,
        };
        if let Some(named) = named
            && known == KnownInput::Applied
        {
            let crashed =
                session.phase == Phase::Running && session.input.as_ref() == Some(&named.key.key);
            return Ok(match crashed {
                true => Meaning::Crashed(Box::new(recorded), compatible),
                false => Meaning::Settled(recorded.session, compatible.state),
            });
        }
        match session.phase {
            Phase::Ended => {}
            Phase::Interrupted if self.launched.withdraw => {}
            Phase::Interrupted => return Err(pending(id, session)),
            Phase::Waiting => return Err(Kind::Waiting(id.clone())),
            // The caller wants its input to take the place of the turn that was stopped.
            Phase::Stopped if self.launched.on_busy == OnBusy::Stop => {
                if session.is_waiting() && !self.launched.withdraw {
                    return Err(pending(id, session));
                }
                if let Some(effect) = session.in_doubt() {
                    return Err(unsettled(id, session.phase, Some(effect)));
                }
            }
            phase => return Err(unsettled(id, phase, None)),
        }
        let Compatible { mut state, adopted } = compatible;
        let ops = reduce(&mut state, input)?;
        if let Some(named) = named
            && named.chosen
            && known == KnownInput::No
        {
            // From here on the input has its id, also against one that is sent in this moment.
            let taken = Box::pin(reserve_input(self.store(), id, &named.key)).await;
            if taken.map_err(Kind::Store)? {
                return Err(self.conflict(named));
            }
        }
        // Inputs that waited for the end of this turn were passed over.
        let look_back = session.phase != Phase::Ended;
        if look_back {
            // After everything that may refuse the input.
            Box::pin(self.withdraw(session)).await?;
        }
        if let Some(before) = &session.input {
            let digest = session.input_digest.as_ref();
            let noted = Box::pin(note_applied(self.store(), id, before, digest)).await;
            noted.map_err(Kind::Store)?;
        }
        let mut changes: Vec<Change> =
            adopted.into_iter().map(|adopted| Change::Adopted(Box::new(adopted))).collect();
        changes.push(self.turn_started(ops, named));
        let Recorded { session, state: stored } = recorded;
        let from = SentFrom::default();
        let turn = Turn { opened: None, session, stored, state, changes, look_back, from };
        Ok(Meaning::Turn(Box::new(turn)))
    }

    pub(super) fn first_turn(
        &self,
        input: S::Update,
        named: Option<&Named>,
    ) -> Result<Turn<S>, Kind> {
        let (opened, mut state) = opened::<S>(&self.agent, &self.identity)?;
        let stored = opened.state.clone();
        let ops = reduce(&mut state, input)?;
        let session = Box::new(Session::opened(&opened));
        let changes = vec![self.turn_started(ops, named)];
        let opened = Some(Box::new(opened));
        let (look_back, from) = (false, SentFrom::default());
        Ok(Turn { opened, session, stored, state, changes, look_back, from })
    }

    fn turn_started(&self, ops: Vec<crate::state::Op>, named: Option<&Named>) -> Change {
        let wiring = self.wiring();
        let start = wiring.name_of(wiring.start);
        let key = named.map(|named| named.key.clone());
        let run = RunStarted::turn(self.launched.run.clone(), start, ops, key, InboxSeq(0));
        Change::RunStarted(Box::new(run))
    }

    pub(super) async fn begin(
        self: Box<Self>,
        claimed: Claimed,
        turn: Turn<S>,
        named: Option<Named>,
    ) -> Result<Taken<C, S>, RunError> {
        let Turn { opened, session, stored, state, changes, look_back, from } = turn;
        let (guard, start) = claimed.into_start(stored, session.inbox);
        let begin = Begin { look_back, ..Begin::of_input(from) };
        // Nothing can be sent to a session that is about to begin: until its input has its id in the
        // inbox, the log says so.
        let input = named.filter(|named| named.chosen && opened.is_some());
        let input = input.map(|named| Body::begins(&named.key));
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

    /// Leaves the input to the run that holds the session, unless that has settled meanwhile.
    async fn queue(&self, named: Option<&Named>) -> Result<Left, Kind> {
        let (store, id) = (self.store(), self.session());
        let Some(named) = named else {
            let session = id.clone();
            return Err(Kind::Busy { session, until: None, answers_recorded: false });
        };
        loop {
            let found = read(store, id).await.map_err(|error| read_error(id, error))?;
            let exists = found.is_some();
            let mut applied = false;
            if let Some(found) = found {
                self.owns(&found.recorded)?;
                let session = &found.recorded.session;
                applied = named.chosen && self.known(session, named).await? == KnownInput::Applied;
                if !applied {
                    let taken =
                        queue_input(store, id, &named.id, &named.update, SentFrom::here()).await;
                    if taken.map_err(Kind::Store)? {
                        return Err(self.conflict(named));
                    }
                }
            }
            match self.claim(None).await {
                // No process can write to a session before its first entry is there; and the holder
                // of one that has ended only looks at it, or is about to begin its next turn.
                Err(Kind::Busy { .. }) if !exists || self.phase().await? == Some(Phase::Ended) => {
                    tokio::time::sleep(BEGINNING).await;
                }
                Err(Kind::Busy { .. }) if applied => {
                    return Ok(Left::Queued(QueueStatus::Applied));
                }
                Err(Kind::Busy { .. }) => return Ok(Left::Queued(QueueStatus::Held)),
                other => {
                    let claimed = Box::new(other?);
                    return Ok(Left::Free(claimed, exists && !applied));
                }
            }
        }
    }

    async fn phase(&self) -> Result<Option<Phase>, Kind> {
        let page = summary(self.store(), self.session()).await.map_err(Kind::Store)?;
        Ok(page.map(|page| page.summary.phase))
    }

    /// What the session knows of an input. One that differs from what was given under its id before
    /// is refused.
    async fn known(&self, session: &Session, named: &Named) -> Result<KnownInput, Kind> {
        let known = known_input(self.store(), self.session(), session, &named.key).await;
        known.map_err(Kind::Store)?.ok_or_else(|| self.conflict(named))
    }

    fn conflict(&self, named: &Named) -> Kind {
        Kind::InputConflict { session: self.session().clone(), id: named.id.clone() }
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
