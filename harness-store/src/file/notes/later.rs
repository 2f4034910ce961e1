//! Making notes durable, behind the back of those who wait for an answer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Notes;

/// How long a note is left alone: a session that goes on at once writes another, and to sync the
/// first would only keep the disk from syncing its log.
const PAUSE: Duration = Duration::from_secs(1);

/// What the thread that sees to the notes of all stores of this process is told. What the end of the
/// process keeps it from is left to the system, which writes it within its own time.
static TO: Inbox = Inbox { due: Mutex::new(Due::new()), news: Condvar::new() };

#[derive(Debug)]
struct Inbox {
    due: Mutex<Due>,
    news: Condvar,
}

#[derive(Debug)]
struct Due {
    notes: Option<HashMap<PathBuf, Arc<Notes>>>,
    /// Whether there is a thread, and whether it waits to be woken. While it pauses it needs no
    /// word: to wake a thread costs as much as a small write.
    thread: bool,
    waits: bool,
}

impl Due {
    const fn new() -> Self {
        Self { notes: None, thread: false, waits: false }
    }
}

/// Makes notes durable before long.
pub(super) fn tend_later(notes: Arc<Notes>) {
    let mut due = TO.due.lock().unwrap_or_else(PoisonError::into_inner);
    due.notes.get_or_insert_default().insert(notes.path.clone(), notes);
    if due.waits {
        due.waits = false;
        TO.news.notify_one();
    } else if !due.thread {
        let thread = std::thread::Builder::new().name("harness-notes".into());
        // Should there be no thread, the system writes the notes in its own time.
        due.thread = thread.spawn(|| TO.tend_for_ever(PAUSE)).is_ok();
        if !due.thread {
            due.notes = None;
        }
    }
}

impl Inbox {
    fn tend_for_ever(&self, pause: Duration) {
        loop {
            for notes in self.within(pause).into_values() {
                notes.tend();
            }
        }
    }

    /// What comes within a pause after the first.
    fn within(&self, pause: Duration) -> HashMap<PathBuf, Arc<Notes>> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        while due.notes.is_none() {
            due.waits = true;
            due = self.news.wait(due).unwrap_or_else(PoisonError::into_inner);
        }
        due.waits = false;
        drop(due);
        std::thread::sleep(pause);
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.notes.take().unwrap_or_default()
    }
}
