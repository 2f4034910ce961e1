//! Threads for work that waits for the disk.
//!
//! A sync of a fast disk takes little longer than to wake a thread, and a run pays for that twice: for
//! the thread that syncs, and for its own, which rests meanwhile. So:
//!
//! - A thread that has finished its work looks for more during the time that a run needs for its next
//!   step. One does so at a time, lets other threads run meanwhile, and takes only what its own runtime
//!   has to do: a runtime that ends waits for its threads.
//! - A caller that waits alone, on a disk that was fast the last time, yields to the other tasks of its
//!   runtime instead of resting, for as long as a fast disk takes.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use harness::store::StoreError;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use super::error::unsure;

/// How long a thread looks for more work: a few times what it takes to wake one.
const LOOKS: Duration = Duration::from_micros(100);

/// The most that work on a fast disk takes: a few times what it takes to wake a thread. A caller that
/// waits this long in vain has spent a small part of what a slow disk takes, and rests the next time.
const BRIEF: Duration = Duration::from_micros(400);

type Work = Box<dyn FnOnce() + Send>;

/// Whether a thread looks for work, and what it was given.
#[derive(Default)]
enum Place {
    #[default]
    Empty,
    /// A thread of this runtime.
    Looking(Id),
    Given(Work),
}

struct Shared {
    place: Mutex<Place>,
    /// Whether work may have been given.
    given: AtomicBool,
    looks: Duration,
    brief: Duration,
    /// How many callers wait.
    waiting: AtomicUsize,
    /// Whether the work that ended last was brief.
    was_brief: AtomicBool,
}

