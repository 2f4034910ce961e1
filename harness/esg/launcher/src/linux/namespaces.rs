//! Namespaces of its own: a network without interfaces, no shared memory of others, mounts that are not
//! the host's.
use std::fs;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};

/// Which of them the process has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spaces {
    /// Of users, so the number of its threads counts by itself.
    pub(super) users: bool,
    pub(super) network: bool,
    pub(super) ipc: bool,
    pub(super) mounts: bool,
}

/// Enters those that the system allows. Containers often allow none.
pub(super) fn enter(root: bool, network: bool, ipc: bool, mounts: bool) -> Spaces {
    let mut flags = CloneFlags::empty();
    flags.set(CloneFlags::CLONE_NEWNET, network);
    flags.set(CloneFlags::CLONE_NEWIPC, ipc);
    flags.set(CloneFlags::CLONE_NEWNS, mounts);
    if flags.is_empty() {
        return Spaces::default();
    }
    if root {
        // One by one: a container may allow some.
        let each = |flag| flags.contains(flag) && unshare(flag).is_ok();
        return Spaces {
            users: false,
            network: each(CloneFlags::CLONE_NEWNET),
            ipc: each(CloneFlags::CLONE_NEWIPC),
            mounts: each(CloneFlags::CLONE_NEWNS),
        };
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    if unshare(flags | CloneFlags::CLONE_NEWUSER).is_err() {
        return Spaces::default();
    }
    // The same numbers inside, so that files keep their owners.
    let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    let named = write("setgroups", "deny".to_owned())
        .and_then(|()| write("uid_map", format!("{user} {user} 1")))
        .and_then(|()| write("gid_map", format!("{group} {group} 1")));
    Spaces { users: named.is_ok(), network, ipc, mounts: mounts && named.is_ok() }
}
