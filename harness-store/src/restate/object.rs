//! The sessions of an agent, as virtual objects: what each request does to one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use harness::engine::{Checkpoint, Delivery, Engine as _, HostError, Invocation, Turn};
use harness::prelude::*;
use harness::run::RunControl;
use harness::store::{Phase, Sent};
use harness::worker::SlotsError;
use harness::{SessionId, UtcMillis};
use restate_sdk::errors::HandlerError;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::calls::Callable;
use super::record::{
    FORMAT, ROW, Receive, Received, Record, Resume, SESSION, Signal, Start, Stopped, Wake,
    session_of,
};
use super::reply::{Reply, body, id_of, refusal, refused, reply, words};
use super::sdk::{Call, GivenUp, Object, Task};

/// When a session that its loop refuses is tried again.
const REFUSED: Duration = Duration::from_secs(60);

/// Makes the runtime slots of an invocation.
type Slots<C> = Box<
    dyn Fn(SessionId) -> BoxFuture<'static, Result<<C as Context>::Runtime, SlotsError>>
        + Send
        + Sync,
>;

/// An agent whose sessions are on the engine.
pub(super) struct Served<C: Context, S: State> {
    pub(super) agent: Agent<C, S>,
    pub(super) slots: Slots<C>,
    /// The writes of one invocation.
    pub(super) at_most: u64,
    /// The agents that its steps can call.
    pub(super) callable: Arc<Callable>,
    /// The runs at work in this process.
    pub(super) runs: Mutex<HashMap<String, RunControl>>,
}

impl<C: Context, S: State> Object for Served<C, S>
where
    S::Update: DeserializeOwned,
{
    fn handle(self: Arc<Self>, call: Call) -> BoxFuture<'static, Reply> {
        Box::pin(async move {
            let Some(session) = session_of(&call.key) else {
                return Err(refusal(400, "the key of the object is no id of a session"));
            };
            if call.task == Task::Signal {
                return self.signal(&call);
            }
            let record = load(&call).await?;
            match call.task {
                Task::Start => self.start(&call, &session, record).await,
                Task::Receive => receive(&call, &session, record).await,
                Task::Child => self.child(&call, &session, record).await,
                Task::Over => over(&call, &session, record).await,
                _ => {
                    let Some(record) = record else {
                        return Err(refusal(
                            404,
                            format!("no session `{session:#}` on the engine"),
                        ));
                    };
                    self.known(&call, record).await
                }
            }
        })
    }
}

