//! What the disk does to a store.

use std::os::unix::fs::PermissionsExt as _;

use harness::store::{Phase, SessionStore as _, StoreError};
use harness_store::FileStore;

use crate::support::{LONG, append, claim, files, id, message, open, page};

#[tokio::test]
async fn what_is_written_into_a_removed_directory_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"1", Some(Phase::Running)).await.unwrap();
    std::fs::remove_dir_all(dir.path()).unwrap();
    let found = append(&store, &lease, 1, b"2", None).await;
    assert!(matches!(found, Err(StoreError::Gone { .. })), "{found:?}");
    let found = store.send(&id("x"), &[message("k", "v")]).await;
    assert!(matches!(found, Err(StoreError::Gone { .. })), "{found:?}");
}

#[tokio::test]
async fn no_other_user_may_read_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store")).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
    store.renew(&lease, LONG).await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    let mut kinds = 0;
    for kind in ["log", "checkpoint", "lease"] {
        for file in files(dir.path(), kind) {
            assert_eq!(mode(&file) & 0o777, 0o600, "{}", file.display());
            assert_eq!(mode(file.parent().unwrap()) & 0o777, 0o700);
            kinds += 1;
        }
    }
    assert_eq!(kinds, 3);
    assert_eq!(mode(&dir.path().join("store")) & 0o777, 0o700);
}

#[tokio::test]
async fn an_id_is_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let store = open(&root).await;
    let long = "ü".repeat(512);
    let hostile = ["../../x", "/etc/passwd", "nul\0", "a\nb", " ", ".", "..", "日本", &long];
    for name in hostile {
        let lease = claim(&store, &id(name)).await;
        append(&store, &lease, 0, name.as_bytes(), Some(Phase::Ended)).await.unwrap();
    }
    let fresh = open(&root).await;
    for name in hostile {
        let page = page(&fresh, &id(name)).await.unwrap().unwrap();
        assert_eq!(page.entries[0].bytes, name.as_bytes());
    }
    let rows = fresh.list(&harness::store::Filter::sessions(), None, 100).await.unwrap().rows;
    assert_eq!(rows.len(), hostile.len());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(files(&root, "log").len(), hostile.len());
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(FileStore::open(&file).await.is_err());
    // No user may write to `/proc`, not even root, who may write to a read-only directory.
    let found = FileStore::open("/proc/harness").await;
    assert!(found.is_err(), "{found:?}");
}

#[tokio::test]
async fn a_removed_session_leaves_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"secret", Some(Phase::Ended)).await.unwrap();
    store.renew(&lease, LONG).await.unwrap();
    store.remove(&lease, harness::store::Remove::All).await.unwrap();
    for kind in ["log", "checkpoint", "lease", "next"] {
        assert_eq!(files(dir.path(), kind), Vec::<std::path::PathBuf>::new());
    }
    let again = store.claim(&id("x"), LONG).await.unwrap();
    assert_eq!(again.head.0, 0);
    let old = append(&store, &lease, 0, b"old", Some(Phase::Ended)).await;
    assert!(matches!(old, Err(StoreError::Fenced { .. })), "{old:?}");
}
