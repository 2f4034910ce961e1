//! Starts a program inside a sandbox of the kernel. `harness-esg` starts its workers with it.
//!
//! What protects a process has to be applied by the process itself, between its start and the start of
//! its program. So a [`Sandbox`] starts a *launcher*, which applies the [layers](Layer) to itself and
//! then becomes the program. The launcher is the calling program itself, if its `main` begins with
//! [`enter`]:
//!
//! ```no_run
//! harness_esg_launcher::enter();
//! // What the program does.
//! ```
//!
//! or the program `harness-esg-launcher` of this package, beside the calling program or in `PATH`, for
//! programs whose `main` is not theirs, such as tests and extension modules.
//!
//! If a layer fails to apply, the launcher exits without starting the program.
#![forbid(unsafe_code)]

mod error;
mod layer;
#[cfg(target_os = "linux")]
mod linux;
mod sandbox;
mod spec;

pub use error::LaunchError;
pub use layer::{Layer, Layers, Status};
pub use sandbox::{Launcher, Sandbox};
pub use spec::Spec;

use std::env;
use std::ffi::OsString;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use spec::Task;

/// The first argument of a launcher.
const MARK: &str = "--harness-esg-launch";

/// The exit code of a launcher that did not start its program.
const REFUSED: i32 = 125;

/// Whether this program is a launcher when it is started with `MARK`.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Makes the calling program a launcher. Call it first in `main`, before anything starts a thread.
///
/// If the process was started as a launcher, this does not return: the process becomes the program that
/// it launches, or exits. Otherwise it does nothing, except that [`Sandbox::find`] finds this program.
pub fn enter() {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == MARK) {
        let why = launch(args);
        eprintln!("{why}");
        process::exit(REFUSED);
    }
    ENTERED.store(true, Ordering::Release);
}

/// Does what the arguments of a launcher say. Returns why it failed to.
fn launch(mut args: impl Iterator<Item = OsString>) -> String {
    let task = args.next().and_then(|task| serde_json::from_slice(task.as_encoded_bytes()).ok());
    let Some(task): Option<Task> = task else {
        return "the launcher and the program that started it are of different versions".to_owned();
    };
    run(&task, args)
}

#[cfg(target_os = "linux")]
use linux::run;

#[cfg(not(target_os = "linux"))]
fn run(_: &Task, _: impl Iterator<Item = OsString>) -> String {
    "no sandbox for this system".to_owned()
}
