//! The memory that streams leave: three rounds of 1,000 at once, on two threads. No stream of a round
//! ends before all have begun.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, Arc};
use std::thread;

use harness::llm::user;
use tokio::runtime::Handle;
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinSet;

use super::super::counting::left;
use super::super::{Figure, failed, scaled};
use super::server::{Http, Server};
use super::{Agent, Chat, Ctx, agent};

const STREAMS: usize = 1_000;
const WORKERS: usize = 2;
const ROUNDS: usize = 3;
/// The most KiB that the heap may grow from the end of the first round to the end of the last.
const MOST: f64 = 64.0;

/// What the workers share.
struct Shared {
    agent: Agent<Ctx, Chat>,
    /// Workers wait here for each other while they drive their connections, which all of them use.
    together: Barrier,
    /// The tasks of each worker.
    tasks: [AtomicUsize; WORKERS],
    /// They wait here between two rounds, so that no round frees what another one has allocated.
    between: sync::Barrier,
}

/// A worker has a thread, where its allocations are counted.
struct Worker {
    shared: Arc<Shared>,
    index: usize,
    /// Notified when the thread has nothing to do.
    idle: Arc<Notify>,
}

impl Worker {
    /// The bytes that each round leaves.
    fn rounds(self) -> Option<[i64; ROUNDS]> {
        let idle = Arc::clone(&self.idle);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || idle.notify_waiters())
            .build()
            .ok()?;
        let left = [(); ROUNDS].map(|()| {
            let left = left(|| runtime.block_on(self.round()));
            self.shared.between.wait();
            left
        });
        Some(left)
    }

    /// Its share of a round.
    async fn round(&self) {
        let mut streams = JoinSet::new();
        for _ in 0..scaled(STREAMS) / WORKERS {
            let turn = self.shared.agent.run(Chat::update().talk([user("hi")]), ());
            streams.spawn(async move {
                let outcome = turn.await.ok();
                outcome.and_then(|it| it.state()?.talk.last_text()).map_or(0, |text| text.len())
            });
        }
        while let Some(said) = streams.join_next().await {
            assert_eq!(said.unwrap_or(0), 2_000, "a stream has another reply");
        }
        self.shared.together.wait().await;
        self.settle().await;
    }

    /// Drives the connections until all workers have nothing to do, and no task has ended meanwhile:
    /// connections are put back or closed by tasks that run after the last reply.
    async fn settle(&self) {
        let mut last = None;
        loop {
            self.idle.notified().await;
            let tasks = Handle::current().metrics().num_alive_tasks();
            self.shared.tasks[self.index].store(tasks, Ordering::SeqCst);
            self.shared.together.wait().await;
            let all: usize = self.shared.tasks.iter().map(|it| it.load(Ordering::SeqCst)).sum();
            self.shared.together.wait().await;
            if last.replace(all) == Some(all) {
                return;
            }
        }
    }
}

/// The bytes that each round leaves.
fn rounds(http: Http) -> Option<[i64; ROUNDS]> {
    raise_open_files();
    let server = Server::start(http, scaled(STREAMS)).ok()?;
    let shared = Arc::new(Shared {
        agent: agent(&server, http, true).ok()?,
        together: Barrier::new(WORKERS),
        tasks: Default::default(),
        between: sync::Barrier::new(WORKERS),
    });
    let workers: Vec<_> = (0..WORKERS)
        .map(|index| {
            let worker = Worker { shared: Arc::clone(&shared), index, idle: Arc::default() };
            thread::spawn(move || worker.rounds())
        })
        .collect();
    let mut sum = [0; ROUNDS];
    for worker in workers {
        let each = worker.join().ok()??;
        sum.iter_mut().zip(each).for_each(|(sum, left)| *sum += left);
    }
    Some(sum)
}

/// Each stream may have a connection, with two ends in this process.
fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// What the rounds after the first leave, beside its limit. Over HTTP/1.1 each stream has a
/// connection, which is kept with its buffers.
pub(in super::super) fn streams() -> Vec<Figure> {
    [("llm-streams/http2", Http::Two), ("llm-streams/http1", Http::One)]
        .map(|(case, http)| {
            let Some([_, later @ ..]) = rounds(http) else { return failed(case) };
            let grown = later.iter().sum::<i64>() as f64 / 1024.0;
            let unit = "KiB left : limit";
            Figure { case: case.to_owned(), ours: grown, floor: MOST, unit, ratio: grown / MOST }
        })
        .into()
}
