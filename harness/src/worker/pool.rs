//! Claiming the due sessions of one store, and running them.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::id::{AgentId, SessionId};
use crate::journal::LeaseGuard;
use crate::recovery::Admission;
use crate::store::{Claimed, DueRequest, SessionStore};

use super::backoff::BackOff;
use super::serve::{Done, Served};
use super::suspects::{Gate, Suspects};

/// How often an idle worker asks its store.
const POLL: Duration = Duration::from_secs(1);

/// The most sessions that are claimed at once, so that other workers get some.
const AT_ONCE: usize = 16;

/// The wait after a call of a store that woke for nothing, which doubles while it does.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// What the pools of a worker share.
pub(super) struct Shared {
    /// How many sessions may run at once.
    pub(super) room: Arc<Semaphore>,
    back_off: Mutex<BackOff>,
    suspects: Arc<Suspects>,
    /// A run has ended.
    freed: Notify,
}

impl Shared {
    pub(super) fn new(room: usize) -> Self {
        let room = Arc::new(Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS)));
        let (back_off, suspects) = (Mutex::default(), Arc::default());
        Self { room, back_off, suspects, freed: Notify::new() }
    }

    pub(super) fn back_off(&self) -> MutexGuard<'_, BackOff> {
        self.back_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, session: &SessionId, agent: Option<&AgentId>, reason: String) {
        let agent_id = agent.map(AgentId::as_str).unwrap_or_default();
        tracing::warn!(
            target: "harness",
            session = %session,
            agent = agent_id,
            reason,
            "a worker could not run a session, and tries it again later"
        );
        self.back_off().failed(session, agent.cloned(), reason);
    }
}

/// Serves the agents of one store whose leases last as long.
pub(super) struct Pool {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) ttl: Duration,
    pub(super) served: HashMap<AgentId, Arc<Served>>,
    pub(super) shared: Arc<Shared>,
}

/// Agents of which sessions may be claimed, and how many.
struct Room {
    agents: Vec<AgentId>,
    permits: OwnedSemaphorePermit,
    count: u32,
}

impl Pool {
    /// Runs what is due until `draining`, then finishes what runs.
    pub(super) async fn run(self, mut draining: watch::Receiver<bool>) {
        let mut runs = JoinSet::new();
        let mut pause = FIRST_PAUSE;
        let drained = async {
            // The sender is dropped with the last handle.
            let _ = draining.wait_for(|draining| *draining).await;
        };
        let mut drained = pin!(drained);
        loop {
            while runs.try_join_next().is_some() {}
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            let work = async {
                let Some(room) = self.room() else { return freed.await };
                let agents = room.agents.clone();
                // What becomes due while the store is asked ends the wait.
                let mut wait = pin!(self.store.wait_due(&agents, POLL));
                let woken = poll_fn(|task| Poll::Ready(wait.as_mut().poll(task).is_ready())).await;
                let count = self.claim(room, &mut runs).await;
                if count > 0 && !self.shared.back_off().is_full() {
                    pause = FIRST_PAUSE;
                    return;
                }
                let begun = tokio::time::Instant::now();
                if !woken {
                    wait.await;
                }
                if begun.elapsed() < POLL {
                    // A store may wake for sessions that this worker cannot run.
                    sleep(pause).await;
                    pause = (pause * 2).min(POLL);
                } else {
                    pause = FIRST_PAUSE;
                }
            };
            tokio::select! {
                biased;
                () = drained.as_mut() => break,
                () = work => {}
            }
        }
        while runs.join_next().await.is_some() {}
    }

    /// Where there is room for more sessions; `None` if nowhere.
    fn room(&self) -> Option<Room> {
        let free = |served: &Served| served.room.available_permits();
        let with_room: Vec<_> = self.served.values().filter(|served| free(served) > 0).collect();
        // As many as any of them has room for, so that none gets too many.
        let least = with_room.iter().map(|served| free(served)).min()?;
        let most = least.min(self.shared.room.available_permits()).min(AT_ONCE);
        let count = u32::try_from(most).ok().filter(|count| *count > 0)?;
        let permits = Arc::clone(&self.shared.room).try_acquire_many_owned(count).ok()?;
        let agents = with_room.iter().map(|served| served.agent.clone()).collect();
        Some(Room { agents, permits, count })
    }

    /// Claims what is due and runs it. Says how many sessions that are.
    async fn claim(&self, room: Room, runs: &mut JoinSet<()>) -> usize {
        let Room { agents, mut permits, count } = room;
        let mut except = self.shared.back_off().waiting();
        except.extend(self.shared.suspects.waiting());
        let request = DueRequest::new(agents).except(except).limit(count);
        let (claimed, failed) = match LeaseGuard::claim_due(&self.store, request, self.ttl).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(target: "harness", %error, "a worker could not ask its store");
                return 0;
            }
        };
        for (session, error) in failed {
            self.shared.failed(&session, None, error.to_string());
        }
        let count = claimed.len();
        for (lease, claimed) in claimed {
            let agent = claimed.summary.as_ref().map(|summary| &summary.agent);
            let served = agent.and_then(|agent| self.served.get(agent));
            // A lease that is not used is released when it is dropped.
            let Some(served) = served else { continue };
            let own = Arc::clone(&served.room).try_acquire_owned();
            let (Some(total), Ok(own)) = (permits.split(1), own) else { continue };
            runs.spawn(work(
                Arc::clone(served),
                Arc::clone(&self.shared),
                lease,
                claimed,
                [total, own],
            ));
        }
        count
    }
}

/// Runs one session.
async fn work(
    served: Arc<Served>,
    shared: Arc<Shared>,
    lease: LeaseGuard,
    claimed: Claimed,
    room: [OwnedSemaphorePermit; 2],
) {
    let session = claimed.lease.session.clone();
    // A panic of the program's code ends only this task.
    let gate = Arc::new(Gate::new(Arc::clone(&shared.suspects), session.clone()));
    let run = served.run(lease, claimed, Arc::clone(&gate) as Arc<dyn Admission>);
    let done = tokio::spawn(run).await;
    gate.leave();
    match done {
        Ok(Done::NotNow) => {}
        Ok(Done::Progress) => shared.back_off().succeeded(&session),
        Ok(Done::Nothing) => {
            shared.failed(&session, Some(&served.agent), "it has nothing to do".into());
        }
        Ok(Done::Failed(reason)) => shared.failed(&session, Some(&served.agent), reason),
        Err(error) => shared.failed(&session, Some(&served.agent), error.to_string()),
    }
    drop(room);
    shared.freed.notify_waiters();
}
