//! Reads from and writes to a process that may stop at any moment.
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, kill_process_group};

/// The largest answer of an interpreter, in bytes.
const ANSWER: usize = 16 * 1024;

/// The smallest read buffer, in bytes: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// What is ready.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::exec) struct Ready {
    /// There is data to read, or the end of the stream.
    pub(in crate::exec) read: bool,
    /// There is room to write, or the reader is gone.
    pub(in crate::exec) write: bool,
    /// The second input has data.
    pub(in crate::exec) aside: bool,
}

/// Makes reads and writes non-blocking.
///
/// # Errors
/// If the system refuses.
pub(in crate::exec) fn unblock(fd: impl AsFd) -> Result<(), Errno> {
    ioctl_fionbio(fd, true)
}

/// Waits up to `wait` until one of them is ready.
///
/// # Errors
/// If the system refuses.
pub(in crate::exec) fn ready(
    read: BorrowedFd<'_>,
    write: Option<BorrowedFd<'_>>,
    aside: Option<BorrowedFd<'_>>,
    wait: Duration,
) -> Result<Ready, Errno> {
    let mut fds = Vec::with_capacity(3);
    fds.push(PollFd::from_borrowed_fd(read, PollFlags::IN));
    fds.extend(write.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
    fds.extend(aside.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let wait = Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&wait)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Ready::default()),
        Err(errno) => return Err(errno),
    }
    let mut rest = fds[1..].iter().map(|fd| !fd.revents().is_empty());
    let mut next = |is: bool| is && rest.next().unwrap_or(false);
    Ok(Ready {
        read: !fds[0].revents().is_empty(),
        write: next(write.is_some()),
        aside: next(aside.is_some()),
    })
}

/// The result of one read.
#[derive(Debug)]
pub(in crate::exec) enum Got {
    /// This many bytes.
    Bytes(usize),
    /// No data yet.
    Nothing,
    /// Every writer has closed the pipe.
    End,
}

/// Reads what is available.
pub(in crate::exec) fn read(mut from: impl Read, into: &mut [u8]) -> Got {
    match from.read(into) {
        Ok(0) => Got::End,
        Ok(count) => Got::Bytes(count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Got::Nothing
        }
        Err(_) => Got::End,
    }
}

/// Reads what is available to the end of `into`, at most `most` bytes.
pub(in crate::exec) fn append(from: impl Read, into: &mut Vec<u8>, most: usize) -> Got {
    let before = into.len();
    // The buffer grows with what arrived, never with an announced length.
    into.reserve(most.min(CHUNK));
    let ended = from.take(most as u64).read_to_end(into);
    match (into.len() - before, ended) {
        (0, Err(error)) if error.kind() == ErrorKind::WouldBlock => Got::Nothing,
        (0, _) if most > 0 => Got::End,
        (count, _) => Got::Bytes(count),
    }
}

/// The standard output of a command, up to its end. The error is a message. Everything the command
/// started is killed.
///
/// # Errors
/// If it does not start, writes too much, or takes too long.
pub(in crate::exec) fn output(mut command: Command, within: Duration) -> Result<Vec<u8>, String> {
    let until = Instant::now() + within;
    let mut child = command
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("a file that fails to start ({error})"))?;
    let group = Pid::from_child(&child);
    let said = child.stdout.take().map(|from| listen(from, until));
    // Not reaped yet, so the number still means this group.
    kill_process_group(group, Signal::KILL).ok();
    child.wait().ok();
    said.unwrap_or_else(|| Err("a process without output".to_owned()))
}

fn listen(mut from: std::process::ChildStdout, until: Instant) -> Result<Vec<u8>, String> {
    unblock(&from).map_err(|errno| errno.to_string())?;
    let mut said = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("a program that does not answer".to_owned());
        }
        if !ready(from.as_fd(), None, None, left).map_err(|errno| errno.to_string())?.read {
            continue;
        }
        match read(&mut from, &mut chunk) {
            Got::Bytes(count) => said.extend_from_slice(&chunk[..count]),
            Got::Nothing => {}
            Got::End => return Ok(said),
        }
        if said.len() > ANSWER {
            return Err("a program that writes too much".to_owned());
        }
    }
}
