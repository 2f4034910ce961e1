//! A process that writes until it is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child as Process, Stdio};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq, SessionId};
use crate::store::{Batch, Lease, NewEntry, Page, Phase, SessionStore, SessionSummary, StoreError};

use super::hooks::Hooks;
use super::world::{Broken, Kept};

const SESSION: &str = "HARNESS_CONTRACT_SESSION";
const AGENT: &str = "HARNESS_CONTRACT_AGENT";
const TTL: &str = "HARNESS_CONTRACT_TTL";
const MAX_BATCH: &str = "HARNESS_CONTRACT_MAX_BATCH";

/// Begins what the worker says: on its standard output others may speak, too.
const SAYS: &str = "harness contract: ";
const CLAIMED: &str = "claimed";
const ACKNOWLEDGED: &str = "acknowledged ";
const FAILED: &str = "failed: ";

/// The most batches of a worker, which may never be killed.
const MOST: u64 = 500;

/// What a process does that [`Contract::child`](super::Contract::child) has started: it claims a
/// session, appends one batch after the other and says on standard output of each that it was
/// acknowledged, until it is killed or its standard input ends. `store` is the store that is
/// checked, as this process opens it.
///
/// # Errors
/// [`StoreError::Unsuitable`] if this process was not started by the suite; otherwise the error of
/// the store, which the suite reports, too.
pub async fn child_worker(store: impl SessionStore) -> Result<(), StoreError> {
    let worked = work(&store).await;
    if let Err(error) = &worked {
        say(&format!("{FAILED}{error}"));
    }
    worked
}

async fn work(store: &dyn SessionStore) -> Result<(), StoreError> {
    let setting = |name| {
        std::env::var(name).map_err(|_| {
            StoreError::Unsuitable(format!("`{name}` is not set: the suite starts this process"))
        })
    };
    let session = SessionId::new(setting(SESSION)?)
        .map_err(|error| StoreError::Unsuitable(error.to_string()))?;
    let ttl = setting(TTL)?
        .parse()
        .map_err(|_| StoreError::Unsuitable(format!("`{TTL}` is no number of milliseconds")))?;
    let agent = AgentId::new(setting(AGENT)?);
    let max = std::env::var(MAX_BATCH).ok().and_then(|max| max.parse().ok());
    let claimed = store.claim(&session, Duration::from_millis(ttl)).await?;
    let mut head = claimed.head;
    if !say(CLAIMED) {
        return Ok(());
    }
    for _ in 0..MOST {
        head = write(store, &claimed.lease, &agent, head, max).await?;
        if !say(&format!("{ACKNOWLEDGED}{head}")) {
            return Ok(());
        }
    }
    // It holds the session until its standard input ends.
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().lock().read(&mut [0])).await;
    drop(ended);
    Ok(())
}

