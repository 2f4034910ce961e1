use std::path::{Path, PathBuf};
use std::process::Command;

use harness::SessionId;
use harness::testing::{Contract, Damage, Verdict, child_worker};
use harness_store::{FileStore, FileStoreOptions, Sync};

use crate::shared_contract;
use crate::support::files;

const CHILD: &str = "HARNESS_STORE_CONTRACT_DIR";

/// Each handle is a store of its own on the same directory, as if in a process of its own.
fn contract(dir: &Path, sync: Sync) -> Contract {
    let dir = dir.to_owned();
    Contract::new(move || {
        let dir = dir.clone();
        async move { FileStoreOptions::new().sync(sync).open(dir).await.unwrap() }
    })
    .max_batch(FileStore::MAX_BATCH)
}

/// What the trait of stores does not say how to do.
fn outside(contract: Contract, dir: &Path) -> Contract {
    let [damaged, looked_at, shared] = [dir.to_owned(), dir.to_owned(), dir.to_owned()];
    contract
        .damage(move |session, how| {
            let dir = damaged.clone();
            async move { damage(&log_of(&dir, &session), &session, how) }
        })
        .stored(move |session| {
            let dir = looked_at.clone();
            async move { std::fs::read(log_of(&dir, &session)).unwrap() }
        })
        .child(move |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "contract::child", "--nocapture", "--test-threads=1"]);
            command.env(CHILD, &shared);
            command
        })
}

/// What stands in the log of a session and in no other.
fn name_of(session: &SessionId) -> String {
    format!("\"id\":\"{session}\"")
}

pub(crate) fn log_of(dir: &Path, session: &SessionId) -> PathBuf {
    let name = name_of(session);
    let is_its = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(name.len()).any(|found| found == name.as_bytes())
    };
    files(dir, "log").into_iter().find(is_its).unwrap()
}

pub(crate) fn damage(log: &Path, session: &SessionId, how: Damage) -> bool {
    let mut bytes = std::fs::read(log).unwrap();
    match how {
        Damage::Flip => {
            let text = b"second entry";
            let at = bytes.windows(text.len()).position(|found| found == text).unwrap();
            bytes[at] ^= 1;
        }
        Damage::CutTail => {
            let begin = bytes.windows(2).rposition(|found| found == b"\n\n").unwrap();
            bytes.truncate(begin.midpoint(bytes.len()));
        }
        Damage::NewerFormat => {
            let body = format!("H2 {{{}}} whatever comes", name_of(session));
            bytes = format!("\n{:08x}{body}\n", crc32fast::hash(body.as_bytes())).into();
        }
        _ => return false,
    }
    std::fs::write(log, bytes).unwrap();
    true
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child() {
    if let Some(dir) = std::env::var_os(CHILD) {
        child_worker(FileStore::open(dir).await.unwrap()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let report = outside(contract(dir.path(), Sync::Flush), dir.path()).run().await;
    report.assert();
    let kept = report.checked.iter().filter(|checked| checked.verdict == Verdict::Kept);
    assert_eq!(kept.count(), Contract::clauses().count(), "{report}");
}

#[tokio::test]
async fn every_clause_is_kept_without_syncs_on_one_thread() {
    let dir = tempfile::tempdir().unwrap();
    contract(dir.path(), Sync::Never).check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_with_few_open_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let open = move || {
        let path = path.clone();
        async move {
            let options = FileStoreOptions::new().sync(Sync::Never).open_files(2);
            options.open(path).await.unwrap()
        }
    };
    Contract::new(open).check().await;
}

#[tokio::test]
async fn clones_of_a_store_share_its_leases() {
    let dir = tempfile::tempdir().unwrap();
    shared_contract::by_clones(FileStore::open(dir.path()).await.unwrap()).await;
}
