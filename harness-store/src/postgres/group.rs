//! Appends that share a transaction, and so a sync of the server.
//!
//! While a few transactions are under way, what else is to be appended waits, and the next one takes
//! all of it. So a lone append is one statement at once, which its caller runs, and a thousand sessions
//! at work need far fewer transactions than they have steps. Each is answered after the commit of what
//! it was in. If the server cannot do one of them, or has to wait for its session, all of them are
//! undone, and each gets a transaction of its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use harness::store::{Appended, StoreError};
use tokio::sync::oneshot;

use super::append::Prepared;
use super::client::{Client, Together};
use super::error::{again, exhausted};

/// The most batches, and bytes, in one transaction.
const MAX_BATCHES: usize = 128;
const MAX_BYTES: i64 = 4 << 20;

struct Member {
    batch: Prepared,
    since: Instant,
    to: oneshot::Sender<Result<Appended, StoreError>>,
}

impl Member {
    fn answer(self, answer: Result<Appended, StoreError>) {
        // The caller may wait no more.
        let _ = self.to.send(answer);
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Member>,
    /// How many transactions are under way in tasks.
    lanes: usize,
    /// Whether a caller runs its append itself.
    is_alone: bool,
}

struct Shared {
    client: Client,
    queue: Mutex<Queue>,
}

#[derive(Clone)]
pub(crate) struct Groups(Arc<Shared>);

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").finish_non_exhaustive()
    }
}

impl Groups {
    pub(crate) fn new(client: Client) -> Self {
        Self(Arc::new(Shared { client, queue: Mutex::default() }))
    }

    pub(crate) async fn append(&self, batch: Prepared) -> Result<Appended, StoreError> {
        if let Some(_alone) = Alone::begin(&self.0) {
            return alone(&self.0.client, &batch).await;
        }
        let (to, answer) = oneshot::channel();
        if self.0.push(Member { batch, since: Instant::now(), to }) {
            let lane = Lane { of: Arc::clone(&self.0), ended: false };
            tokio::spawn(lane.run());
        }
        // Without an answer, the runtime of the transaction has ended.
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                what: "the runtime that was appending has ended (append it again)".into(),
                ambiguous: true,
                source: None,
            })
        })
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether there is to be one more lane.
    fn push(&self, member: Member) -> bool {
        let mut queue = self.queue();
        queue.waiting.push_back(member);
        let more = queue.lanes < self.client.lanes();
        queue.lanes += usize::from(more);
        more
    }

    /// What the next transaction does. If nothing waits, the lane ends.
    fn take(&self) -> Option<Vec<Member>> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut queue = self.queue();
        while let Some(member) = queue.waiting.pop_front() {
            // A server that hangs keeps no call for longer than a few time limits.
            if member.since.elapsed() > self.client.wait {
                member.answer(Err(exhausted(self.client.max_connections(), self.client.wait)));
                continue;
            }
            bytes += member.batch.bytes;
            if !group.is_empty() && bytes > MAX_BYTES {
                queue.waiting.push_front(member);
                break;
            }
            group.push(member);
            if group.len() == MAX_BATCHES {
                break;
            }
        }
        if group.is_empty() {
            queue.lanes -= 1;
            return None;
        }
        Some(group)
    }
}

/// The append of a caller that runs it itself, as nothing else is under way. It is no lane: one whose
/// caller does not continue keeps no other append waiting.
struct Alone<'a>(&'a Shared);

impl<'a> Alone<'a> {
    fn begin(of: &'a Shared) -> Option<Self> {
        let mut queue = of.queue();
        let begins = queue.lanes == 0 && !queue.is_alone;
        queue.is_alone |= begins;
        begins.then(|| Self(of))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.queue().is_alone = false;
    }
}

/// Runs one transaction after the other.
struct Lane {
    of: Arc<Shared>,
    ended: bool,
}

impl Lane {
    async fn run(mut self) {
        while let Some(group) = self.of.take() {
            commit(&self.of.client, group).await;
        }
        self.ended = true;
    }
}

/// The runtime may end while it waits. What no lane will take is answered.
impl Drop for Lane {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut queue = self.of.queue();
        queue.lanes -= 1;
        if queue.lanes == 0 {
            queue.waiting.clear();
        }
    }
}

async fn commit(client: &Client, mut group: Vec<Member>) {
    if group.len() == 1 {
        if let Some(member) = group.pop() {
            let answer = alone(client, &member.batch).await;
            member.answer(answer);
        }
        return;
    }
    // Transactions that lock several sessions in one order never wait for each other in a circle.
    group.sort_by(|one, other| one.batch.session().cmp(other.batch.session()));
    match together(client, &group).await {
        Together::Done(rows) => {
            for (member, rows) in group.into_iter().zip(rows) {
                match member.batch.judge(&rows) {
                    Some(answer) => member.answer(answer),
                    // One that waits for its session does not make the others wait.
                    None => {
                        let client = client.clone();
                        tokio::spawn(async move {
                            let answer = in_full(&client, &member.batch).await;
                            member.answer(answer);
                        });
                    }
                }
            }
        }
        Together::Undone => {
            for member in group {
                let client = client.clone();
                tokio::spawn(async move {
                    let answer = alone(&client, &member.batch).await;
                    member.answer(answer);
                });
            }
        }
        Together::Failed(error) => {
            for member in group {
                member.answer(Err(again(&error)));
            }
        }
    }
}

async fn together(client: &Client, group: &[Member]) -> Together {
    let flush = group.iter().any(|member| member.batch.flush);
    let sessions: Vec<&[u8]> = group.iter().map(|member| member.batch.session()).collect();
    let members = group.iter().zip(&sessions);
    let calls: Vec<_> =
        members.map(|(member, session)| member.batch.call(session, &flush)).collect();
    match client.connection().await {
        Ok(mut connection) => connection.together(&calls).await,
        Err(error) => Together::Failed(error),
    }
}

async fn alone(client: &Client, batch: &Prepared) -> Result<Appended, StoreError> {
    let session = batch.session();
    let rows = client.call(batch.call(&session, &batch.flush)).await?;
    match batch.judge(&rows) {
        Some(answer) => answer,
        // Boxed, as it is rare, so that the usual append is a small future.
        None => Box::pin(in_full(client, batch)).await,
    }
}

/// Appends one whose short statement has found that it cannot, or has the server report why not.
async fn in_full(client: &Client, batch: &Prepared) -> Result<Appended, StoreError> {
    let session = batch.session();
    let rows = client.call(batch.call_in_full(&session, &batch.flush)).await?;
    batch.judge_in_full(&rows)
}
