//! 1,000 stored sessions at once, of 20 steps each: a step yields once, like one that waits for a
//! call, and appends a message of 200 bytes. Beside the same by hand with a log in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use harness::BuildError;
use harness::prelude::*;
use harness::store::MemoryStore;

use super::counting::peak;
use super::floor::BoxFuture;
use super::growing::{Next, Step, Talk, message};
use super::{Figure, block_on, compare, failed};

const SESSIONS: usize = 1_000;
const STEPS: usize = 20;
/// The most megabytes that all of them may take.
const MOST: f64 = 30.0;

async fn say(talk: View<Talk>, _cx: Cx<()>) -> StepResult<Talk> {
    tokio::task::yield_now().await;
    Ok(Talk::update().messages([message(talk.messages.len())]))
}

fn agent() -> Result<Agent<(), Talk>, BuildError> {
    let next = |talk: &Talk| if talk.messages.len() < STEPS { Next::More } else { Next::Enough };
    let harness = Harness::<(), Talk>::builder("sessions")
        .start(Step::Say)
        .steps(|define, step| match step {
            Step::Say => define.run(say).route(next, |signal| match signal {
                Next::More => to(Step::Say),
                Next::Enough => end(),
            }),
        })
        .build()?;
    Ok(harness.agent("sessions", ()))
}

/// Makes all sessions at once; each returns the length of its talk.
async fn all<F: Future<Output = usize> + Send + 'static>(session: impl Fn(usize) -> F) {
    let tasks: Vec<_> = (0..SESSIONS).map(|nth| tokio::spawn(session(nth))).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap_or(0), STEPS, "a session did not reach its end");
    }
}

fn ours(agent: &Agent<(), Talk>) {
    let agent = agent.clone().store(MemoryStore::new());
    block_on(all(|nth| {
        let request = agent.run(Talk::update(), ()).session(format!("s-{nth}"));
        async move {
            let outcome = request.await;
            outcome.ok().and_then(|it| it.state().map(|it| it.messages.len())).unwrap_or(0)
        }
    }));
}

/// An entry of a log.
#[derive(Serialize)]
struct Entry<'a> {
    seq: usize,
    message: &'a str,
}

type Logs = Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>>;

async fn by_hand(session: String, logs: Logs) -> Option<usize> {
    type Body = Box<dyn for<'a> Fn(&'a [String]) -> BoxFuture<'a, Vec<String>> + Send + Sync>;
    let say: Body = Box::new(|talk| {
        let nth = talk.len();
        Box::pin(async move {
            tokio::task::yield_now().await;
            vec![message(nth)]
        })
    });
    let mut talk: Vec<String> = Vec::new();
    while talk.len() < STEPS {
        for message in say(&talk).await {
            let entry = Entry { seq: talk.len(), message: &message };
            let entry = serde_json::to_vec(&entry).ok()?;
            let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
            logs.entry(session.clone()).or_default().push(entry);
            talk.push(message);
        }
    }
    Some(talk.len())
}

fn floor() {
    let logs = Logs::default();
    block_on(all(|nth| {
        let run = by_hand(format!("s-{nth}"), Arc::clone(&logs));
        async move { run.await.unwrap_or(0) }
    }));
}

/// Time for a step, and the most memory at a time beside its limit.
pub(super) fn sessions() -> Vec<Figure> {
    let Ok(agent) = agent() else { return vec![failed("sessions")] };
    let steps = (SESSIONS * STEPS) as u64;
    let time = compare(format!("sessions/{SESSIONS}"), steps, || ours(&agent), floor);
    let ours = peak(|| ours(&agent)) as f64 / 1e6;
    let unit = "MB, peak : limit";
    let case = format!("sessions-peak/{SESSIONS}");
    vec![time, Figure { case, ours, floor: MOST, unit, ratio: ours / MOST }]
}
