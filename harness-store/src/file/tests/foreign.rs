//! Directories and files that another user has made, or planted.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use harness::store::StoreError;

use super::{append, claim, id};
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
    append(&store.inner, &lease, 0, b"one", harness::store::Phase::Ended, true).unwrap();
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
    if give_away(&log).is_err() {
        // Not by a macro, whose words are swallowed where a test passes.
        let said = b"NOT RUN: files of another user, for this one may give none away\n";
        std::io::Write::write_all(&mut std::io::stderr(), said).unwrap();
        return;
    }
    let opened = open(&store).unwrap();
    refused(claim(&opened.inner, "s"), "not a regular file of this user");
    give_away(&store).unwrap();
    refused(open(&store), "it belongs to another user");
}
