//! What the trait of stores does not show: a store that keeps sessions in files, and what is found
//! when it is wrong in one thing.

mod store;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use harness::store::{MemoryStore, StoreError};
use harness::testing::{Contract, Report, Verdict, child_worker};

use store::Place;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Nothing,
    GivesDamagedBytes,
    NamesAnother,
    MendsWhatIsDamaged,
    OneHidesAll,
    ShowsHalfABatch,
    TakesTornForDamaged,
    WritesBehindTorn,
    TakesNewerForItsOwn,
    WritesToNewer,
    AcknowledgesFirst,
}

use Bug::*;

const REPORTED: &str = "damage-is-reported-and-names-its-session";
const LEFT_ALONE: &str = "damage-is-left-alone";
const OTHERS: &str = "damage-hides-no-other-session";
const TORN: &str = "torn-tail-is-set-aside";
const NEWER: &str = "newer-format-is-reported";
const NEWER_LEFT_ALONE: &str = "newer-format-is-left-alone";
const KILLED: &str = "killed-process-loses-nothing-acknowledged";
const SEE: &str = "other-processes-see-writes";
const RESPECT: &str = "other-processes-respect-the-lease";

const OF_DAMAGE: [&str; 6] = [REPORTED, LEFT_ALONE, OTHERS, TORN, NEWER, NEWER_LEFT_ALONE];
const OF_PROCESSES: [&str; 3] = [KILLED, SEE, RESPECT];

/// Each with the clause that names it, and what is said of it.
const FOUND_BY: &[(Bug, &str, &str)] = &[
    (GivesDamagedBytes, REPORTED, "a read of a damaged session"),
    (NamesAnother, REPORTED, "another"),
    (MendsWhatIsDamaged, LEFT_ALONE, "has written to it"),
    (OneHidesAll, OTHERS, "Corrupt"),
    (ShowsHalfABatch, TORN, "entries before the batch that was cut"),
    (TakesTornForDamaged, TORN, "Corrupt"),
    (WritesBehindTorn, TORN, "Corrupt"),
    (TakesNewerForItsOwn, NEWER, "a read of a newer format"),
    (WritesToNewer, NEWER_LEFT_ALONE, "has written to it"),
    // Of the session, or of its head.
    (AcknowledgesFirst, KILLED, "acknowledged"),
    // Its handles know of no other process.
    (Nothing, SEE, "was acknowledged, and the head is"),
    (Nothing, RESPECT, "a claim of what another process holds"),
];

const DIR: &str = "HARNESS_TOY_DIR";
const BUG: &str = "HARNESS_TOY_BUG";

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("toy-{}", harness::SessionId::fresh());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn checked(bug: Bug, clause: &str) -> Report {
    let folder = Folder::new();
    let place = Arc::new(Place::new(bug, &folder.0));
    let [opened, damaged, looked_at] = [place.clone(), place.clone(), place];
    let dir = folder.0.clone();
    Contract::new(move || {
        let place = opened.clone();
        async move { place.open().await }
    })
    .damage(move |id, how| std::future::ready(damaged.damage(&id, how)))
    .stored(move |id| std::future::ready(looked_at.stored(&id)))
    .child(move |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "outside::child", "--nocapture", "--test-threads=1"]);
        command.env(DIR, &dir).env(BUG, format!("{bug:?}"));
        command
    })
    .short_lease(Duration::from_millis(40))
    .only([clause])
    .run()
    .await
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let name = std::env::var(BUG).unwrap();
    let bug = FOUND_BY.iter().map(|(bug, ..)| *bug).find(|bug| format!("{bug:?}") == name);
    let place = Place::new(bug.unwrap(), Path::new(&dir));
    child_worker(place.open().await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_found_out_by_the_clause_that_names_it() {
    let mut missed = Vec::new();
    for (bug, clause, expected) in FOUND_BY {
        let report = checked(*bug, clause).await;
        match report.checked.as_slice() {
            [one] if matches!(&one.verdict, Verdict::Broken(why) if why.contains(expected)) => {}
            other => missed.push(format!("{bug:?} is not found out by `{clause}`: {other:?}")),
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_right_is_kept() {
    for clause in OF_DAMAGE.into_iter().chain([KILLED]) {
        let report = checked(Nothing, clause).await;
        assert!(matches!(*report.checked, [ref one] if one.verdict == Verdict::Kept), "{report}");
    }
}

fn in_memory() -> Contract {
    let store = MemoryStore::new();
    Contract::new(move || {
        let store = store.clone();
        async move { store }
    })
}

fn skipped(report: &Report) -> Vec<(&str, &str)> {
    let checked = report.checked.iter();
    checked
        .filter_map(|one| match &one.verdict {
            Verdict::Skipped(why) => Some((one.clause.as_str(), why.as_str())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn clauses_without_a_hook_are_skipped_with_the_reason() {
    let names = || OF_PROCESSES.into_iter().chain(OF_DAMAGE);
    assert!(names().all(|name| Contract::clauses().any(|clause| clause == name)));
    let report = in_memory().only(names()).run().await;
    report.assert();
    let found = skipped(&report);
    assert_eq!(
        found.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        names().collect::<Vec<_>>()
    );
    for (name, why) in found {
        let hook = match name {
            LEFT_ALONE | NEWER_LEFT_ALONE => "`Contract::stored`",
            _ if OF_DAMAGE.contains(&name) => "`Contract::damage`",
            _ => "`Contract::child`",
        };
        assert!(why.contains(hook), "{name}: {why}");
    }
}

#[tokio::test]
async fn damage_that_a_store_cannot_take_is_skipped() {
    let damage = |_, _| std::future::ready(false);
    let report = in_memory().damage(damage).only([REPORTED, TORN, NEWER]).run().await;
    report.assert();
    let found = skipped(&report);
    let kinds = ["Flip", "CutTail", "NewerFormat"];
    assert_eq!(found.len(), kinds.len(), "{report}");
    for ((_, why), kind) in found.iter().zip(kinds) {
        assert_eq!(*why, format!("this store cannot be damaged so: {kind}"));
    }
}

/// A process that never writes must not look like one that lost nothing.
#[tokio::test]
async fn a_process_that_does_not_work_is_a_failure() {
    let command = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "no::such::test"]);
        command
    };
    let folder = Folder::new();
    let place = Arc::new(Place::new(Nothing, &folder.0));
    let open = move || {
        let place = place.clone();
        async move { place.open().await }
    };
    let report = Contract::new(open).child(move |_| command()).only(OF_PROCESSES).run().await;
    assert_eq!(report.broken().count(), OF_PROCESSES.len(), "{report}");
    assert!(report.to_string().contains("does it call `child_worker`"), "{report}");
}

#[tokio::test]
async fn a_worker_that_the_suite_has_not_started_says_so() {
    let worked = child_worker(MemoryStore::new()).await;
    assert!(matches!(worked, Err(StoreError::Unsuitable(_))), "{worked:?}");
}
