//! Approvals at a terminal, with a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::stopping::interrupt;
use super::{Folder, TWO_WAYS, program};

const PROMPT: &str = "Apply this repair? [y]es, [n]ext, [q]uit: ";
const PATIENCE: Duration = Duration::from_secs(30);

/// A program at a terminal, and what it has shown there.
struct Session {
    child: Child,
    terminal: File,
    shown: String,
    arriving: Receiver<Vec<u8>>,
}

impl Session {
    fn start(args: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave: OwnedFd = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = program().args(args).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(slave);
        let terminal = File::from(master);
        let mut reader = terminal.try_clone().unwrap();
        let (send, arriving) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // It fails after the program has ended.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, terminal, shown: String::new(), arriving }
    }

    /// Waits until a text is shown; takes everything up to its end.
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                return self.shown.drain(..at + text.len()).collect();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.arriving.recv_timeout(left) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {text:?} in {}", self.shown)
                }
            }
        }
    }

    fn type_in(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end; returns the exit code and the other text.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(bytes) =
            self.arriving.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.child.wait().unwrap().code(), self.shown.clone())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A failed test leaves no process.
        let _ = self.child.kill();
    }
}

#[test]
fn a_yes_approves_and_a_coloured_diff_was_shown() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let mut session = Session::start(&["--write", &folder.name("a.py")]);
    let shown = session.wait_for(PROMPT);
    assert!(shown.contains("\u{1b}[31m-print(itmes)\u{1b}[0m"), "{shown}");
    assert!(shown.contains("\u{1b}[32m+print(items)\u{1b}[0m"), "{shown}");
    assert!(shown.contains("misspelt name: `itmes` is not defined; `items` is"), "{shown}");
    assert!(shown.contains("a.py"), "progress is shown: {shown}");
    assert_eq!(folder.text("a.py"), TWO_WAYS);
    session.type_in("y\n");
    let (code, rest) = session.end();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("approved by ada"), "{rest}");
    assert_eq!(folder.text("a.py"), TWO_WAYS.replace("itmes", "items"));
}

#[test]
fn an_empty_line_approves_nothing_and_asks_again() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let mut session = Session::start(&["--write", &folder.name("a.py")]);
    session.wait_for(PROMPT);
    for typed in ["\n", "   \n", "maybe\n"] {
        session.type_in(typed);
        let shown = session.wait_for(PROMPT);
        assert!(shown.contains("an empty line approves nothing"), "{shown}");
    }
    session.type_in("q\n");
    let (code, rest) = session.end();
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("not fixed: stopped on request"), "{rest}");
    assert_eq!(folder.text("a.py"), TWO_WAYS);
}

#[test]
fn a_no_takes_the_next_proposal() {
    let folder = Folder::with("a.py", TWO_WAYS, "2\n");
    let mut session = Session::start(&[&folder.name("a.py")]);
    session.wait_for("+print(items)");
    session.wait_for(PROMPT);
    session.type_in("n\n");
    session.wait_for("+print(times)");
    session.wait_for(PROMPT);
    session.type_in("y\n");
    let (code, rest) = session.end();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("(declined by ada)") && rest.contains("(approved by ada)"), "{rest}");
}

#[test]
fn a_q_leaves_the_other_files_alone() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let mut session = Session::start(&[&folder.name("a.py"), &folder.name("a.py")]);
    session.wait_for(PROMPT);
    session.type_in("q\n");
    let (code, rest) = session.end();
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("a.py: not started"), "{rest}");
}

#[test]
fn the_end_of_input_approves_nothing() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let mut session = Session::start(&["--write", &folder.name("a.py")]);
    session.wait_for(PROMPT);
    session.type_in("\u{4}");
    let (code, rest) = session.end();
    assert_eq!(code, Some(1), "{rest}");
    assert_eq!(folder.text("a.py"), TWO_WAYS);
}

#[test]
fn ctrl_c_at_the_question_approves_nothing() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let mut session = Session::start(&["--write", &folder.name("a.py")]);
    session.wait_for(PROMPT);
    interrupt(&session.child);
    let (code, rest) = session.end();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("stopped by Ctrl-C: 0 of 1 files done; 0 repairs applied"), "{rest}");
    assert_eq!(folder.text("a.py"), TWO_WAYS);
}
