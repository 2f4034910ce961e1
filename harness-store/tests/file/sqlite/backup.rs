use harness::store::{Filter, Phase, SessionStore as _, StoreError};
use harness_store::SqliteStore;

use super::{append, claim, open, page};
use crate::support::{id, message};

#[tokio::test]
async fn a_backup_has_everything_but_the_leases() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    for after in 0..10 {
        append(&store, &lease, after, b"entry", Some(Phase::Running)).await.unwrap();
    }
    store.send(&id("x"), &[message("k", "v")]).await.unwrap();
    let _only_claimed = claim(&store, &id("y")).await;
    let to = dir.path().join("backup.db");
    store.backup(&to).await.unwrap();
    // What comes later is not in it.
    append(&store, &lease, 10, b"later", None).await.unwrap();
    let again = store.backup(&to).await.unwrap_err();
    assert!(matches!(again, StoreError::Unsuitable(_)), "{again}");

    let restored = SqliteStore::open(&to).await.unwrap();
    let copied = page(&restored, &id("x")).await.unwrap().unwrap();
    let original = page(&store, &id("x")).await.unwrap().unwrap();
    assert_eq!(copied.entries[..], original.entries[..10]);
    assert_eq!((copied.head.0, copied.messages), (10, original.messages));
    assert_eq!(copied.holder, None);
    let listed = restored.list(&Filter::sessions(), None, 10).await.unwrap();
    assert_eq!(listed.rows.len(), 1);
    let lease = claim(&restored, &id("x")).await;
    append(&restored, &lease, 10, b"another", None).await.unwrap();
    assert!(!dir.path().join("backup.db-unfinished").exists());
}