/// A caller that waits for its work.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(of: &'a AtomicUsize) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Self(of)
    }

    fn is_alone(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs work on tokio's blocking threads.
#[derive(Clone)]
pub(crate) struct Threads(Arc<Shared>);

impl Default for Threads {
    fn default() -> Self {
        Self::new(LOOKS, BRIEF)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl Threads {
    fn new(looks: Duration, brief: Duration) -> Self {
        Self(Arc::new(Shared {
            place: Mutex::default(),
            given: AtomicBool::new(false),
            looks,
            brief,
            waiting: AtomicUsize::new(0),
            was_brief: AtomicBool::new(false),
        }))
    }

    /// Runs work on a thread that no other task needs; outside of a tokio runtime, on this one. The work
    /// is finished even if its future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Ok(runtime) = Handle::try_current() else { return work() };
        let (to, answer) = oneshot::channel();
        let work = Box::new(move || {
            // The caller may wait no more.
            let _ = to.send(work());
        });
        let id = runtime.id();
        if let Some(work) = self.0.give(id, work) {
            let shared = Arc::clone(&self.0);
            runtime.spawn_blocking(move || shared.serve(id, work));
        }
        self.0.answer(answer).await.unwrap_or_else(|_| {
            Err(unsure("work on the disk did not finish: its thread has ended".into(), None))
        })
    }
}

impl Shared {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives work to a thread of this runtime that looks for it. Returns it if there is none.
    fn give(&self, runtime: Id, work: Work) -> Option<Work> {
        let mut place = self.place();
        if !matches!(*place, Place::Looking(id) if id == runtime) {
            return Some(work);
        }
        *place = Place::Given(work);
        self.given.store(true, Ordering::Release);
        None
    }

    /// Waits for the answer to work that has begun.
    async fn answer<T>(&self, answer: oneshot::Receiver<T>) -> Result<T, RecvError> {
        let (waiting, started) = (Waiting::begin(&self.waiting), Instant::now());
        let is_brief = || started.elapsed() < self.brief;
        let yields = self.was_brief.load(Ordering::Relaxed);
        while yields && answer.is_empty() && waiting.is_alone() && is_brief() {
            tokio::task::yield_now().await;
        }
        let answer = answer.await;
        self.was_brief.store(is_brief(), Ordering::Relaxed);
        answer
    }

    /// Does this work, and what is given soon after it.
    fn serve(&self, runtime: Id, work: Work) {
        let mut next = Some(work);
        while let Some(work) = next.take() {
            work();
            next = self.look(runtime);
        }
    }

    fn look(&self, runtime: Id) -> Option<Work> {
        {
            let mut place = self.place();
            if !matches!(*place, Place::Empty) {
                return None;
            }
            *place = Place::Looking(runtime);
            self.given.store(false, Ordering::Relaxed);
        }
        let until = Instant::now() + self.looks;
        while !self.given.load(Ordering::Acquire) && Instant::now() < until {
            std::thread::yield_now();
        }
        match std::mem::take(&mut *self.place()) {
            Place::Given(work) => Some(work),
            Place::Empty | Place::Looking(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn that_look(looks: Duration) -> Threads {
        Threads::new(looks, Duration::ZERO)
    }

    async fn here(threads: &Threads) -> ThreadId {
        threads.run(|| Ok(thread::current().id())).await.unwrap()
    }

    async fn until_one_looks(threads: &Threads) {
        while !matches!(*threads.0.place(), Place::Looking(_)) {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until no thread has a clone but the one that looks.
    async fn until_the_others_have_ended(threads: &Threads) {
        while Arc::strong_count(&threads.0) > 2 {
            tokio::task::yield_now().await;
        }
    }

    /// Ends the thread that looks, which would look for an hour beside the other tests.
    async fn end_the_look(threads: &Threads) {
        until_one_looks(threads).await;
        *threads.0.place() = Place::Empty;
        threads.0.given.store(true, Ordering::Release);
    }

    #[test]
    fn a_thread_that_looks_for_work_is_given_the_next() {
        let threads = that_look(LONG);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let first = here(&threads).await;
            for _ in 0..100 {
                until_one_looks(&threads).await;
                assert_eq!(here(&threads).await, first);
            }
            end_the_look(&threads).await;
        });
    }

    #[test]
    fn one_thread_looks_and_the_others_end() {
        let threads = that_look(LONG);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (first, started) = std::sync::mpsc::channel::<()>();
            let both = tokio::join!(
                threads.run(move || {
                    started.recv().unwrap();
                    Ok(thread::current().id())
                }),
                threads.run(move || {
                    first.send(()).unwrap();
                    Ok(thread::current().id())
                }),
            );
            assert_ne!(both.0.unwrap(), both.1.unwrap());
            until_one_looks(&threads).await;
            until_the_others_have_ended(&threads).await;
            end_the_look(&threads).await;
        });
    }

    #[test]
    fn work_of_another_runtime_is_not_taken() {
        let threads = that_look(LONG);
        let one = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (of_this, of_another) = (one(), one());
        let first = of_this.block_on(async {
            let first = here(&threads).await;
            until_one_looks(&threads).await;
            first
        });
        assert_ne!(of_another.block_on(here(&threads)), first);
        // Where it ends only after the next work was taken, it is the one that looks.
        of_another.block_on(until_the_others_have_ended(&threads));
        assert_eq!(of_this.block_on(here(&threads)), first);
        of_this.block_on(end_the_look(&threads));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_work_is_done_once_also_when_it_is_given_as_a_thread_ends() {
        for looks in [Duration::ZERO, Duration::from_micros(20)] {
            let threads = that_look(looks);
            let all = (0..4_000_u64).map(|n| {
                let threads = threads.clone();
                tokio::spawn(async move {
                    let mut sum = 0;
                    for at in 0..5 {
                        sum += threads.run(move || Ok(n + at)).await.unwrap();
                    }
                    sum
                })
            });
            for (n, task) in (0..).zip(all.collect::<Vec<_>>()) {
                assert_eq!(task.await.unwrap(), 5 * n + 10);
            }
        }
    }

    #[test]
    fn a_caller_that_waits_alone_for_brief_work_yields() {
        let threads = Threads::new(Duration::ZERO, LONG);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            here(&threads).await;
            let (end, ended) = std::sync::mpsc::channel();
            let mut work = Box::pin(threads.run(move || Ok(ended.recv().unwrap())));
            let mut polls = 0;
            let done = std::future::poll_fn(|context| {
                polls += 1;
                if polls == 10 {
                    end.send("polled ten times").unwrap();
                }
                work.as_mut().poll(context)
            });
            assert_eq!(done.await.unwrap(), "polled ten times");
        });
    }

    #[test]
    fn callers_that_wait_together_rest() {
        let threads = Threads::new(Duration::ZERO, LONG);
        let (end, ended) = std::sync::mpsc::channel();
        let ended = Arc::new(Mutex::new(ended));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .on_thread_park(move || end.send(()).unwrap_or_default())
            .build()
            .unwrap();
        let work = || {
            let ended = Arc::clone(&ended);
            threads.run(move || Ok(ended.lock().unwrap().recv()))
        };
        runtime.block_on(async {
            here(&threads).await;
            while ended.lock().unwrap().try_recv().is_ok() {}
            let both = tokio::join!(work(), work());
            both.0.unwrap().and(both.1.unwrap()).unwrap();
        });
    }

    #[tokio::test]
    async fn work_that_panics_is_reported_and_the_next_is_done() {
        let threads = Threads::default();
        here(&threads).await;
        let failed = threads.run::<()>(|| std::panic::panic_any("for the test")).await;
        assert!(failed.unwrap_err().is_ambiguous());
        here(&threads).await;
    }
}
