//! Disks that are full, cannot be written, or go away. Each is made so in a process of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use harness::prelude::*;
use harness::store::StoreError;
use harness::{Durability, FailureKind, Seq};
use harness_store::FileStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::to_value;

use crate::rig::{agent, answer, ask, harness, hooked, input, open, sessions, to_the_end, whole};

const DIR: &str = "HARNESS_SURVIVE_DIR";

/// Runs one of the tests below that are ignored, behind what a shell does first.
fn child(test: &str, shell: &str, dir: &Path, own_mounts: bool) {
    let exe = std::env::current_exe().unwrap();
    let script = format!("{shell} exec \"$0\" --exact disk::{test} --ignored --nocapture");
    let mut command = match own_mounts {
        true => Command::new("unshare"),
        false => Command::new("sh"),
    };
    if own_mounts {
        command.args(["-m", "sh"]);
    }
    let out = command.arg("-c").arg(script).arg(exe).env(DIR, dir).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

/// Whether this process may mount file systems that only its children see.
fn may_mount() -> bool {
    let mount = "mount -t tmpfs none /mnt";
    let tried = Command::new("unshare").args(["-m", "sh", "-c", mount]).output();
    let may = tried.is_ok_and(|out| out.status.success());
    if !may {
        // Not by a macro, whose words are swallowed where a test passes.
        let said = "NOT RUN: a full and a read-only disk, for no file system may be mounted here\n";
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    may
}

fn given_dir() -> PathBuf {
    std::env::var_os(DIR).expect("run by another test").into()
}

fn is_full(error: Option<&StoreError>) -> bool {
    matches!(error, Some(StoreError::Full(_)))
}

/// Runs sessions until there is no room left, makes room, and continues.
async fn fill(dir: &Path, make_room: impl FnOnce()) {
    const ROUNDS: usize = 150;
    const SIZE: usize = 4_000;
    let store = FileStore::open(dir).await.unwrap();
    ask(&store, "before", 1, 1).await;
    let modes = [Durability::Step, Durability::Relaxed, Durability::Settle];
    let writer = |store: &FileStore, mode| {
        harness().agent("writer", ()).store(store.clone()).durability(mode)
    };
    let mut begun = Vec::new();
    for (name, mode) in ["step", "relaxed", "settle"].into_iter().zip(modes) {
        let outcome = writer(&store, mode).run(input(ROUNDS, SIZE), ()).session(name).await;
        match outcome {
            Ok(Outcome::Failed(failed)) => {
                assert_eq!(failed.failure.kind, FailureKind::Store);
                let message = &failed.failure.message;
                assert!(message.contains("the store is full") && message.contains("make room"));
                let state = to_value(&**failed.state.as_ref().unwrap()).unwrap();
                assert_eq!(state, sessions(&store).state(name).await.unwrap(), "{name}");
                begun.push((name, mode));
            }
            // Not even its beginning had room.
            Err(error) => assert!(is_full(error.store_error()), "{name}: {error}"),
            Ok(other) => panic!("{name}: {other:?}"),
        }
    }
    assert!(!begun.is_empty());
    // What is there can be read, here and by the next store.
    for store in [store.clone(), FileStore::open(dir).await.unwrap()] {
        let look = sessions(&store);
        for (name, _) in &begun {
            let status = look.status(name).await.unwrap();
            look.state_at(name, status.head).await.unwrap();
            assert!(!look.history(name, Seq(0), 10).await.unwrap().entries.is_empty());
        }
        assert_eq!(look.status("before").await.unwrap().questions.len(), 1);
    }
    make_room();
    // In the same process and with the same store; then in another.
    for (name, mode) in begun {
        let writer = writer(&store, mode);
        let state = to_the_end(&writer, name, || input(ROUNDS, SIZE)).await;
        assert_eq!(state, whole(ROUNDS, SIZE), "{name}");
    }
    assert_eq!(answer(&store, "before").await, whole(1, 1));
    ask(&store, "after", 1, 1).await;
    drop(store);
    assert_eq!(answer(&open(dir).await, "after").await, whole(1, 1));
}

#[test]
fn a_run_fails_typed_where_a_file_may_not_grow_and_continues_once_it_may() {
    let dir = tempfile::tempdir().unwrap();
    // The limit itself is set once the process has begun; the signal it sends would end it.
    child("fill_to_a_limit", "trap '' XFSZ;", dir.path(), false);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn fill_to_a_limit() {
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(200_000), maximum: before.maximum }).unwrap();
    fill(&given_dir(), || setrlimit(Resource::Fsize, before).unwrap()).await;
}

#[test]
fn a_run_fails_typed_on_a_full_disk_and_continues_once_there_is_room() {
    if may_mount() {
        let dir = tempfile::tempdir().unwrap();
        let mount = format!("mount -t tmpfs -o size=8m none '{}' &&", dir.path().display());
        child("fill_a_disk", &mount, dir.path(), true);
    }
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn fill_a_disk() {
    let dir = given_dir();
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![1; 9 << 20]).unwrap_err();
    let file = std::fs::OpenOptions::new().write(true).open(&ballast).unwrap();
    file.set_len(file.metadata().unwrap().len() - (300 << 10)).unwrap();
    drop(file);
    fill(&dir.join("store"), || std::fs::remove_file(&ballast).unwrap()).await;
}

#[test]
fn what_cannot_be_written_can_be_read() {
    if may_mount() {
        let dir = tempfile::tempdir().unwrap();
        child("read_only", "", dir.path(), true);
    }
}

fn sh(command: &str) {
    let out = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(out.status.success(), "{command}: {out:?}");
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn read_only() {
    let dir = given_dir();
    let place = dir.display();
    let first = open(&dir).await;
    ask(&first, "asked", 1, 1).await;
    ask(&first, "ended", 1, 1).await;
    answer(&first, "ended").await;
    drop(first);
    // One that has read nothing yet when the disk can no longer be written.
    let store = open(&dir).await;
    sh(&format!("mount --bind '{place}' '{place}' && mount -o remount,bind,ro '{place}'"));
    assert!(std::fs::write(dir.join("x"), "").is_err());
    let unsuitable = |error: Option<&StoreError>| matches!(error, Some(StoreError::Unsuitable(why)) if why.contains("write"));
    let look = sessions(&store);
    for name in ["asked", "ended"] {
        let status = look.status(name).await.unwrap();
        look.state_at(name, status.head).await.unwrap();
        assert!(look.history(name, Seq(0), 100).await.unwrap().next.is_none());
    }
    assert_eq!(look.list(&Default::default(), None, 10).await.unwrap().rows.len(), 2);
    let agent = agent(&store);
    let error = agent.resume("asked", Answers::none(), ()).await.unwrap_err();
    assert!(unsuitable(error.store_error()), "{error:?}");
    let error = agent.run(input(1, 1), ()).session("ended").await.unwrap_err();
    assert!(unsuitable(error.store_error()), "{error:?}");
    let error = agent.run(input(1, 1), ()).session("new").await.unwrap_err();
    assert!(unsuitable(error.store_error()), "{error:?}");
    let error = FileStore::open(&dir).await.unwrap_err();
    assert!(unsuitable(Some(&error)), "{error:?}");
    sh(&format!("umount -l '{place}'"));
    // The very same store continues.
    assert_eq!(answer(&store, "asked").await, whole(1, 1));
    assert!(look.status("new").await.unwrap_err().is_not_found());
}

#[test]
fn many_sessions_need_few_open_files() {
    let dir = tempfile::tempdir().unwrap();
    child("few_open_files", "", dir.path(), false);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn few_open_files() {
    const SESSIONS: usize = 150;
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum: before.maximum }).unwrap();
    let store = open(given_dir()).await;
    for nth in 0..SESSIONS {
        ask(&store, &format!("s-{nth}"), 1, 1).await;
    }
    // The rest of the process leaves none but those that the store keeps open.
    let mut others = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        others.push(file);
    }
    assert!(others.len() > 30, "{}", others.len());
    for nth in 0..SESSIONS {
        assert_eq!(answer(&store, &format!("s-{nth}")).await, whole(1, 1));
    }
}