/// Writes a line at once. Whether the suite still reads it.
fn say(what: &str) -> bool {
    // Not printed: a test harness may keep to itself what is.
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{SAYS}{what}\n").as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// How many entries the batch after `head` has, if one begins there: 1, 2, 3, 1, 2, 3, ..
fn entries_after(head: Seq) -> Option<u64> {
    match head.0 % 6 {
        0 => Some(1),
        1 => Some(2),
        3 => Some(3),
        _ => None,
    }
}

/// The bytes of an entry: its seq, and so much after it that some fill several pages of memory,
/// for a kill to come in the middle of them.
fn entry(seq: u64, max_batch: Option<u64>) -> Vec<u8> {
    let long = if seq.is_multiple_of(5) { 60_000 } else { seq * 37 % 400 };
    let len = max_batch.map_or(long, |max| long.min(max / 4));
    let mut bytes = format!("entry {seq} ").into_bytes();
    bytes.resize(bytes.len().max(usize::try_from(len).unwrap_or(0)), b'a' + (seq % 26) as u8);
    bytes
}

/// Appends the batch after `head`. One in three is flushed: the others, too,
/// outlive the process.
pub(super) async fn write(
    store: &dyn SessionStore,
    lease: &Lease,
    agent: &AgentId,
    head: Seq,
    max: Option<u64>,
) -> Result<Seq, StoreError> {
    let end = end_after(head);
    let bytes: Vec<_> = (head.0 + 1..=end.0).map(|seq| entry(seq, max)).collect();
    let entries: Vec<_> = bytes.iter().map(|bytes| NewEntry { bytes, snapshot: false }).collect();
    let summary = SessionSummary::new(agent.clone(), Phase::Running, "Step");
    let batch = Batch {
        after: head,
        at: UtcMillis(1_000 + head.0),
        entries: &entries,
        summary: Some(&summary),
        flush: head.0.is_multiple_of(2),
        ..Batch::default()
    };
    Ok(store.append(lease, batch).await?.head)
}

/// The end of the batch after `head`.
pub(super) fn end_after(head: Seq) -> Seq {
    Seq(head.0 + entries_after(head).unwrap_or(1))
}

/// Makes sure that a session holds batches of workers, each whole, and every acknowledged one.
pub(super) fn check(page: &Page, acknowledged: Seq, max_batch: Option<u64>) -> Kept {
    let head = page.head;
    ensure!(head >= acknowledged, "{acknowledged} was acknowledged, and the head is {head}");
    ensure!(entries_after(head).is_some(), "a part of a batch is there: the head is {head}");
    same!("the number of entries", page.entries.len() as u64, head.0);
    for (found, seq) in page.entries.iter().zip(1..) {
        same!("the seq", found.seq, Seq(seq));
        ensure!(found.bytes == entry(seq, max_batch), "entry {seq} is not what was appended");
    }
    Ok(())
}

/// A worker, as the suite sees it. It is killed when this is dropped.
pub(super) struct Child {
    process: Process,
    said: UnboundedReceiver<String>,
}

impl Child {
    pub(super) fn start(
        hooks: &Hooks,
        session: &SessionId,
        agent: &AgentId,
        ttl: Duration,
    ) -> Kept<Self> {
        let mut command = hooks.child(session)?;
        command
            .env(SESSION, session.as_str())
            .env(AGENT, agent.as_str())
            .env(TTL, ttl.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(max) = hooks.max_batch {
            command.env(MAX_BATCH, max.to_string());
        }
        let process = command.spawn();
        let mut process =
            process.map_err(|error| Broken(format!("{command:?} cannot be started: {error}")))?;
        let (send, said) = unbounded_channel();
        if let Some(out) = process.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line);
                    if let Some((_, line)) = line.split_once(SAYS)
                        && send.send(line.to_owned()).is_err()
                    {
                        return;
                    }
                }
            });
        }
        Ok(Self { process, said })
    }

    async fn hear(&mut self) -> Kept<String> {
        match self.said.recv().await {
            Some(line) => match line.strip_prefix(FAILED) {
                Some(why) => Err(Broken(format!("the other process failed: {why}"))),
                None => Ok(line),
            },
            None => {
                // It says nothing more; whether it has ended, too, is not waited for.
                let status = self.process.try_wait();
                Err(Broken(format!(
                    "the other process says no more ({status:?}; does it call `child_worker`, and \
                     keep its standard output?)"
                )))
            }
        }
    }

    /// Waits until it has the session.
    pub(super) async fn claimed(&mut self) -> Kept {
        same!("what the other process says first", self.hear().await?, CLAIMED);
        Ok(())
    }

    /// The head after the next batch that is acknowledged.
    pub(super) async fn acknowledged(&mut self) -> Kept<Seq> {
        let line = self.hear().await?;
        head(&line).ok_or_else(|| Broken(format!("the other process says {line:?}")))
    }

    /// Kills it. The head that it has acknowledged last since it was last heard, if it has.
    pub(super) async fn kill(mut self) -> Kept<Option<Seq>> {
        self.end();
        let mut last = None;
        while let Some(line) = self.said.recv().await {
            if let Some(why) = line.strip_prefix(FAILED) {
                return Err(Broken(format!("the other process failed: {why}")));
            }
            last = head(&line).or(last);
        }
        Ok(last)
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

fn head(line: &str) -> Option<Seq> {
    line.strip_prefix(ACKNOWLEDGED)?.parse().ok().map(Seq)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::{MemoryStore, ReadRequest};

    /// A session of these entries, one batch each.
    async fn page(entries: &[Vec<u8>]) -> Page {
        let store = MemoryStore::new();
        let id = SessionId::new("x").unwrap();
        let claimed = store.claim(&id, Duration::from_secs(60)).await.unwrap();
        let lease = claimed.lease;
        write(&store, &lease, &AgentId::new("a"), Seq(0), None).await.unwrap();
        for (bytes, after) in entries.iter().zip(1..) {
            let entries = &[NewEntry { bytes, snapshot: false }];
            let batch = Batch { after: Seq(after), entries, ..Batch::default() };
            store.append(&lease, batch).await.unwrap();
        }
        store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_part_of_a_batch_and_other_bytes_are_seen() {
        let whole = [entry(2, None), entry(3, None)];
        assert!(check(&page(&whole).await, Seq(3), None).is_ok());
        assert!(check(&page(&whole[..0]).await, Seq(1), None).is_ok());
        let why = |found: Kept| format!("{:?}", found.unwrap_err());
        let part = why(check(&page(&whole[..1]).await, Seq(1), None));
        assert!(part.contains("a part of a batch"), "{part}");
        let other = why(check(&page(&[entry(2, None), entry(2, None)]).await, Seq(1), None));
        assert!(other.contains("entry 3 is not what was appended"), "{other}");
        let lost = why(check(&page(&whole).await, Seq(6), None));
        assert!(lost.contains("6 was acknowledged"), "{lost}");
    }
}
