//! Ctrl-C.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

use super::{Folder, TWO_WAYS, program};

pub(super) fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// Interrupts a repair of an endless script this often while the script runs; returns the code,
/// standard output and standard error.
fn interrupted(times: u32) -> (Option<i32>, String, String, Duration) {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    // The script opens a pipe when it runs; the test waits by opening the other end.
    let running = folder.path("running");
    mkfifoat(CWD, &running, Mode::RUSR | Mode::WUSR).unwrap();
    let endless = format!("open({running:?}, 'w').close()\nwhile True:\n    pass\n");
    std::fs::write(folder.path("endless.py"), endless).unwrap();
    let mut child = program()
        .args([
            "--yes",
            "--write",
            "--trust",
            "mine",
            "--seconds",
            "5",
            &folder.name("endless.py"),
            &folder.name("a.py"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut out = String::new();
    File::open(&running).unwrap();
    let started = Instant::now();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    for _ in 0..times {
        interrupt(&child);
        if err.is_empty() {
            stderr.read_line(&mut err).unwrap();
        }
    }
    stdout.read_to_string(&mut out).unwrap();
    stderr.read_to_string(&mut err).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(folder.text("a.py"), TWO_WAYS, "a script that was not started is not written");
    (code, out, err, started.elapsed())
}

#[test]
fn the_first_stops_after_the_step_and_prints_a_summary() {
    let (code, out, err, _) = interrupted(1);
    assert_eq!(code, Some(130), "{out}{err}");
    assert!(out.contains("endless.py: stopped"), "{out}");
    assert!(out.contains("a.py: not started"), "{out}");
    let (summary, command) = err.split_once("repair: resume with: ").unwrap();
    assert_eq!(
        summary,
        "repair: stopping after this step (Ctrl-C again stops at once)\n\
         repair: stopped by Ctrl-C: 0 of 2 files done; 0 repairs applied; \
         no file of yours was changed\n"
    );
    assert!(command.ends_with(" --yes --write\n"), "{command}");
}

#[test]
fn the_second_does_not_wait_for_the_script() {
    let (code, out, err, elapsed) = interrupted(2);
    assert_eq!(code, Some(130), "{out}{err}");
    assert!(out.contains("endless.py: stopped"), "{out}");
    assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
}
