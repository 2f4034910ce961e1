//! Bringing sessions to their end, whatever has become of them before.

use std::time::Duration;

use harness::inspect::Phase as Stands;
use harness::prelude::*;
use harness::store::SessionStore;
use harness::{Durability, FailureKind, OnBusy, Outcome, RunError, Sessions, observe};
use tokio::sync::{mpsc, oneshot};

use crate::loops::{Ctx, Doc, KINDS, TURNS, answers, harness, input};
use crate::outside::Outside;

/// Reports what is in the store.
pub type Notify = fn(String);

pub fn name(number: u64) -> String {
    format!("s{number}")
}

/// When the commits of a session are made durable.
pub fn durability(number: u64) -> Durability {
    match number / KINDS % 3 {
        0 => Durability::Step,
        1 => Durability::Relaxed,
        _ => Durability::Settle,
    }
}

/// What a process needs to bring sessions to their end.
#[derive(Clone)]
pub struct Driver {
    agent: Agent<Ctx, Doc>,
    pub sessions: Sessions,
    notify: Notify,
}

/// What another process is to do about a session.
pub enum Job {
    /// Answer what it asks, and say so.
    Answer(u64, oneshot::Sender<()>),
    /// Leave the input of a turn to the process that runs the one before.
    Queue(u64, u64),
}

impl Driver {
    pub fn new(
        store: impl SessionStore,
        outside: Outside,
        notify: Notify,
        lease: Option<Duration>,
    ) -> Self {
        let store = std::sync::Arc::new(store);
        let mut agent = harness()
            .agent("torture", Ctx::required().outside(outside).build())
            .shared_store(store.clone());
        if let Some(lease) = lease {
            agent = agent.lease(lease);
        }
        let agent = agent.observe(observe::from_fn(move |event| {
            if let Some(seq) = event.seq {
                notify(format!("c {} {seq}", event.session));
            }
        }));
        Self { agent, sessions: Sessions::shared(store), notify }
    }

    fn agent(&self, number: u64) -> Agent<Ctx, Doc> {
        self.agent.clone().durability(durability(number))
    }

    /// Brings a session to its end.
    pub async fn drive(&self, number: u64, clerk: Option<&mpsc::UnboundedSender<Job>>) {
        let (name, agent) = (name(number), self.agent(number));
        loop {
            let status = match self.sessions.status(&name).await {
                Ok(status) => Some(status),
                Err(error) if error.is_not_found() => None,
                Err(error) => return (self.notify)(format!("! status of {name}: {error}")),
            };
            let queue = |turn: u64| {
                if let Some(clerk) = clerk
                    && turn <= TURNS
                    && number % 2 == 1
                {
                    let _ = clerk.send(Job::Queue(number, turn));
                }
            };
            let start = |turn: u64| {
                queue(turn + 1);
                let request = agent.run(input(number, turn), ()).session(&name);
                request.input_id(format!("t{turn}"))
            };
            let outcome = match &status {
                None => start(1).await,
                Some(status) => {
                    let (questions, turn) = (&status.questions, status.turn);
                    match (status.phase, clerk) {
                        (Stands::Ended, _) if turn == TURNS => return,
                        (Stands::Ended, _) => start(turn + 1).await,
                        (Stands::Interrupted, Some(clerk)) if number % 3 == 1 => {
                            let (done, answered) = oneshot::channel();
                            let _ = clerk.send(Job::Answer(number, done));
                            let _ = answered.await;
                            continue;
                        }
                        (Stands::Running, _) if status.holder.is_some() => {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            continue;
                        }
                        (Stands::Interrupted, _) => {
                            agent.resume(&*name, answers(questions), ()).await
                        }
                        (Stands::Running, _) => {
                            queue(turn + 1);
                            agent.resume(&*name, Answers::none(), ()).await
                        }
                        (Stands::Failed, _) => {
                            let failure = status.failure.as_ref();
                            if failure.map(|failure| failure.kind) != Some(FailureKind::CrashLoop) {
                                (self.notify)(format!("! {name} failed: {failure:?}"));
                                return;
                            }
                            (self.notify)(format!("given up {name}"));
                            agent.resume(&*name, Answers::none(), ()).await
                        }
                        (phase, _) => return (self.notify)(format!("! {name} is {phase:?}")),
                    }
                }
            };
            self.report(&name, outcome);
        }
    }

    fn report(&self, name: &str, outcome: Result<Outcome<Doc>, RunError>) {
        let how = match outcome {
            Ok(Outcome::Ended(ended)) => format!("ended {}", ended.state.turn),
            Ok(Outcome::Interrupted(_)) => "interrupted".into(),
            // The run that holds the session takes it.
            Ok(Outcome::Queued(_)) => return,
            Ok(Outcome::Failed(failed)) if failed.failure.kind == FailureKind::CrashLoop => {
                "given up".into()
            }
            Ok(other) => return (self.notify)(format!("! {name}: {other:?}")),
            // Another process was faster.
            Err(error)
                if error.is_busy()
                    || error.is_pending_interrupt()
                    || error.is_unsettled()
                    || error.is_not_waiting() =>
            {
                return;
            }
            Err(error) => return (self.notify)(format!("! {name}: {error}")),
        };
        (self.notify)(format!("o {name} {how}"));
    }

    /// Does what it is asked to, as another process would.
    pub async fn clerk(self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while let Some(job) = jobs.recv().await {
            match job {
                Job::Answer(number, done) => {
                    let name = name(number);
                    if let Ok(status) = self.sessions.status(&name).await
                        && status.phase == Stands::Interrupted
                    {
                        let answers = answers(&status.questions);
                        let outcome = self.agent(number).resume(&*name, answers, ()).await;
                        self.report(&name, outcome);
                    }
                    let _ = done.send(());
                }
                Job::Queue(number, turn) => {
                    let name = name(number);
                    // The turn before may not have begun.
                    for _ in 0..10 {
                        let status = self.sessions.status(&name).await;
                        if status.is_ok_and(|status| status.turn + 1 >= turn) {
                            let request = self.agent(number).run(input(number, turn), ());
                            let request = request.session(&name).input_id(format!("t{turn}"));
                            let outcome = request.on_busy(OnBusy::Queue).await;
                            self.report(&name, outcome);
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
        }
    }
}
