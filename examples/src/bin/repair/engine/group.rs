//! The process group of a script, killed as a whole.

/// Kills the group when dropped, so that no process of a script outlives its run.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<u32>,
}

impl Group {
    /// The group led by a child that was started in a group of its own.
    pub(super) fn of(leader: Option<u32>) -> Self {
        Group { leader }
    }

    /// Kills the group, once: the system may reuse its id later.
    pub(super) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            kill(leader);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
fn kill(leader: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};

    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // It fails if the group is already empty.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_leader: u32) {}
