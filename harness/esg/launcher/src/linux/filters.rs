//! The filters of system calls: a table for calls that are decided by their number alone, which are most, and
//! rules for those with certain arguments. The strictest answer counts.
use std::collections::BTreeMap;

use libc::{c_long, *};
use rustix::process::getpid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use super::Result;
use super::calls;
use super::table::Table;
use crate::layer::Layer;

/// The arguments with which a call is refused.
type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// One argument of a call: its index, how it is compared, and with what.
type Argument = (u8, Is, u64);

/// Restricts the process. With `attributes`, those of files cannot be changed at all.
///
/// # Errors
/// If the kernel refuses, or there is no list for this processor.
pub(super) fn restrict(on: impl Fn(Layer) -> bool, attributes: bool) -> Result<()> {
    let attributes = on(Layer::Files) && attributes;
    let mut rules = Rules::new();
    if on(Layer::Network) {
        rules.extend(network()?);
    }
    if on(Layer::Processes) {
        rules.extend(processes()?);
    }
    if attributes {
        rules.extend(flags()?);
    }
    if !rules.is_empty() {
        let processor = TargetArch::try_from(std::env::consts::ARCH)?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused(), processor)?;
        let program: BpfProgram = filter.try_into()?;
        apply_filter(&program)?;
    }
    let table = table(&on, attributes)?;
    match table.decides() {
        true => Ok(apply_filter(&table.program()?)?),
        false => Ok(()),
    }
}

fn refused() -> SeccompAction {
    SeccompAction::Errno(EPERM.unsigned_abs())
}

/// As if the kernel were older: libraries know what to do then.
fn unknown() -> SeccompAction {
    SeccompAction::Errno(ENOSYS.unsigned_abs())
}

/// What is decided by the number of a call.
fn table(on: &impl Fn(Layer) -> bool, attributes: bool) -> Result<Table> {
    let mut answers = BTreeMap::new();
    let mut answer = |lists: &[&[c_long]], answer: SeccompAction| {
        let calls = lists.iter().flat_map(|list| list.iter());
        answers.extend(calls.map(|call| (*call, answer.clone())));
    };
    let mut otherwise = SeccompAction::Allow;
    if on(Layer::System) {
        answer(&[calls::COMMON, calls::OLDER], SeccompAction::Allow);
        answer(&[calls::ATTRIBUTES, calls::OLDER_ATTRIBUTES], SeccompAction::Allow);
        answer(&[calls::SOCKETS, calls::PAIRS], SeccompAction::Allow);
        answer(&[calls::PROCESSES, calls::OLDER_PROCESSES], SeccompAction::Allow);
        otherwise = unknown();
    }
    // What follows is stricter, and takes the place of the above.
    if on(Layer::Network) {
        answer(&[calls::SOCKETS], refused());
    }
    if on(Layer::Processes) {
        answer(&[calls::PROCESSES, calls::OLDER_PROCESSES], refused());
        // The C library then makes threads in a way that a filter can distinguish from processes.
        answer(&[&[SYS_clone3]], unknown());
    }
    if attributes {
        answer(&[calls::ATTRIBUTES, calls::OLDER_ATTRIBUTES], refused());
    }
    if on(Layer::System) {
        answer(&[calls::NEVER, calls::OLDER_NEVER], SeccompAction::KillProcess);
    }
    Table::new(&answers, otherwise)
}

/// A pair of connected sockets is allowed, if it can send to nothing but each other.
fn network() -> Result<Rules> {
    let kind = |kind: c_int| (1, Is::MaskedEq(0xf), number(kind));
    let pair = [
        any([(0, Is::Ne, number(AF_UNIX))])?,
        any([kind(SOCK_DGRAM)])?,
        any([kind(SOCK_RAW)])?,
        any([kind(SOCK_SEQPACKET)])?,
    ];
    // With an address.
    let address = SeccompCondition::new(4, Size::Qword, Is::Ne, 0)?;
    let address = SeccompRule::new(vec![address])?;
    Ok(Rules::from([(SYS_socketpair, pair.into()), (SYS_sendto, vec![address])]))
}

/// Threads are allowed, and what acts on the process itself.
fn processes() -> Result<Rules> {
    let me = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let mut rules = Rules::new();
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

/// Attributes that are changed through a descriptor: `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
fn flags() -> Result<Rules> {
    let flags = [0x4008_6602, 0x401c_5820].map(|request| any([(1, Is::Eq, request)]));
    Ok(Rules::from([(SYS_ioctl, flags.into_iter().collect::<Result<_>>()?)]))
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
