use std::path::Path;
use std::process::Command;

use harness::store::MemoryStore;
use harness::testing::{Call, Contract, Damage, Faulty, Report, Verdict, child_worker};
use harness_store::Encrypted;

use super::{file, keys, memory};

const CHILD: &str = "HARNESS_STORE_ENCRYPTED_DIR";

/// A page ends where the encrypted bytes reach the limit, and those are more.
const LIMIT: &str = "page-holds-no-more-than-the-limit";

fn encrypted(contract: Contract) -> Contract {
    contract
        .skip(LIMIT, "the limit of a page counts encrypted bytes")
        .skip(TOO_LARGE, "the store inside has the limit")
        .max_batch(SMALL)
}

/// The store inside refuses a batch of 64 MiB, and to encrypt them takes minutes where nothing is
/// optimized. So the batches of the suite are small.
const SMALL: u64 = 16 << 10;
const TOO_LARGE: &str = "too-large-batch-changes-nothing";

fn skipped(report: &Report) -> Vec<&str> {
    report.assert();
    let skipped = report.checked.iter().filter(|checked| checked.verdict != Verdict::Kept);
    skipped.map(|checked| checked.clause.as_str()).collect()
}

fn child(contract: Contract, dir: &Path) -> Contract {
    let dir = dir.to_owned();
    contract.child(move |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "encrypted::contract::child_process";
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
        command.env(CHILD, &dir);
        command
    })
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child_process() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let dir = Path::new(&dir);
    #[cfg(feature = "sqlite")]
    if dir.join("sessions.db").exists() {
        return child_worker(super::sqlite(dir).await).await.unwrap();
    }
    child_worker(file(dir).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let [path, damaged, looked_at] = [(); 3].map(|()| dir.path().to_owned());
    let contract = Contract::new(move || {
        let path = path.clone();
        async move { file(&path).await }
    })
    .damage(move |session, how| {
        let dir = damaged.clone();
        async move {
            let log = crate::contract::log_of(&dir, &session);
            if how == Damage::Flip {
                // The texts that the suite has written are not in it.
                let mut bytes = std::fs::read(&log).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(log, bytes).unwrap();
                return true;
            }
            crate::contract::damage(&log, &session, how)
        }
    })
    .stored(move |session| {
        let dir = looked_at.clone();
        async move { std::fs::read(crate::contract::log_of(&dir, &session)).unwrap() }
    });
    let report = child(encrypted(contract), dir.path()).run().await;
    assert_eq!(skipped(&report), [TOO_LARGE, LIMIT], "{report}");
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let [path, damaged, looked_at] = [(); 3].map(|()| dir.path().to_owned());
    let contract = Contract::new(move || {
        let path = path.clone();
        async move { super::sqlite(&path).await }
    })
    .damage(move |session, how| {
        let dir = damaged.clone();
        async move {
            let changed = |conn: rusqlite::Connection| {
                conn.execute(
                    "UPDATE batch SET entries = CAST(zeroblob(length(entries)) AS BLOB)
                     WHERE place IN (SELECT place FROM batch WHERE place >> 32 =
                     (SELECT key FROM session WHERE id = ?) ORDER BY place LIMIT 1 OFFSET 1)",
                    [session.as_str().as_bytes()],
                )
            };
            how == Damage::Flip && changed(crate::sqlite::raw(&dir)).unwrap() == 1
        }
    })
    .stored(move |session| {
        let dir = looked_at.clone();
        async move { crate::sqlite::contract::stored(&dir, &session) }
    });
    let report = child(encrypted(contract), dir.path()).run().await;
    let no_such_damage =
        ["torn-tail-is-set-aside", "newer-format-is-reported", "newer-format-is-left-alone"];
    assert_eq!(skipped(&report), [&[TOO_LARGE, LIMIT], &no_such_damage[..]].concat(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept_in_memory_and_where_calls_may_fail() {
    let inner = MemoryStore::new();
    let of_encrypted = {
        let inner = inner.clone();
        encrypted(Contract::new(move || {
            let store = memory(&inner);
            async move { store }
        }))
        .run()
        .await
    };
    let plain = MemoryStore::new();
    let of_memory = Contract::new(move || {
        let store = plain.clone();
        async move { store }
    })
    .skip(LIMIT, "as above")
    .skip(TOO_LARGE, "as above")
    .run()
    .await;
    assert_eq!(skipped(&of_encrypted), skipped(&of_memory), "{of_encrypted}");

    encrypted(Contract::new(move || {
        let store = Faulty::new(inner.clone());
        store.faults().before(Call::Append, |_| false);
        async move { Encrypted::new(store, keys()) }
    }))
    .check()
    .await;
}
