//! Whatever happens to the bytes of a log, it is reported; never is another state read than one
//! that was written.

use std::path::Path;

use harness::store::{Phase, SessionStore as _, StoreError};

use crate::support::{append, claim, files, id, log, message, open, page};

/// A session of four entries and two messages, which rests at the end or does not.
async fn session(dir: &Path, last: Phase) {
    let store = open(dir).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"first", Some(Phase::Running)).await.unwrap();
    append(&store, &lease, 1, b"{\"a\":1}", None).await.unwrap();
    store.send(&id("x"), &[message("k", "yes"), message("l", "no")]).await.unwrap();
    append(&store, &lease, 2, b"a\nb\0", None).await.unwrap();
    append(&store, &lease, 3, b"fourth entry", Some(last)).await.unwrap();
}

const ENTRIES: [&[u8]; 4] = [b"first", b"{\"a\":1}", b"a\nb\0", b"fourth entry"];

#[tokio::test]
async fn a_log_at_rest_that_was_cut_anywhere_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Ended).await;
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
}

#[tokio::test]
async fn a_bit_that_flips_in_a_log_at_rest_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Ended).await;
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "bit {bit}: {found:?}");
    }
}

#[tokio::test]
async fn only_an_incomplete_record_at_the_end_of_a_running_log_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for len in 0..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        let store = open(dir.path()).await;
        let before = page(&store, &id("x")).await.unwrap();
        let lease = claim(&store, &id("x")).await;
        let after = page(&store, &id("x")).await.unwrap();
        let Some(before) = before else {
            assert!(after.is_none_or(|page| page.entries.len() == 1), "cut to {len}");
            continue;
        };
        let after = after.unwrap();
        let entries: Vec<_> = after.entries.iter().map(|entry| &*entry.bytes).collect();
        assert_eq!(entries, ENTRIES[..entries.len()], "cut to {len}");
        // A record that lacked only its last newline is whole once something follows it.
        assert!(after.entries.len() - before.entries.len() <= 1);
        assert!(after.messages.is_empty() || after.messages.len() == 2, "messages come together");
        assert_eq!(
            after.set_aside > 0,
            !whole[..len].ends_with(b"\n")
                && after.entries.len() + after.messages.len()
                    == before.entries.len() + before.messages.len()
                || whole[..len].ends_with(b"\n\n"),
            "cut to {len}"
        );
        seen.insert((entries.len(), after.messages.len()));
        append(&store, &lease, after.head.0, b"more", Some(Phase::Running)).await.unwrap();
        let again = page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap();
        assert_eq!(again.entries.last().unwrap().bytes, b"more");
        assert_eq!(again.entries.len(), after.entries.len() + 1);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 0), (2, 0), (2, 2), (3, 2), (4, 2)]);
}

#[tokio::test]
async fn a_bit_that_flips_in_a_running_log_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    assert!(files(dir.path(), "checkpoint").is_empty());
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "bit {bit}: {found:?}");
    }
}

#[tokio::test]
async fn a_durable_record_that_became_zeros_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let store = harness_store::FileStore::open(dir.path()).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    for after in 0..5 {
        let bytes = format!("entry {after}");
        append(&store, &lease, after, bytes.as_bytes(), Some(Phase::Running)).await.unwrap();
    }
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    for number in 1..4 {
        let at = text.find(&format!("entry {number}")).unwrap();
        let begin = text[..at].rfind("\n\n").unwrap() + 1;
        let end = at + text[at..].find('\n').unwrap();
        let mut bytes = whole.clone();
        bytes[begin..=end].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "entry {number}: {found:?}");
    }
}

#[tokio::test]
async fn what_is_damaged_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    let path = log(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let store = open(dir.path()).await;
    let claimed = store.claim(&id("x"), crate::support::LONG).await;
    assert!(matches!(claimed, Err(StoreError::Corrupt { .. })), "{claimed:?}");
    let posted = store.send(&id("x"), &[message("m", "x")]).await;
    assert!(matches!(posted, Err(StoreError::Corrupt { .. })), "{posted:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_log_of_a_newer_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    let path = log(dir.path());
    let body = "H2 whatever comes";
    let newer = format!("\n{:08x}{body}\n", crc32fast::hash(body.as_bytes()));
    std::fs::write(&path, &newer).unwrap();
    let store = open(dir.path()).await;
    let found = page(&store, &id("x")).await;
    assert!(matches!(found, Err(StoreError::NewerFormat { found: 2, known: 1 })), "{found:?}");
    let claimed = store.claim(&id("x"), crate::support::LONG).await;
    assert!(matches!(claimed, Err(StoreError::NewerFormat { .. })), "{claimed:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
}

#[tokio::test]
async fn the_log_of_another_session_is_not_taken_for_this_one() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("y")).await;
    append(&store, &lease, 0, b"y", Some(Phase::Running)).await.unwrap();
    let logs = files(dir.path(), "log");
    std::fs::copy(&logs[0], &logs[1]).unwrap();
    let fresh = open(dir.path()).await;
    let found = [page(&fresh, &id("x")).await, page(&fresh, &id("y")).await];
    let wrong = found.iter().filter(|found| matches!(found, Err(StoreError::Corrupt { .. })));
    assert_eq!(wrong.count(), 1, "{found:?}");
}

#[tokio::test]
async fn a_record_of_which_only_the_last_byte_is_missing_is_there_once_another_follows() {
    let dir = tempfile::tempdir().unwrap();
    session(dir.path(), Phase::Running).await;
    let path = log(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let known = page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap();
    let ends: Vec<usize> =
        (0..whole.len() - 1).filter(|at| whole[*at..].starts_with(b"\n\n")).collect();
    assert!(ends.len() > 4);
    for end in ends {
        let mut bytes = whole.clone();
        bytes[end] = 0;
        std::fs::write(&path, &bytes).unwrap();
        let found = page(&open(dir.path()).await, &id("x")).await.unwrap().unwrap();
        assert_eq!(
            (&found.entries, &found.messages),
            (&known.entries, &known.messages),
            "at {end}"
        );
    }
}