#[test]
fn a_store_opened_by_a_relative_path_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    child("relative_path", "", dir.path(), false);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn relative_path() {
    std::env::set_current_dir(given_dir()).unwrap();
    let store = open("store").await;
    ask(&store, "before", 1, 1).await;
    std::env::set_current_dir("/").unwrap();
    ask(&store, "after", 1, 1).await;
    drop(store);
    let store = open(given_dir().join("store")).await;
    for session in ["before", "after"] {
        assert_eq!(answer(&store, session).await, whole(1, 1));
    }
}

#[tokio::test]
async fn a_directory_that_is_removed_under_a_run() {
    for mode in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("store");
        let gone = dir.clone();
        let hook = Arc::new(move |lines| {
            if lines == 2 {
                std::fs::remove_dir_all(&gone).unwrap();
            }
        });
        let store = FileStore::open(&dir).await.unwrap();
        let writer = hooked(hook).agent("writer", ()).store(store.clone()).durability(mode);
        let outcome = writer.run(input(4, 1), ()).session("s").await.unwrap();
        let Outcome::Failed(failed) = outcome else { panic!("{mode:?}: {outcome:?}") };
        let kind = failed.failure.kind;
        assert!(matches!(kind, FailureKind::Store | FailureKind::LeaseLost), "{kind:?}");
        let look = sessions(&store);
        assert!(look.status("s").await.unwrap_err().is_not_found());
        let error = writer.resume("s", Answers::none(), ()).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        // Created again, it serves as before.
        let store = open(&dir).await;
        ask(&store, "s", 1, 1).await;
        assert_eq!(answer(&store, "s").await, whole(1, 1));
    }
}
