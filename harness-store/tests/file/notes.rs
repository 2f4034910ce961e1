//! What is noted of a session at rest: by this version, and by those before.

use harness::store::{Phase, Remove, SessionStore as _, StoreError};

use crate::support::{append, claim, files, id, log, open, page};

/// Turns the note of the only session into one of the versions that kept it in a file of its own.
fn age(dir: &std::path::Path) -> std::path::PathBuf {
    let shared = files(dir, "notes").remove(0);
    let text = std::fs::read_to_string(&shared).unwrap();
    let note = text.lines().rfind(|line| line.as_bytes().get(8) == Some(&b'N')).unwrap();
    let json = &note[note.find('{').unwrap()..];
    let own = log(dir).with_extension("head");
    std::fs::write(&own, format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))).unwrap();
    std::fs::remove_file(shared).unwrap();
    own
}

#[tokio::test]
async fn a_note_of_an_earlier_version_is_believed_and_superseded() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
    drop((store, lease));
    let own = age(dir.path());
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    for len in 0..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "cut to {len}: {found:?}");
    }
    std::fs::remove_file(&path).unwrap();
    let found = page(&open(dir.path()).await, &id("x")).await;
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "removed: {found:?}");

    // It goes on, and what is noted then counts.
    std::fs::write(&path, &whole).unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 1, b"2", Some(Phase::Ended)).await.unwrap();
    std::fs::write(&path, &whole).unwrap();
    let found = page(&open(dir.path()).await, &id("x")).await;
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "cut: {found:?}");
    assert!(own.exists());
}

#[tokio::test]
async fn a_session_that_is_removed_takes_its_notes_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
    let own = age(dir.path());
    append(&store, &lease, 1, b"2", Some(Phase::Ended)).await.unwrap();
    store.remove(&lease, Remove::All).await.unwrap();
    assert!(!own.exists());
    let other = open(dir.path()).await;
    assert!(page(&other, &id("x")).await.unwrap().is_none());
    let lease = claim(&other, &id("x")).await;
    append(&other, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
    assert_eq!(page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap().head.0, 1);
}

#[tokio::test]
async fn a_log_that_was_replaced_by_an_older_copy_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    let mut copies = Vec::new();
    for after in 0..4 {
        append(&store, &lease, after, b"1", Some(Phase::Ended)).await.unwrap();
        copies.push(std::fs::read(log(dir.path())).unwrap());
    }
    let last = copies.pop().unwrap();
    for copy in copies {
        std::fs::write(log(dir.path()), copy).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
    }
    std::fs::write(log(dir.path()), last).unwrap();
    assert_eq!(page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap().head.0, 4);
}
