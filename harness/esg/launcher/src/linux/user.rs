//! Drops the rights of root.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::chown;
use rustix::process::{Gid, Uid, getpid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Numbers that distributions keep free for users without a name.
const FIRST: u32 = 61_184;
const COUNT: u32 = 4_336;

/// Becomes a user whose number no other process is likely to have, so that limits by user count this
/// process alone. It owns `write`, and can read `paths` even if only root may.
pub(super) fn drop<'a>(
    mut paths: impl Iterator<Item = &'a PathBuf>,
    write: &[PathBuf],
) -> super::Result<String> {
    let number = FIRST + getpid().as_raw_nonzero().get().unsigned_abs() % COUNT;
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    for path in write {
        chown(path, Some(user), Some(group))
            .map_err(|error| format!("failed to give {} away: {error}", path.display()))?;
    }
    // An interpreter in the home directory of root. Landlock limits what it can read anyway.
    let reads = match paths.all(|path| is_open(path)) {
        true => CapabilitySet::empty(),
        false => CapabilitySet::DAC_READ_SEARCH,
    };
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)
        .map_err(|error| format!("failed to become group {number}: {error}"))?;
    set_thread_res_uid(user, user, user)
        .map_err(|error| format!("failed to become user {number}: {error}"))?;
    set_capabilities(
        None,
        CapabilitySets { effective: reads, permitted: reads, inheritable: reads },
    )?;
    if reads.is_empty() {
        return Ok(format!("user {number}"));
    }
    configure_capability_in_ambient_set(reads, true)?;
    Ok(format!("user {number} (may read like root)"))
}

/// Whether every user can read it.
fn is_open(path: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else { return false };
    let allows = |path: &Path, mode| {
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & mode == mode)
    };
    let whole = if path.is_dir() { 0o005 } else { 0o004 };
    allows(&path, whole) && path.ancestors().skip(1).all(|folder| allows(folder, 0o001))
}
