//! Where a test keeps its sessions.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A directory that is taken away unless the test fails.
pub struct Place(PathBuf);

impl Place {
    pub fn new(what: &str, seed: Option<u64>) -> Self {
        let path = tempfile::tempdir().unwrap().keep();
        let seed = seed.map_or(String::new(), |seed| format!(", HARNESS_TORTURE_SEED={seed}"));
        report(&format!("{what}: in {}{seed}", path.display()));
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(&format!("kept: {}", self.0.display()));
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Reports it even if the test passes.
pub fn report(line: &str) {
    // Not printed: the test harness would keep it to itself.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
