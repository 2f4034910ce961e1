use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::store::{
    Appended, Batch, InboxSeq, Lease, Message, NewEntry, Page, Phase, ReadRequest, SessionStore,
    SessionSummary, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::{FileStore, FileStoreOptions, Sync};

pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

pub(crate) fn summary(phase: Phase) -> SessionSummary {
    serde_json::from_value(serde_json::json!({"agent": "a", "phase": phase, "step": "S"})).unwrap()
}

pub(crate) fn message(key: &str, text: &str) -> Message {
    Message {
        key: key.into(),
        digest: text.into(),
        interrupt: None,
        expiry: false,
        body: text.into(),
    }
}

/// Without syncs: what is tested does not depend on them.
pub(crate) async fn open(dir: &Path) -> FileStore {
    FileStoreOptions::new().sync(Sync::Never).open(dir).await.unwrap()
}

pub(crate) async fn claim(store: &impl SessionStore, session: &SessionId) -> Lease {
    store.claim(session, LONG).await.unwrap().lease
}

pub(crate) async fn append(
    store: &impl SessionStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
    phase: Option<Phase>,
) -> Result<Appended, StoreError> {
    let summary = phase.map(summary);
    let entries = [NewEntry { bytes, snapshot: false }];
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(1_000 + after),
        entries: &entries,
        summary: summary.as_ref(),
        flush: true,
        ..Batch::default()
    };
    store.append(lease, batch).await
}

/// An entry of a session at work.
pub(crate) async fn append_running(
    store: &impl SessionStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<Appended, StoreError> {
    append(store, lease, after, bytes, Some(Phase::Running)).await
}

pub(crate) async fn page(
    store: &impl SessionStore,
    session: &SessionId,
) -> Result<Option<Page>, StoreError> {
    store
        .read(session, ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0)).limit(u64::MAX))
        .await
}

/// All of a session that is there.
pub(crate) async fn whole(store: &impl SessionStore, session: &SessionId) -> Page {
    page(store, session).await.unwrap().unwrap()
}

/// The files of a directory and below with this ending.
pub(crate) fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|kind| kind == ending) {
            found.push(path);
        }
    }
    found
}

pub(crate) fn log(dir: &Path) -> PathBuf {
    let mut logs = files(dir, "log");
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}
