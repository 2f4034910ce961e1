//! A process that is started before it is needed.
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use super::launch::{Launch, Opening};
use super::process::{Allowance, Fault, Group, Process};
use super::scratch::{Next, Scratch};

/// Lets a process that waits continue.
const CONTINUE: &[u8] = b"\n";

/// What a process replies once it is in its sandbox and waits.
#[derive(Deserialize)]
struct Waits {}

/// A process that has loaded the worker's program, and then waits. It works in a directory of its own,
/// which takes the place of scratch with it. No code of a step has run in it.
#[derive(Debug)]
pub(super) struct Spare {
    // Dropped in this order.
    process: Process,
    next: Next,
    opening: Opening,
    /// The end of the first request, which did not fit into the pipe.
    unsent: Vec<u8>,
}

impl Spare {
    /// Starts one, and waits for nothing.
    ///
    /// # Errors
    /// Why it does not start.
    pub(super) fn start(launch: &dyn Launch, scratch: &Arc<Scratch>) -> io::Result<Self> {
        let next = scratch.next()?;
        let work = scratch.path();
        let work = work.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = launch.command(work, &next.path()).map_err(io::Error::other)?;
        command.current_dir(next.path());
        let mut process = Process::start(command, &Arc::new(Group::default()))?;
        let opening =
            launch.opening(work, true).map_err(|fault| io::Error::other(format!("{fault:?}")))?;
        let message = opening.parts().concat();
        let sent = process.send_ahead(&message)?;
        Ok(Self { process, next, opening, unsent: message[sent..].to_vec() })
    }

    /// Makes it the worker that steps run in: of `group`, and in scratch at `folder`.
    ///
    /// # Errors
    /// If it has not become a worker. Scratch may be missing then.
    pub(super) fn take_place(
        self,
        launch: &dyn Launch,
        group: &Arc<Group>,
        folder: PathBuf,
        may: Allowance,
    ) -> Result<Process, Fault> {
        let Self { mut process, next, opening, unsent } = self;
        // Before its sandbox is set up, which goes by the path, the directory must stay where it is.
        let Waits {} = opening.reply(process.finish(&[&unsent], may)?)?.0;
        next.take_place().map_err(Fault::System)?;
        process.join(group, folder);
        let reply = process.turn(&[CONTINUE], may)?;
        launch.welcome(&opening, reply)?;
        Ok(process)
    }
}
