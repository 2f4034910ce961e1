//! What needs a disk that fails, or loses its power.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agents;
mod backup;
mod checkpoint;
mod copied;
mod failing;
mod foreign;
mod kept;
mod liveness;
mod power_loss;
pub(super) mod recording;
mod stalled;
mod start;
mod syncs;
mod zeros;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::store::{
    Appended, Batch, InboxSeq, Lease, Message, NewEntry, Page, Phase, ReadFrom, ReadRequest,
    SessionSummary, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};

use super::disk::Disk;
use super::inner::Inner;
use super::record::Prepared;
use super::store::{FileStore, FileStoreOptions};

const LONG: Duration = Duration::from_secs(600);

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn summary(phase: Phase) -> SessionSummary {
    serde_json::from_value(serde_json::json!({"agent": "a", "phase": phase, "step": "S"})).unwrap()
}

fn message(key: &str) -> Message {
    let (key, digest) = (key.to_owned(), key.to_owned());
    Message { key, digest, interrupt: None, expiry: false, body: b"body".to_vec() }
}

fn open(disk: &Arc<impl Disk + 'static>, dir: &Path) -> FileStore {
    FileStoreOptions::new().open_on(Arc::clone(disk) as Arc<dyn Disk>, dir).unwrap()
}

fn claim(inner: &Inner, session: &str) -> Result<Lease, StoreError> {
    inner.claim(&id(session), LONG).map(|claimed| claimed.lease)
}

fn append(
    inner: &Inner,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
    phase: Phase,
    flush: bool,
) -> Result<Appended, StoreError> {
    let summary = summary(phase);
    let entries = [NewEntry { bytes, snapshot: bytes.starts_with(b"snapshot") }];
    let plain = phase == Phase::Running && after > 0;
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(1_000 + after),
        entries: &entries,
        summary: (!plain).then_some(&summary),
        flush,
        ..Batch::default()
    };
    inner.append(lease, &Prepared::new(&batch)?)
}

fn page(inner: &Inner, session: &str, from: ReadFrom) -> Result<Option<Page>, StoreError> {
    inner.read(
        &id(session),
        ReadRequest::entries(from).with_messages_after(InboxSeq(0)).limit(u64::MAX),
    )
}
