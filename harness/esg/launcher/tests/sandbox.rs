//! What hostile steps of Python can do in the sandbox, as root and as an ordinary user. Each attack
//! succeeds without the layers that stop it.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "sandbox/attacks.rs"]
mod attacks;
#[path = "sandbox/cases.rs"]
mod cases;
#[path = "sandbox/limits.rs"]
mod limits;
#[path = "sandbox/starts.rs"]
mod starts;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use harness_esg::{CPython, Executor, Interpreter, Ran, RunStep};
use harness_esg_launcher::Sandbox;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tempfile::TempDir;

/// An ordinary user without a name.
const ORDINARY: u32 = 54_321;

/// Who starts the workers: the interpreter and a launcher that this user can execute.
struct Host {
    name: &'static str,
    python: PathBuf,
    launcher: PathBuf,
    /// A directory that everyone may write to, outside of every scratch directory.
    outside: TempDir,
}

impl Host {
    fn new(name: &'static str, python: PathBuf) -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o777)).unwrap();
        // Each host has a launcher of its own, because what it reports is kept by its path.
        let launcher = outside.path().join("launcher");
        // Another process copies it: a child that another test starts meanwhile would hold a copy of this
        // process open for writing, and a file that is cannot be executed.
        let original = env!("CARGO_BIN_EXE_harness-esg-launcher");
        let copied = Command::new("cp").arg(original).arg(&launcher).status().unwrap();
        assert!(copied.success());
        Self { name, python, launcher, outside }
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox::at(&self.launcher)
    }

    fn builder(&self) -> CPython {
        CPython::at(&self.python).launcher(self.sandbox())
    }

    fn outside(&self) -> &Path {
        self.outside.path()
    }
}

/// Runs a test as root, if this process is root, and as an ordinary user.
fn as_each(test: impl Fn(&Host) + Send + Sync) {
    let all = CPython::all();
    assert!(!all.is_empty(), "no CPython from 3.11 to 3.13 in PATH");
    if !geteuid().is_root() {
        return test(&Host::new("user", all[0].path().to_owned()));
    }
    test(&Host::new("root", all[0].path().to_owned()));
    let python = all.iter().map(Interpreter::path).find(|path| is_open(path));
    let python = python.expect("a CPython that users other than root can execute");
    let host = Host::new("user", python.to_owned());
    let (user, group) = (Uid::from_raw(ORDINARY), Gid::from_raw(ORDINARY));
    // The processes that a thread starts have its user.
    let done = thread::scope(|scope| {
        let ordinary = scope.spawn(|| {
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(group, group, group).unwrap();
            set_thread_res_uid(user, user, user).unwrap();
            test(&host);
        });
        ordinary.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Whether every user can execute it.
fn is_open(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    real.ancestors().all(|part| part.metadata().unwrap().permissions().mode() & 0o001 != 0)
}

fn run(python: &mut dyn Executor, source: &str) -> Ran {
    static SEQ: AtomicU64 = AtomicU64::new(1);
    let seq = SEQ.fetch_add(1, Ordering::Relaxed);
    python.run(&RunStep { seq, step: "s", source, bind: None, readings: None }).unwrap()
}
