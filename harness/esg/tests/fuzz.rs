//! Random programs and random edits: selective re-execution must leave the state of a full run.
//!
//! The same 100 programs each time, so that a change that breaks one is known by it.
//! `HARNESS_FUZZ_SECONDS` makes as many as it has time for, `HARNESS_FUZZ_SEED` runs one case only,
//! `HARNESS_FUZZ_START` sets the first seed, `HARNESS_FUZZ_MINOR` selects one minor version of
//! Python 3. `HARNESS_FUZZ_FIELD` is a virtual environment with numpy, pandas, matplotlib and scikit-learn:
//! the programs are about these packages then.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fuzz/case.rs"]
mod case;
#[path = "fuzz/check.rs"]
mod check;
#[path = "fuzz/constructs.rs"]
mod constructs;
#[path = "fuzz/dice.rs"]
mod dice;
#[path = "fuzz/field.rs"]
mod field;
#[path = "fuzz/grammar.rs"]
mod grammar;
#[path = "fuzz/liar.rs"]
mod liar;
#[path = "fuzz/phrases.rs"]
mod phrases;
#[path = "fuzz/shrink.rs"]
mod shrink;
#[path = "fuzz/wild.rs"]
mod wild;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use case::Case;
use check::{Rules, Tally, check};
use harness_esg::{CPython, Limits, Trust, WorkerProcess};
use liar::{Liar, Lie};

/// A Python of each version that can run steps. There must be one.
fn pythons() -> Vec<PathBuf> {
    let mut paths = BTreeMap::new();
    for python in CPython::all() {
        paths.entry(u64::from(python.version()[1])).or_insert_with(|| python.path().to_owned());
    }
    // Also those that are installed but not in PATH.
    let home = std::env::var_os("HOME").unwrap_or_default();
    for minor in 11..=13 {
        let versions = std::fs::read_dir(PathBuf::from(&home).join(".pyenv/versions"));
        for version in versions.into_iter().flatten().flatten() {
            if version.file_name().to_string_lossy().starts_with(&format!("3.{minor}.")) {
                let path = version.path().join(format!("bin/python3.{minor}"));
                paths.entry(minor).or_insert(path);
            }
        }
    }
    let only = setting("HARNESS_FUZZ_MINOR");
    paths.retain(|minor, _| only.is_none_or(|only| only == *minor));
    assert!(!paths.is_empty(), "no Python of 3.11 to 3.13 is here: install one");
    paths.into_values().collect()
}

fn worker(python: &Path) -> WorkerProcess {
    // Importing packages takes long on a busy machine.
    let wall = Duration::from_secs(600);
    let limits =
        Limits { wall, cpu: wall, service: wall, address_space: 8 << 30, ..Limits::default() };
    CPython::at(python).limits(limits).trust(Trust::Mine).start().unwrap()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How many failing cases to collect before the report.
const ENOUGH: usize = 5;
const PROGRAMS: usize = 100;

#[test]
fn selective_replay_leaves_what_a_full_run_leaves() {
    let pythons = pythons();
    let seconds = setting("HARNESS_FUZZ_SECONDS");
    let time = Duration::from_secs(seconds.unwrap_or(u64::MAX));
    let programs = if seconds.is_some() { usize::MAX } else { PROGRAMS };
    let begun = Instant::now();
    let one = setting("HARNESS_FUZZ_SEED");
    let mut made = 0;
    let mut seed = one.or_else(|| setting("HARNESS_FUZZ_START")).unwrap_or(0);
    let mut wild = phrases::TOPICS.to_vec();
    wild.extend([wild::WILD; 8]);
    let field =
        std::env::var_os("HARNESS_FUZZ_FIELD").map(|venv| PathBuf::from(venv).join("bin/python"));
    let (mut total, mut wrong) = (Tally::default(), Vec::new());
    while begun.elapsed() < time && made < programs && wrong.len() < ENOUGH {
        made += 1;
        // Every eighth program may contain untracked operations.
        let untracked = seed % 8 == 7 || field.is_some();
        let rules = Rules { untracked, ..Rules::default() };
        let mut topics = if untracked { &wild[..] } else { phrases::TOPICS };
        let mut python = &pythons[usize::try_from(seed).unwrap() % pythons.len()];
        if let Some(field) = &field {
            (topics, python) = (field::TOPICS, field);
        }
        let case = Case::new(seed, topics);
        let (why, tally) = check(&case, worker(python), rules);
        total.add(tally);
        if let Some(why) = why {
            let mut last = why;
            let small =
                shrink::shrink(&case, if field.is_some() { 15 } else { 60 }, &mut |smaller| {
                    match check(smaller, worker(python), rules).0 {
                        Some(why) => {
                            last = why;
                            true
                        }
                        None => false,
                    }
                });
            eprintln!("{} {last}\n{small}", python.display());
            wrong.push(seed);
        }
        if one.is_some() {
            break;
        }
        seed += 1;
    }
    eprintln!("{total:?} in {:?}", begun.elapsed());
    assert!(wrong.is_empty(), "cases that fail, set HARNESS_FUZZ_SEED to one of them: {wrong:?}");
}

/// How many programs it takes to find a lie.
fn found(lie: Lie) -> Option<u64> {
    let python = pythons().remove(0);
    let rules = Rules { no_sweep: true, ..Rules::default() };
    (0..300).find(|&seed| {
        let case = Case::new(seed, phrases::TOPICS);
        check(&case, Liar::new(worker(&python), lie), rules).0.is_some()
            && check(&case, worker(&python), rules).0.is_none()
    })
}

#[test]
fn a_worker_that_says_that_nothing_changed_is_found_out() {
    assert!(found(Lie::NothingChanged).is_some());
}

#[test]
fn a_worker_that_leaves_out_a_read_is_found_out() {
    assert!(found(Lie::ReadLeftOut).is_some());
}
