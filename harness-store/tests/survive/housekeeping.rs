//! What those who were killed leave behind, and lists of what others do.

use std::collections::BTreeSet;
use std::path::Path;

use harness::inspect::Filter;
use harness::prelude::*;
use harness::store::{Phase, SessionStore as _, StoreError};
use harness_store::FileStore;

use crate::rig::{agent, answer, ask, copy_store, files, open, sessions, whole};

const LONG: std::time::Duration = std::time::Duration::from_secs(600);

fn append(path: &Path, body: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    write!(file, "\n{:08x}{body}\n", crc32fast::hash(body.as_bytes())).unwrap();
}

async fn listed(store: &FileStore, limit: u32) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let filter = Filter::sessions();
        let page = sessions(store).list(&filter, after.as_deref(), limit).await.unwrap();
        found.extend(page.rows.iter().map(|row| row.session.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

#[tokio::test]
async fn a_removal_that_was_cut_short_is_finished_by_the_next_process() {
    for by_list in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        ask(&store, "s", 1, 3).await;
        drop(store);
        let path = files(dir.path(), "log").remove(0);
        // The last claim had this fence; its holder said that the session is gone, and was killed.
        let text = std::fs::read_to_string(&path).unwrap();
        let fence = text.lines().filter(|line| line.as_bytes().get(8) == Some(&b'C')).count();
        append(&path, &format!("X{fence}"));
        let store = open(dir.path()).await;
        assert!(sessions(&store).status("s").await.unwrap_err().is_not_found());
        if by_list {
            assert!(listed(&store, 10).await.is_empty());
        } else {
            ask(&store, "s", 1, 2).await;
            assert_eq!(answer(&store, "s").await, whole(1, 2));
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("0xx"), "what the removed session said is still there");
            continue;
        }
        for kind in ["log", "checkpoint", "lease"] {
            assert!(files(dir.path(), kind).is_empty(), "{kind}");
        }
    }
}

#[tokio::test]
async fn copies_that_a_killed_prune_left_behind_are_swept_up() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "s", 3, 20).await;
    ask(&store, "other", 1, 1).await;
    let id = harness::SessionId::new("s").unwrap();
    let held = store.claim(&id, LONG).await.unwrap();
    // The process is gone while it holds the session, and has made the copy.
    copy_store(dir.path(), copy.path());
    drop((held, store));
    let logs = files(copy.path(), "log");
    let log = logs.iter().max_by_key(|log| log.metadata().unwrap().len()).unwrap();
    let left = log.with_extension(format!("{:032x}.next", 7));
    std::fs::write(&left, "half of a log").unwrap();
    let foreign = log.with_file_name(format!("{}.{:032x}.next", "0".repeat(62), 7));
    std::fs::write(&foreign, "of another session").unwrap();

    let store = open(copy.path()).await;
    assert_eq!(answer(&store, "s").await, whole(3, 20));
    assert!(!left.exists());
    assert!(foreign.exists(), "another session's may be at work");
}

#[tokio::test]
async fn a_list_has_what_others_have_done() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()).await, open(dir.path()).await);
    let mut there = BTreeSet::new();
    for round in 0..12_usize {
        for number in 0..3 {
            let name = format!("{}-{round}", (round * 7 + number * 5) % 11);
            if there.insert(name.clone()) {
                ask(&one, &name, 1, 1).await;
            }
        }
        if round % 2 == 1 {
            let name = there.iter().nth(round % there.len()).unwrap().clone();
            sessions(&one).delete(&name).await.unwrap();
            there.remove(&name);
        }
        let first = there.first().unwrap().clone();
        let asks = sessions(&one).status(&first).await.unwrap().phase == Phase::Interrupted;
        if round % 3 == 2 && asks {
            answer(&one, &first).await;
        }
        let expected: Vec<String> = there.iter().cloned().collect();
        assert_eq!(listed(&two, 1 + round as u32 % 4).await, expected, "round {round}");
        assert_eq!(listed(&one, 5).await, expected, "round {round}");
        let rows = sessions(&two).list(&Filter::sessions(), None, 1).await.unwrap().rows;
        let status = sessions(&one).status(&first).await.unwrap();
        assert_eq!((rows[0].phase, rows[0].head), (status.phase, status.head));
    }
}

#[tokio::test]
async fn one_damaged_session_keeps_no_caller_from_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "bad", 1, 1).await;
    let path = files(dir.path(), "log").remove(0);
    ask(&store, "good", 1, 1).await;
    drop(store);
    let sound = std::fs::read(&path).unwrap();
    std::fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let store = open(dir.path()).await;
    assert_eq!(listed(&store, 10).await, ["bad", "good"]);
    let inbox = sessions(&store).list_interrupts(&Filter::default(), None, 10).await.unwrap();
    assert_eq!((inbox.rows.len(), inbox.unreadable.len()), (1, 1));
    assert!(inbox.unreadable[0].1.is_damaged());
    // Nor from resuming the others.
    let yes = inbox.rows[0].interrupt.id.clone();
    let recorded = sessions(&store).answer_json("good", Answers::json(yes, true.into())).await;
    recorded.unwrap();
    let resumed = agent(&store).resume("good", Answers::none(), ()).await.unwrap();
    assert!(matches!(resumed, harness::Outcome::Ended(_)), "{resumed:?}");
    let error = sessions(&store).status("bad").await.unwrap_err();
    assert!(matches!(error.store_error(), Some(StoreError::Corrupt { .. })), "{error}");
}
