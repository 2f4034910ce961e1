//! A byte that is not what was written.

use harness::store::{
    Batch, Message, NewEntry, OpenInterrupt, Phase, SessionStore as _, StoreError,
};
use harness::{InterruptId, Seq, UtcMillis};
use harness_store::SqliteStore;

use super::{claim, database, open, page, raw};
use crate::support::{id, message, summary};

async fn fill(store: &SqliteStore) {
    let lease = claim(store, &id("x")).await;
    for after in 0..40_u64 {
        let bytes = vec![b'a' + (after % 26) as u8; 900];
        let open =
            OpenInterrupt::new(InterruptId::new(format!("question-{after}")), UtcMillis(5 + after));
        let batch = Batch {
            after: Seq(after),
            at: UtcMillis(1_000 + after),
            entries: &[NewEntry { bytes: &bytes, snapshot: after == 20 }],
            summary: Some(&summary(Phase::Running)),
            open: &[open],
            flush: true,
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
    }
    let messages: Vec<Message> =
        (0..40).map(|number| message(&format!("key-{number}"), &"v".repeat(200))).collect();
    store.send(&id("x"), &messages).await.unwrap();
    store.release(&lease, harness::store::InboxSeq(0)).await.unwrap();
}

/// Whatever byte of the file is another one: what is read is what was written, or an error, unless
/// the session is not found at all.
#[tokio::test]
async fn no_changed_byte_changes_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    fill(&store).await;
    let written = page(&store, &id("x")).await.unwrap().unwrap();
    drop(store);
    let copy = raw(dir.path());
    let sound = dir.path().join("sound.db");
    copy.execute("VACUUM INTO ?", [sound.to_str().unwrap()]).unwrap();
    drop(copy);
    let sound = std::fs::read(sound).unwrap();
    let (mut same, mut damaged, mut lost) = (0, 0, 0);
    let flips = 400;
    for flip in 0..flips {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = sound.clone();
        let at = (flip * 7_919 + 13) * 31 % bytes.len();
        bytes[at] ^= 1 << (flip % 8);
        std::fs::write(database(dir.path()), bytes).unwrap();
        let options = harness_store::SqliteStoreOptions::new().readers(1);
        let options = options.sync(harness_store::Sync::Never);
        let Ok(store) = options.open(database(dir.path())).await else {
            damaged += 1;
            continue;
        };
        match page(&store, &id("x")).await {
            Ok(Some(page)) => {
                assert_eq!(page, written, "byte {at} was changed unnoticed");
                same += 1;
            }
            Ok(None) => lost += 1,
            Err(_) => damaged += 1,
        }
    }
    println!(
        "{flips} flips: {same} of no consequence, {damaged} reported, {lost} hide the session"
    );
    assert!(damaged > flips / 3 && lost <= flips / 40, "{same}, {damaged}, {lost}");
}

#[tokio::test]
async fn rows_that_are_missing_are_reported() {
    let missing = [
        ("DELETE FROM batch WHERE place & 4294967295 = 30", true),
        ("DELETE FROM batch WHERE place & 4294967295 = 40", true),
        ("DELETE FROM message WHERE place & 4294967295 = 7", false),
        ("DELETE FROM interrupt WHERE id = CAST('question-7' AS BLOB)", false),
        ("UPDATE session SET head = 39", true),
        ("UPDATE session SET summary = CAST(replace(summary, 'S', 'T') AS BLOB)", true),
    ];
    for (change, claims) in missing {
        let dir = tempfile::tempdir().unwrap();
        fill(&open(dir.path()).await).await;
        assert_eq!(raw(dir.path()).execute(change, []).unwrap(), 1, "{change}");
        let store = open(dir.path()).await;
        let found = page(&store, &id("x")).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{change}: {found:?}");
        let claimed = store.claim(&id("x"), crate::support::LONG).await;
        let is_corrupt = matches!(claimed, Err(StoreError::Corrupt { .. }));
        assert_eq!(is_corrupt, claims, "{change}: {claimed:?}");
    }
}
