//! The filters of system calls. Several apply together, and the strictest answer counts; between answers
//! of the same kind, that of the filter which was added last.
use std::collections::BTreeMap;

use libc::{c_long, *};
use rustix::process::getpid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use super::Result;
use super::calls;
use crate::layer::Layer;

/// The arguments with which a call matches. None: always.
type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// One argument of a call: its index, how it is compared, and with what.
type Argument = (u8, Is, u64);

/// Restricts the process. With `attributes`, those of files cannot be changed at all.
///
/// # Errors
/// If the kernel refuses, or there is no list for this processor.
pub(super) fn restrict(on: impl Fn(Layer) -> bool, attributes: bool) -> Result<()> {
    let refused = || SeccompAction::Errno(EPERM.unsigned_abs());
    if on(Layer::Network) {
        add(&network()?, SeccompAction::Allow, refused())?;
    }
    if on(Layer::Processes) {
        add(&processes()?, SeccompAction::Allow, refused())?;
        // The C library then makes threads in a way that a filter can distinguish from processes.
        let clone = always(&[&[SYS_clone3]]);
        add(&clone, SeccompAction::Allow, SeccompAction::Errno(ENOSYS.unsigned_abs()))?;
    }
    if on(Layer::Files) && attributes {
        let mut rules = always(&[calls::ATTRIBUTES, calls::OLDER_ATTRIBUTES]);
        // `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
        let flags = [0x4008_6602, 0x401c_5820].map(|request| any([(1, Is::Eq, request)]));
        rules.insert(SYS_ioctl, flags.into_iter().collect::<Result<_>>()?);
        add(&rules, SeccompAction::Allow, refused())?;
    }
    if on(Layer::System) {
        let never = always(&[calls::NEVER, calls::OLDER_NEVER]);
        add(&never, SeccompAction::Allow, SeccompAction::KillProcess)?;
        let known = always(&[
            calls::COMMON,
            calls::OLDER,
            calls::ATTRIBUTES,
            calls::OLDER_ATTRIBUTES,
            calls::SOCKETS,
            calls::PAIRS,
            calls::PROCESSES,
            calls::OLDER_PROCESSES,
        ]);
        // As if the kernel were older: libraries know what to do then.
        add(&known, SeccompAction::Errno(ENOSYS.unsigned_abs()), SeccompAction::Allow)?;
    }
    Ok(())
}

/// A pair of connected sockets is allowed, if it can send to nothing but each other.
fn network() -> Result<Rules> {
    let mut rules = always(&[calls::SOCKETS]);
    let kind = |kind: c_int| (1, Is::MaskedEq(0xf), number(kind));
    let pair = [
        any([(0, Is::Ne, number(AF_UNIX))])?,
        any([kind(SOCK_DGRAM)])?,
        any([kind(SOCK_RAW)])?,
        any([kind(SOCK_SEQPACKET)])?,
    ];
    rules.insert(SYS_socketpair, pair.into());
    // With an address.
    let address = SeccompCondition::new(4, Size::Qword, Is::Ne, 0)?;
    rules.insert(SYS_sendto, vec![SeccompRule::new(vec![address])?]);
    Ok(rules)
}

/// Threads are allowed, and what acts on the process itself.
fn processes() -> Result<Rules> {
    let me = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let mut rules = always(&[calls::PROCESSES, calls::OLDER_PROCESSES]);
    rules.insert(SYS_clone, vec![any([(0, Is::MaskedEq(number(CLONE_THREAD)), 0)])?]);
    for call in [SYS_kill, SYS_tgkill] {
        rules.insert(call, vec![any([(0, Is::Ne, me)])?]);
    }
    for call in [
        SYS_prlimit64,
        SYS_sched_setaffinity,
        SYS_sched_setattr,
        SYS_sched_setparam,
        SYS_sched_setscheduler,
    ] {
        rules.insert(call, vec![any([(0, Is::Ne, 0), (0, Is::Ne, me)])?]);
    }
    let priority =
        [any([(0, Is::Ne, u64::from(PRIO_PROCESS))])?, any([(1, Is::Ne, 0), (1, Is::Ne, me)])?];
    rules.insert(SYS_setpriority, priority.into());
    // Who gets the signals of a descriptor.
    const F_SETOWN_EX: c_int = 15;
    let owner = [
        any([(1, Is::Eq, number(F_SETOWN)), (2, Is::Ne, me)])?,
        any([(1, Is::Eq, number(F_SETOWN_EX))])?,
    ];
    rules.insert(SYS_fcntl, owner.into());
    Ok(rules)
}

fn always(lists: &[&[c_long]]) -> Rules {
    lists.iter().flat_map(|list| list.iter()).map(|call| (*call, Vec::new())).collect()
}

/// A rule for calls whose arguments, all of 32 bits, are like this.
fn any<const N: usize>(arguments: [Argument; N]) -> Result<SeccompRule> {
    let condition = |(index, is, value)| SeccompCondition::new(index, Size::Dword, is, value);
    let conditions = arguments.into_iter().map(condition).collect::<std::result::Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn number(constant: c_int) -> u64 {
    u64::from(constant.unsigned_abs())
}

fn add(rules: &Rules, otherwise: SeccompAction, action: SeccompAction) -> Result<()> {
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules.clone(), otherwise, action, processor)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}
