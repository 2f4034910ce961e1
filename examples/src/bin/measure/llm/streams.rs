//! The memory that streams leave: three rounds of 1,000 at once, on two threads. No stream of a round
//! ends before all have begun.

use std::sync::Arc;
use std::thread;

use harness::llm::user;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::super::counting::left;
use super::super::{Figure, failed};
use super::server::{Http, Server};
use super::{Agent, Chat, Ctx, agent};

const STREAMS: usize = 1_000;
const WORKERS: usize = 2;
const ROUNDS: usize = 3;
/// The most KiB that the heap may grow from the end of the first round to the end of the last.
const MOST: f64 = 64.0;

/// The share of one worker in a round. It drives its connections until all workers are done, since
/// they share them.
async fn share(agent: &Agent<Ctx, Chat>, done: &Barrier) {
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS / WORKERS {
        let turn = agent.run(Chat::update().talk([user("hi")]), ());
        streams.spawn(async move {
            let outcome = turn.await.ok();
            outcome.and_then(|it| it.state()?.talk.last_text()).map_or(0, |text| text.len())
        });
    }
    while let Some(said) = streams.join_next().await {
        assert_eq!(said.unwrap_or(0), 2_000, "a stream has another reply");
    }
    done.wait().await;
}

/// The bytes that each round leaves. Each worker has a thread, where its allocations are counted.
fn rounds(http: Http) -> Option<[i64; ROUNDS]> {
    raise_open_files();
    let server = Server::start(http, STREAMS).ok()?;
    let agent = agent(&server, http, true).ok()?;
    let done = Arc::new(Barrier::new(WORKERS));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (agent, done) = (agent.clone(), Arc::clone(&done));
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.ok()?;
                Some([(); ROUNDS].map(|()| left(|| runtime.block_on(share(&agent, &done)))))
            })
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
