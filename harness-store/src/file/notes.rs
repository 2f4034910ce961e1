//! Making the notes of sessions at rest durable, behind the back of those who wait for an answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::disk::DiskFile;

/// How long a note is left alone: a session that goes on at once writes another, and to sync the
/// first would only keep the disk from syncing its log.
const PAUSE: Duration = Duration::from_secs(1);

type Note = (PathBuf, Arc<dyn DiskFile>);

/// To the thread that syncs the notes of all stores of this process, once there is one. What the end
/// of the process keeps it from is left to the system, which writes it within its own time.
static TO: Mutex<Option<Sender<Note>>> = Mutex::new(None);

/// Makes a note durable before long.
pub(crate) fn sync_later(path: &Path, file: Arc<dyn DiskFile>) {
    let mut to = TO.lock().unwrap_or_else(PoisonError::into_inner);
    let note = (path.to_owned(), file);
    let Some(note) = (match &*to {
        // A thread that has ended takes no more.
        Some(sender) => sender.send(note).err().map(|back| back.0),
        None => Some(note),
    }) else {
        return;
    };
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("harness-notes".into());
    // Should there be no thread, the system writes the notes in its own time.
    *to = thread.spawn(move || sync_all(&receiver, PAUSE)).ok().map(|_| {
        // Its receiver is there for as long as the thread is.
        let _ = sender.send(note);
        sender
    });
}

/// Syncs each note once that has come within a pause, until nobody sends any more.
fn sync_all(notes: &Receiver<Note>, pause: Duration) {
    while let Ok((path, file)) = notes.recv() {
        let mut due = HashMap::from([(path, file)]);
        let end = Instant::now() + pause;
        loop {
            match notes.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((path, file)) => drop(due.insert(path, file)),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for file in due.into_values() {
            // Should it fail, the note before it stays.
            let _ = file.sync();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::file::disk::{Disk as _, Mode};
    use crate::file::tests::recording::{Op, Recording};

    #[test]
    fn a_note_is_synced_once_for_all_that_were_written_within_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Recording::default();
        let (sender, receiver) = mpsc::channel();
        for name in ["a", "b", "a", "a"] {
            let path = dir.path().join(name);
            let file = disk.open(&path, Mode::InPlace).unwrap();
            sender.send((path, file)).unwrap();
        }
        drop(sender);
        sync_all(&receiver, Duration::from_millis(1));
        let tape = disk.tape.lock().unwrap();
        let mut synced: Vec<usize> = tape
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Sync(file) => Some(*file),
                _ => None,
            })
            .collect();
        synced.sort_unstable();
        assert_eq!(synced, [1, 2]);
    }
}
