//! A state that grows by one message a step, kept in files.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use harness::store::SessionStore;
use harness_store::{FileStore, FileStoreOptions, Sync};
use tempfile::TempDir;

use super::growing::{self, message};
use super::{Figure, block_on, compare_waiting, failed};

/// The line of a message, with the number of its step: the least that a program would keep.
pub(super) fn line(nth: usize) -> String {
    format!("{{\"seq\":{nth:>6},\"message\":\"{}\"}}\n", message(nth))
}

/// A directory for one case, below the working directory: the directory for temporary files may be
/// in memory.
pub(super) fn dir() -> io::Result<TempDir> {
    std::fs::create_dir_all("target")?;
    tempfile::Builder::new().prefix("measure-").tempdir_in("target")
}

/// All bytes below a directory.
fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}

fn ours(store: impl SessionStore, steps: u64) {
    if let Ok(agent) = growing::agent(steps) {
        growing::run(&agent.store(store), steps);
    }
}

fn by_hand(path: &Path, steps: u64, sync: Sync) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    for nth in 0..steps as usize {
        file.write_all(line(nth).as_bytes())?;
        if sync == Sync::Flush {
            file.sync_data()?;
        }
    }
    Ok(file)
}

/// The bytes in the directory of a store with default options after the run has settled, beside the
/// messages as lines.
pub(super) fn bytes() -> Vec<Figure> {
    let measure = |steps: u64| -> Option<Figure> {
        let dir = dir().ok()?;
        let store = block_on(FileStore::open(dir.path())).ok()?;
        ours(store, steps);
        let ours = bytes_below(dir.path()).ok()? as f64;
        let floor: usize = (0..steps as usize).map(|nth| line(nth).len()).sum();
        let floor = floor as f64;
        let case = format!("log-file-bytes/{steps}");
        Some(Figure { case, ours, floor, unit: "bytes", ratio: ours / floor })
    };
    let measured = [1_000, 10_000].map(measure);
    measured.into_iter().map(|figure| figure.unwrap_or_else(|| failed("log-file-bytes"))).collect()
}

/// The time of the same: written when the system likes, and flushed at every step.
pub(super) fn time() -> Vec<Figure> {
    let measure = |case: &str, steps: u64, sync: Sync| -> Option<Figure> {
        let dir = dir().ok()?;
        let store = block_on(FileStoreOptions::new().sync(sync).open(dir.path())).ok()?;
        let round = Cell::new(0);
        Some(compare_waiting(
            format!("{case}/{steps}"),
            steps,
            || ours(store.clone(), steps),
            || {
                round.set(round.get() + 1);
                let path = dir.path().join(format!("by-hand-{}", round.get()));
                assert!(by_hand(&path, steps, sync).is_ok());
            },
        ))
    };
    [
        ("log-file", 1_000, Sync::Never),
        ("log-file", 10_000, Sync::Never),
        ("log-file-sync", 200, Sync::Flush),
    ]
    .into_iter()
    .map(|(case, steps, sync)| measure(case, steps, sync).unwrap_or_else(|| failed(case)))
    .collect()
}
