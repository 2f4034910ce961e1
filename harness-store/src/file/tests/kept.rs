//! The notes beside the logs of a directory that was written by the first store: they are read, and
//! written today as they were then.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::file::checkpoint::Checkpoint;
use crate::file::disk::RealDisk;
use crate::file::lease::{Renewal, small, write_small};
use crate::file::start::Start;

/// Reads each note with this ending, writes it again, and says how many there were.
fn again<T: Serialize + for<'de> Deserialize<'de>>(ending: &str) -> usize {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1/sessions");
    let (to, mut found) = (tempfile::tempdir().unwrap(), 0);
    for shard in std::fs::read_dir(kept).unwrap() {
        for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != ending) {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let note: T = small(&bytes).unwrap();
            let copy = to.path().join(found.to_string());
            write_small(&RealDisk, &copy, &note).unwrap();
            // A longer one that was there before may have left its end.
            let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap();
            let written = std::fs::read(copy).unwrap();
            assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(line));
            found += 1;
        }
    }
    found
}

#[test]
fn notes_are_written_as_ever() {
    assert_eq!(again::<Checkpoint>("checkpoint"), 5);
    assert_eq!(again::<Renewal>("lease"), 7);
    assert_eq!(again::<Start>("start"), 1);
}