impl<C: Context, S: State> Served<C, S>
where
    S::Update: DeserializeOwned,
{
    /// What is done to a session that exists.
    async fn known(self: Arc<Self>, call: &Call, record: Record) -> Reply {
        let Record { unfinished, session, .. } = record;
        match call.task {
            Task::Resume => {
                let given: Resume = body(call)?;
                if unfinished && given.answers.is_empty() {
                    return reply(&Record::new(session, true).settled(&call.key, None));
                }
                let answers = given.answers.into_iter().map(|given| {
                    let answer = Answers::json(given.interrupt, given.value);
                    match given.by {
                        Some(by) => answer.by(by),
                        None => answer,
                    }
                });
                self.resume(call, session, answers.collect(), None).await
            }
            Task::Continue if unfinished => self.resume(call, session, Answers::none(), None).await,
            Task::Wake if !unfinished => {
                let wake: Wake = body(call)?;
                match wake.due.is_some() && wake.due != timer(&session) {
                    // It was answered meanwhile, or waits for something else.
                    true => reply(&Record::new(session, false).settled(&call.key, None)),
                    false => self.work(call, session).await,
                }
            }
            Task::Stop => {
                let stopped = self.stop(call, session, unfinished).await?;
                reply(&Stopped { stopped })
            }
            _ => reply(&Record::new(session, unfinished).settled(&call.key, None)),
        }
    }

    /// Stops a session that no invocation works on. Returns whether there was something to stop.
    async fn stop(
        self: Arc<Self>,
        call: &Call,
        session: Checkpoint,
        unfinished: bool,
    ) -> Result<bool, HandlerError> {
        let Signal { cancel } = body(call)?;
        let phase = session.summary().phase;
        // Its invocation was cancelled, and nothing is at work.
        if phase == Phase::Running {
            self.resume(call, session, Answers::none(), Some(cancel)).await?;
            return Ok(true);
        }
        let id = id_of(call)?;
        let children = session.open_children(&id).await;
        let mut children = children.map_err(|error| refusal(500, error.to_string()))?;
        let has_children = !children.is_empty();
        if has_children && phase == Phase::Waiting {
            // The run that settles as stopped stops them.
            self.resume(call, session, Answers::none(), Some(cancel)).await?;
            return Ok(true);
        }
        for child in &mut children {
            child.cancel = cancel;
            call.stop_child(child);
        }
        if unfinished {
            save(call, session, false)?;
        }
        Ok(unfinished || has_children)
    }

    async fn start(
        self: Arc<Self>,
        call: &Call,
        session: &SessionId,
        record: Option<Record>,
    ) -> Reply {
        let Start { input_id, input } = body::<Start<S::Update>>(call)?;
        // Of all attempts of this invocation it is the same.
        let id = input_id.unwrap_or_else(|| call.id.clone());
        let Some(record) = record else {
            let (slots, invocation) = self.invocation(call, None).await?;
            let turn = invocation.run(call, id, input, slots).await;
            return self.finish(call, None, turn);
        };
        let kept = record.session.enqueue::<S>(session, &id, input).await;
        let kept = kept.map_err(|error| refused(&error))?;
        if record.unfinished {
            return reply(&save(call, kept, true)?.settled(&call.key, None));
        }
        self.work(call, kept).await
    }

    /// Runs a session that a step of another one starts. It is started once, however often that step
    /// runs again; if it was stopped, it continues, and if its turn is over, the other one is notified.
    async fn child(
        self: Arc<Self>,
        call: &Call,
        session: &SessionId,
        record: Option<Record>,
    ) -> Reply {
        let Some(Record { unfinished, session: kept, .. }) = record else {
            let (slots, invocation) = self.invocation(call, None).await?;
            let turn = invocation.child(call, body(call)?, slots).await;
            return self.finish(call, None, turn);
        };
        if !unfinished && kept.summary().phase == Phase::Stopped {
            return self.resume(call, kept, Answers::none(), None).await;
        }
        if !unfinished && let Some(over) = kept.as_over(session) {
            let delivered = call.deliver(Delivery::Over(over)).await;
            delivered.map_err(|error| refusal(500, error.to_string()))?;
        }
        reply(&Record::new(kept, unfinished).settled(&call.key, None))
    }

    async fn work(self: Arc<Self>, call: &Call, session: Checkpoint) -> Reply {
        let (slots, invocation) = self.invocation(call, Some(session.clone())).await?;
        let turn = invocation.work(call, slots).await;
        self.finish(call, Some(session), turn)
    }

    async fn resume(
        self: Arc<Self>,
        call: &Call,
        session: Checkpoint,
        answers: Answers,
        cancels: Option<bool>,
    ) -> Reply {
        let (slots, mut invocation) = self.invocation(call, Some(session.clone())).await?;
        if let Some(cancel) = cancels {
            invocation = invocation.on_begin(move |control| match cancel {
                true => control.cancel(),
                false => control.stop(),
            });
        }
        let turn = invocation.resume(call, answers, slots).await;
        self.finish(call, Some(session), turn)
    }

    async fn invocation(
        self: &Arc<Self>,
        call: &Call,
        session: Option<Checkpoint>,
    ) -> Result<(C::Runtime, Invocation<C, S>), HandlerError> {
        let id = id_of(call)?;
        let slots = (self.slots)(id).await.map_err(|error| {
            // The engine tries again.
            HandlerError::from(format!("the slots of the run could not be made: {error}"))
        })?;
        let (own, key) = (Arc::downgrade(self), call.key.clone());
        let mut invocation = Invocation::new(&self.agent, &call.key)
            .at_most(self.at_most)
            .refuses({
                let callable = Arc::clone(&self.callable);
                move |agent, slots| callable.refuses(agent, slots)
            })
            .on_begin(move |control| {
                if let Some(own) = own.upgrade() {
                    own.runs().insert(key, control);
                }
            });
        if let Some(session) = session {
            invocation = invocation.checkpoint(session);
        }
        Ok((slots, invocation))
    }

    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<String, RunControl>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what an invocation has left.
    fn finish(
        &self,
        call: &Call,
        before: Option<Checkpoint>,
        turn: Result<Turn<S>, HostError>,
    ) -> Reply {
        self.runs().remove(&call.key);
        match turn {
            Ok(Turn::Settled { outcome, checkpoint }) => {
                let failure = match &outcome {
                    Outcome::Failed(failed) => Some(failed.failure.to_string()),
                    _ => None,
                };
                let record = save(call, checkpoint, false)?;
                if let Some(due) = timer(&record.session) {
                    let delay = due.0.saturating_sub(UtcMillis::now().0);
                    let delay = Duration::from_millis(delay);
                    call.send(Task::Wake, json!({ "due": due }), Some(delay));
                }
                reply(&record.settled(&call.key, failure))
            }
            Ok(Turn::Unfinished { checkpoint }) => {
                let record = save(call, checkpoint, true)?;
                call.send(Task::Continue, json!({}), None);
                reply(&record.settled(&call.key, None))
            }
            Err(HostError::Run(error)) => {
                if let Some(before) = before {
                    // With what came into the inbox.
                    save(call, before, false)?;
                }
                if call.task == Task::Wake {
                    // Only this invocation knows that it is due. What is the newest deployment then
                    // takes it.
                    call.send(Task::Wake, json!({}), Some(REFUSED));
                }
                Err(refused(&error))
            }
            Err(HostError::Engine { source, checkpoint }) => {
                // What its results say has happened.
                if let Some(checkpoint) = checkpoint {
                    save(call, *checkpoint, false)?;
                }
                Err(match source.downcast::<GivenUp>() {
                    Ok(error) => HandlerError::from(error.0),
                    Err(error) => HandlerError::from(error),
                })
            }
            // The journal has what this program cannot apply. The engine repeats the invocation and
            // then pauses it, so that another program can continue it.
            Err(error) => Err(HandlerError::from(words(&error))),
        }
    }

    fn signal(&self, call: &Call) -> Reply {
        let signal: Signal = body(call)?;
        let run = self.runs().get(&call.key).cloned();
        match (&run, signal.cancel) {
            (Some(run), true) => run.cancel(),
            (Some(run), false) => run.stop(),
            (None, _) => {}
        }
        reply(&Stopped { stopped: run.is_some() })
    }
}

