//! Directories and files that another user has made, or planted.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use harness::store::{Phase, ReadFrom, StoreError};

use super::{append, claim, id, page};
use crate::file::disk::RealDisk;
use crate::file::{FileStore, FileStoreOptions};

fn open(dir: &Path) -> Result<FileStore, StoreError> {
    FileStoreOptions::new().open_on(Arc::new(RealDisk), dir)
}

fn refused<T>(opened: Result<T, StoreError>, why: &str) {
    match opened.err() {
        Some(StoreError::Unsuitable(said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{why}: {other:?}"),
    }
}

#[test]
fn a_planted_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    let store = open(&dir.path().join("store")).unwrap();
    let log = store.inner.log_path(&id("s"));
    std::fs::create_dir(log.parent().unwrap()).unwrap();
    symlink(&target, &log).unwrap();
    refused(claim(&store.inner, "s"), "remove it");
    std::fs::remove_file(&log).unwrap();
    // Beside a log, too: what is written there in place comes when the lease is renewed.
    let lease = claim(&store.inner, "s").unwrap();
    append(&store.inner, &lease, 0, b"one", Phase::Ended, true).unwrap();
    symlink(&target, log.with_extension("lease")).unwrap();
    refused(store.inner.renew(&lease, super::LONG), "remove it");
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
}

#[test]
fn a_planted_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let log = store.inner.log_path(&id("s"));
    std::fs::create_dir(log.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    refused(claim(&store.inner, "s"), "not a regular file of this user");
}

#[test]
fn no_file_beside_a_log_is_a_link_or_a_pipe() {
    let plants: [(&str, fn(&Path, &Path)); 2] = [
        ("link", |path, to| symlink(to, path).unwrap()),
        ("pipe", |path, _| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
    ];
    for kind in ["log", "checkpoint", "lease", "start"] {
        for (what, plant) in plants {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("precious");
            let place = dir.path().join("store");
            let store = open(&place).unwrap();
            let lease = claim(&store.inner, "s").unwrap();
            append(&store.inner, &lease, 0, b"one", Phase::Ended, true).unwrap();
            let file = store.inner.log_path(&id("s")).with_extension(kind);
            if file.exists() {
                std::fs::rename(&file, &target).unwrap();
            } else {
                std::fs::write(&target, "precious").unwrap();
            }
            let before = std::fs::read(&target).unwrap();
            plant(&file, &target);
            let found = match kind {
                "lease" => store.inner.renew(&lease, super::LONG).map(drop),
                _ => page(&open(&place).unwrap().inner, "s", ReadFrom::Snapshot).map(drop),
            };
            match kind {
                // The log says the same.
                "start" => found.unwrap(),
                _ => refused(found, "remove it"),
            }
            assert_eq!(std::fs::read(&target).unwrap(), before, "{kind} {what}");
        }
    }
}

#[test]
fn what_continues_a_log_is_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("precious");
    let store = open(&dir.path().join("store")).unwrap();
    let lease = claim(&store.inner, "s").unwrap();
    append(&store.inner, &lease, 0, b"one", Phase::Running, true).unwrap();
    let log = store.inner.log_path(&id("s"));
    std::fs::write(&target, "precious").unwrap();
    symlink(&target, log.with_extension("next")).unwrap();
    let len = std::fs::metadata(&log).unwrap().len();
    let name = log.with_extension("next");
    let line = crate::file::record::moved(1, len, name.file_name().unwrap().to_str().unwrap());
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut file, &line).unwrap();
    refused(page(&store.inner, "s", ReadFrom::Snapshot), "remove it");
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
}

#[test]
fn the_files_of_a_store_itself_are_no_links() {
    let dir = tempfile::tempdir().unwrap();
    let (place, target) = (dir.path().join("store"), dir.path().join("precious"));
    drop(open(&place).unwrap());
    std::fs::write(&target, "precious").unwrap();
    std::fs::remove_file(place.join("place")).unwrap();
    symlink(&target, place.join("place")).unwrap();
    refused(open(&place), "remove it");
    std::fs::remove_file(place.join("place")).unwrap();
    // What shows that a store is open is looked for, and another is made.
    symlink(&target, place.join("open/00000001")).unwrap();
    for file in std::fs::read_dir(place.join("open")).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    claim(&open(&place).unwrap().inner, "s").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
}

#[test]
fn the_directories_of_a_store_are_its_own() {
    for name in ["sessions", "open"] {
        let dir = tempfile::tempdir().unwrap();
        let (store, other) = (dir.path().join("store"), dir.path().join("other"));
        std::fs::create_dir(&store).unwrap();
        std::fs::create_dir(&other).unwrap();
        symlink(&other, store.join(name)).unwrap();
        refused(open(&store), "it is not a directory");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    refused(open(dir.path()), "every user may write there");
}

#[test]
fn a_store_may_be_reached_by_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (store, link) = (dir.path().join("store"), dir.path().join("link"));
    claim(&open(&store).unwrap().inner, "s").unwrap();
    symlink(&store, &link).unwrap();
    claim(&open(&link).unwrap().inner, "t").unwrap();
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, log) = {
        let store = open(&dir.path().join("store")).unwrap();
        claim(&store.inner, "s").unwrap();
        (dir.path().join("store"), store.inner.log_path(&id("s")))
    };
    let give_away = |path: &Path| std::os::unix::fs::chown(path, Some(12_345), None);
    let give_back = |path: &Path| std::os::unix::fs::chown(path, Some(0), None).unwrap();
    if give_away(&log).is_err() {
        // Not by a macro, whose words are swallowed where a test passes.
        let said = b"NOT RUN: files of another user, for this one may give none away\n";
        std::io::Write::write_all(&mut std::io::stderr(), said).unwrap();
        return;
    }
    let opened = open(&store).unwrap();
    refused(claim(&opened.inner, "s"), "not a regular file of this user");
    give_back(&log);
    for kind in ["checkpoint", "lease"] {
        let opened = open(&store).unwrap();
        let lease = claim(&opened.inner, "s").unwrap();
        let head = page(&opened.inner, "s", ReadFrom::Snapshot).unwrap().map_or(0, |it| it.head.0);
        append(&opened.inner, &lease, head, b"one", Phase::Ended, true).unwrap();
        opened.inner.renew(&lease, super::LONG).unwrap();
        let file = log.with_extension(kind);
        give_away(&file).unwrap();
        let found = match kind {
            "lease" => opened.inner.renew(&lease, super::LONG).map(drop),
            _ => page(&open(&store).unwrap().inner, "s", ReadFrom::Snapshot).map(drop),
        };
        refused(found, "not a regular file of this user");
        give_back(&file);
    }
    give_away(&store.join("place")).unwrap();
    refused(open(&store), "not a regular file of this user");
    give_back(&store.join("place"));
    for dir in ["sessions", "open", "."] {
        give_away(&store.join(dir)).unwrap();
        refused(open(&store), "it belongs to another user");
        give_back(&store.join(dir));
    }
    open(&store).unwrap();
}
