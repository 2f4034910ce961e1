//! The queue of one observer and the thread that drains it.
//!
//! Feeding never blocks. The worker thread starts with the first event. It ends when the last
//! feeder is dropped and the queue is empty. A flush waits for the events fed so far, but not
//! indefinitely: a shared watchdog thread releases the runs that wait for a stuck observer. Neither
//! uses the runtime's clock, which tests pause.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Event, Observer};

/// How long a run that settles waits for an observer.
const GRACE: Duration = Duration::from_secs(1);
/// How many events an observer may have pending before it is dropped.
const MOST_PENDING: usize = 65_536;
/// How many events an observer may have pending before it misses tokens. Other events have room.
const MOST_TOKENS: usize = 4_096;

/// The feeding end of an observer's queue. The worker ends when the last one is dropped.
pub(super) struct Feed {
    queue: Arc<Queue>,
}

struct Queue {
    observer: Box<dyn Observer>,
    state: Mutex<State>,
    fed: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Arc<Event>>,
    taken: u64,
    done: u64,
    waiting: Vec<Waiter>,
    working: bool,
    closed: bool,
    disconnected: bool,
    /// Whether it has missed tokens.
    missed_tokens: bool,
    /// The value of `done` when a flush last gave up. No flush waits again until it grows.
    stuck_at: Option<u64>,
}

/// A run that settles: released when `upto` events are done, or at `due`.
struct Waiter {
    upto: u64,
    due: Instant,
    _release: oneshot::Sender<()>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    pub(super) fn new(observer: impl Observer) -> Self {
        let observer = Box::new(observer);
        Self { queue: Arc::new(Queue { observer, state: Mutex::default(), fed: Condvar::new() }) }
    }

    pub(super) fn wants_tokens(&self) -> bool {
        self.queue.observer.wants_tokens()
    }

    pub(super) fn feed(&self, event: Arc<Event>) {
        let mut state = self.queue.lock();
        if state.disconnected {
            return;
        }
        if event.kind.is_token() && state.pending.len() >= MOST_TOKENS {
            if !std::mem::replace(&mut state.missed_tokens, true) {
                tracing::warn!(pending = MOST_TOKENS, "observer is too slow and misses tokens");
            }
            return;
        }
        if state.pending.len() >= MOST_PENDING {
            state.disconnected = true;
            state.pending.clear();
            state.waiting.clear();
            tracing::error!(
                events = MOST_PENDING,
                "observer has too many pending events and receives no more (it must not block)"
            );
            return;
        }
        state.pending.push_back(event);
        state.taken += 1;
        if !state.working {
            let queue = Arc::clone(&self.queue);
            let worker = std::thread::Builder::new().name("harness-observer".into());
            match worker.spawn(move || queue.work()) {
                Ok(_) => state.working = true,
                Err(error) => {
                    state.disconnected = true;
                    tracing::error!(
                        %error,
                        "failed to start the thread of an observer: it receives no events"
                    );
                }
            }
        }
        self.queue.fed.notify_one();
    }

    /// Waits until the observer has handled every event fed so far, or the grace time is over.
    pub(super) async fn flush(&self) {
        let due = Instant::now() + GRACE;
        let caught_up = {
            let mut state = self.queue.lock();
            if state.disconnected || state.done == state.taken || state.stuck_at == Some(state.done)
            {
                return;
            }
            let (release, caught_up) = oneshot::channel();
            let upto = state.taken;
            state.waiting.push(Waiter { upto, due, _release: release });
            caught_up
        };
        watch(&self.queue, due);
        // Either thread releases this by dropping the other end.
        let _ = caught_up.await;
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.fed.notify_one();
    }
}

impl Queue {
    fn work(&self) {
        loop {
            let event = {
                let mut state = self.lock();
                loop {
                    if let Some(event) = state.pending.pop_front() {
                        break event;
                    }
                    if state.closed {
                        state.working = false;
                        return;
                    }
                    state = self.fed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            if catch_unwind(AssertUnwindSafe(|| self.observer.on_event(&event))).is_err() {
                tracing::error!(%event, "observer panicked");
            }
            let mut state = self.lock();
            state.done += 1;
            let done = state.done;
            state.waiting.retain(|waiter| waiter.upto > done);
        }
    }

    fn give_up(&self, due: Instant) {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.retain(|waiter| waiter.due > due);
        if state.waiting.len() < before {
            state.stuck_at = Some(state.done);
            tracing::warn!(
                behind = state.taken - state.done,
                "run settled before an observer handled all events"
            );
        }
    }
}

/// Makes the watchdog release the runs that still wait for `queue` at `due`.
fn watch(queue: &Arc<Queue>, due: Instant) {
    type Watched = (Instant, Arc<Queue>);
    static WATCHDOG: OnceLock<Option<mpsc::Sender<Watched>>> = OnceLock::new();
    let watchdog = WATCHDOG.get_or_init(|| {
        let (send, watched) = mpsc::channel::<Watched>();
        let thread = std::thread::Builder::new().name("harness-watchdog".into());
        let spawned = thread.spawn(move || {
            // All wait equally long, so they are due in the order they came.
            for (due, queue) in watched {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                queue.give_up(due);
            }
        });
        spawned.ok().map(|_| send)
    });
    let watched = (due, Arc::clone(queue));
    let sent = watchdog.as_ref().is_some_and(|watchdog| watchdog.send(watched).is_ok());
    if !sent {
        queue.give_up(due);
    }
}