/// Takes messages into the inbox. The loop runs in another invocation, so that the sender need not
/// wait for it.
async fn receive(call: &Call, session: &SessionId, record: Option<Record>) -> Reply {
    let Receive { messages } = body(call)?;
    let Some(Record { unfinished, session: kept, .. }) = record else {
        return Err(refusal(404, format!("no session `{session:#}` on the engine")));
    };
    let received = kept.receive(session, &messages).await;
    let (kept, sent) = received.map_err(|error| refusal(500, error.to_string()))?;
    let accepted = matches!(sent, Sent::Accepted(_));
    if accepted {
        save(call, kept, unfinished)?;
        if !unfinished {
            call.send(Task::Wake, json!({}), None);
        }
    }
    match Received::of(sent) {
        Some(received) => reply(&received),
        None => Err(refusal(500, "the messages were not taken")),
    }
}

/// Takes a child whose turn is over. The step that waits for it continues in another invocation.
async fn over(call: &Call, session: &SessionId, record: Option<Record>) -> Reply {
    let Some(Record { unfinished, session: kept, .. }) = record else {
        return Err(refusal(404, format!("no session `{session:#}` on the engine")));
    };
    let kept = kept.child_over(session, body(call)?).await;
    let record = save(call, kept.map_err(|error| refusal(500, error.to_string()))?, unfinished)?;
    if !unfinished {
        call.send(Task::Wake, json!({}), None);
    }
    reply(&record.settled(&call.key, None))
}

/// When the session continues by itself.
fn timer(session: &Checkpoint) -> Option<UtcMillis> {
    let summary = session.summary();
    let waits = matches!(summary.phase, Phase::Interrupted | Phase::Waiting);
    summary.due.filter(|_| waits)
}

async fn load(call: &Call) -> Result<Option<Record>, HandlerError> {
    let Some(bytes) = call.get(SESSION).await? else { return Ok(None) };
    match serde_json::from_slice::<Record>(&bytes) {
        Ok(record) if record.format <= FORMAT => Ok(Some(record)),
        // The engine tries again, with a newer program if there is one.
        Ok(record) => Err(HandlerError::from(format!(
            "the session has format {}; this program reads up to {FORMAT} (upgrade `harness`)",
            record.format
        ))),
        Err(error) => Err(HandlerError::from(format!("the session does not decode: {error}"))),
    }
}

fn save(call: &Call, session: Checkpoint, unfinished: bool) -> Result<Record, HandlerError> {
    let record = Record::new(session, unfinished);
    call.set(
        SESSION,
        serde_json::to_vec(&record).map_err(|error| refusal(500, error.to_string()))?,
    )?;
    call.set(
        ROW,
        serde_json::to_vec(&record.row()).map_err(|error| refusal(500, error.to_string()))?,
    )?;
    Ok(record)
}
