//! Logs that were cut, or in which a bit has flipped, as agents and those who look at sessions meet
//! them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::inspect::SessionsError;
use harness::prelude::*;
use harness::store::StoreError;
use harness::{RunError, Seq, Sessions};
use serde_json::Value;

use crate::rig::{
    agent, answer, ask, copy_store, files, hooked, input, open, sessions, states, to_the_end, whole,
};

fn log(dir: &Path) -> PathBuf {
    let mut logs = files(dir, "log");
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}

fn is_corrupt(error: &SessionsError) -> bool {
    error.is_damaged() && matches!(error.store_error(), Some(StoreError::Corrupt { .. }))
}

fn run_is_corrupt(error: &RunError) -> bool {
    matches!(error.store_error(), Some(StoreError::Corrupt { .. }))
}

/// Every read and every run of the session (of which not every place is tried in every way) reports
/// that it is damaged, and nothing is written.
async fn all_say_corrupt(dir: &Path, head: Seq, what: &str, all: bool) {
    let before = files(dir, "log").first().map(|log| std::fs::read(log).unwrap());
    let store = open(dir).await;
    let look = sessions(&store);
    assert!(look.status("s").await.is_err_and(|it| is_corrupt(&it)), "status, {what}");
    if !all {
        return;
    }
    assert!(look.state_at("s", head).await.is_err_and(|it| is_corrupt(&it)), "state, {what}");
    let history = look.history("s", Seq(0), 100).await;
    assert!(history.is_err_and(|it| is_corrupt(&it)), "history, {what}");
    let agent = agent(&store);
    let resumed = agent.resume("s", Answers::none(), ()).await;
    assert!(resumed.is_err_and(|it| run_is_corrupt(&it)), "resume, {what}");
    let run = agent.run(input(1, 1), ()).session("s").await;
    assert!(run.is_err_and(|it| run_is_corrupt(&it)), "run, {what}");
    let after = files(dir, "log").first().map(|log| std::fs::read(log).unwrap());
    assert_eq!(before, after, "{what}");
}

#[tokio::test]
async fn a_session_at_rest_that_was_damaged_anywhere_is_corrupt() {
    for ended in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        ask(&store, "s", 1, 3).await;
        if ended {
            answer(&store, "s").await;
        }
        let head = sessions(&store).status("s").await.unwrap().head;
        drop(store);
        let path = log(dir.path());
        let sound = std::fs::read(&path).unwrap();
        // The last record says that the lease was released.
        let acknowledged = sound.windows(2).rposition(|pair| pair == b"\n\n").unwrap() + 1;
        assert_eq!(sound[acknowledged + 9], b'C');
        for place in 0..sound.len() {
            if place < acknowledged {
                std::fs::write(&path, &sound[..place]).unwrap();
                all_say_corrupt(dir.path(), head, &format!("cut to {place}"), place % 8 == 0).await;
            }
            // Each bit flips in the tests of the store; here, one of each byte.
            let mut flipped = sound.clone();
            flipped[place] ^= 1 << (place % 8);
            std::fs::write(&path, &flipped).unwrap();
            all_say_corrupt(dir.path(), head, &format!("a bit of byte {place}"), place % 16 == 3)
                .await;
        }
        std::fs::write(&path, &sound).unwrap();
        let state = match ended {
            false => answer(&open(dir.path()).await, "s").await,
            true => agent(&open(dir.path()).await).state_at("s", head).await.unwrap(),
        };
        assert_eq!(state, whole(1, 3));
    }
}

/// What is on the disk when the process is gone while the step that makes line `at` is at work.
async fn crashed(at: usize) -> tempfile::TempDir {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (dir.path().to_owned(), copy.path().to_owned());
    let hook = Arc::new(move |lines| {
        if lines == at {
            copy_store(&from, &to);
        }
    });
    let store = open(dir.path()).await;
    let agent = hooked(hook).agent("writer", ()).store(store.clone());
    let outcome = agent.run(input(2, 3), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let yes = waiting.pending::<crate::rig::Send>().unwrap().answer(true);
    agent.resume("s", yes, ()).await.unwrap().ended().unwrap();
    copy
}

/// What a later status of the session reports of it.
async fn set_aside(dir: &std::path::Path) -> u64 {
    sessions(&open(dir).await).status("s").await.unwrap().set_aside
}

/// The states of a log that is sound.
async fn sound_states(look: &Sessions) -> Vec<Value> {
    states(look, "s").await.unwrap()
}

#[tokio::test]
async fn of_a_session_at_work_only_an_incomplete_end_is_set_aside() {
    // Before its question was asked, when nothing was acknowledged yet; and behind it.
    for at in [1, 2] {
        let dir = crashed(at).await;
        let path = log(dir.path());
        let sound = std::fs::read(&path).unwrap();
        let known = sound_states(&sessions(&open(dir.path()).await)).await;
        let note = files(dir.path(), "checkpoint").first().map(|head| std::fs::read(head).unwrap());
        assert_eq!(note.is_some(), at == 2);
        let (mut corrupt, mut torn, mut clean) = (0, 0, 0);
        for len in 0..sound.len() {
            std::fs::write(&path, &sound[..len]).unwrap();
            let store = open(dir.path()).await;
            let look = sessions(&store);
            match states(&look, "s").await {
                // What is left is what was written, from the beginning.
                Ok(left) => assert_eq!(left, known[..left.len()], "cut to {len}"),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    assert!(is_corrupt(&error), "cut to {len}: {error}");
                    all_say_corrupt(dir.path(), Seq(1), &format!("cut to {len}"), len % 8 == 0)
                        .await;
                    corrupt += 1;
                    continue;
                }
            }
            // To run it takes longer: at every end of a record, and now and then between.
            let near = &sound[len.saturating_sub(3)..(len + 3).min(sound.len())];
            if len % 9 != 0 && !near.contains(&b'\n') {
                continue;
            }
            let agent = agent(&store);
            assert_eq!(to_the_end(&agent, "s", || input(2, 3)).await, whole(2, 3), "cut to {len}");
            // What was set aside is reported; a session of which nothing was left began again.
            let whole_lines = sound[..len].ends_with(b"\n") && !sound[..len].ends_with(b"\n\n");
            match set_aside(dir.path()).await {
                0 => clean += 1,
                bytes => {
                    assert!(!whole_lines, "cut to {len}: {bytes}");
                    torn += 1;
                }
            }
            drop(store);
            // Nothing of it is left to the next process.
            let look = sessions(&open(dir.path()).await);
            let states = states(&look, "s").await.unwrap();
            assert_eq!(states.last().unwrap()["lines"][2], "closed");
            for ending in ["checkpoint", "lease"] {
                for file in files(dir.path(), ending) {
                    std::fs::remove_file(file).unwrap();
                }
            }
            if let Some(note) = &note {
                std::fs::write(path.with_extension("checkpoint"), note).unwrap();
            }
        }
        assert!(torn > 20 && clean > 2, "{torn} torn, {clean} clean, {corrupt} corrupt");
        assert_eq!(corrupt > 500, at == 2, "{corrupt}");
        std::fs::write(&path, &sound).unwrap();
        for place in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[place] ^= 1 << (place % 8);
            std::fs::write(&path, &flipped).unwrap();
            all_say_corrupt(dir.path(), Seq(1), &format!("a bit of byte {place}"), place % 16 == 3)
                .await;
        }
    }
}
