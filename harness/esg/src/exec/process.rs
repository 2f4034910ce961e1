//! The worker's process: started, spoken to in turns, ended with everything it started.
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::frame::{Bounds, FrameError, Incoming, Message};
use super::pipe::{self, Got};

/// How long to wait before looking whether the process still runs, and what it used.
const LOOK: Duration = Duration::from_millis(100);

/// How long a process that closed its output may take to end.
const LEAVE: Duration = Duration::from_millis(500);

/// How much is kept of what it writes to standard error, in bytes.
const ERRORS: usize = 8 * 1024;

/// How much is read before the time is looked at, in bytes.
const CHUNK: usize = 1024 * 1024;

/// How much is read before it is known how much there is, in bytes.
const FEW: usize = 4 * 1024;

/// Processor time is told in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The process group of the worker that runs, for whoever wants to end it.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<Option<Pid>>);

impl Group {
    /// Kills everything in the group, if there is one.
    pub(super) fn kill(&self) {
        // Held meanwhile, so that the number can not come to mean another group.
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *group {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

/// What a turn may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    pub(super) wall: Duration,
    /// Processor time of the process.
    pub(super) cpu: Option<Duration>,
    pub(super) bounds: Bounds,
}

/// A turn failed, and the process is of no use any more.
#[derive(Debug)]
pub(super) enum Fault {
    /// It was gone, or had spoken out of turn, before it was asked.
    Before(String),
    /// It took longer than this.
    Slow(Duration),
    /// It ended, or closed its output.
    Gone,
    /// It said something that is no reply.
    Garbled(String),
    /// It said that it failed itself.
    Failed(String),
    /// The system failed.
    System(io::Error),
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Self {
        Self::Garbled(error.to_string())
    }
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct End {
    /// By itself, or by somebody else's signal; `None` if it had to be killed.
    pub(super) status: Option<ExitStatus>,
    /// Whether the system killed something for want of memory meanwhile.
    pub(super) starved: bool,
    /// The end of what it wrote to standard error.
    pub(super) errors: String,
}

impl End {
    /// The signal that ended it.
    pub(super) fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }
}

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Pid,
    group: Arc<Group>,
    to: ChildStdin,
    from: ChildStdout,
    /// What it tells of its own failure to start. Once it has answered it knows by the closing of this
    /// pipe that its host is over, and a look at the pipe would end it.
    aside: Option<ChildStderr>,
    answered: bool,
    errors: Vec<u8>,
    starved: Option<u64>,
}

impl Process {
    /// Starts it in a process group of its own.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn start(mut command: Command, group: &Arc<Group>) -> io::Result<Self> {
        // Whoever wants to kill it waits until it is there.
        let mut held = group.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = Pid::from_child(&child);
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a process without pipes"));
        };
        *held = Some(pid);
        drop(held);
        let aside = child.stderr.take();
        let starved = starved();
        let group = Arc::clone(group);
        let errors = Vec::new();
        let process = Self { child, pid, group, to, from, aside, answered: false, errors, starved };
        pipe::unblock(&process.to)?;
        pipe::unblock(&process.from)?;
        process.aside.as_ref().map(pipe::unblock).transpose()?;
        Ok(process)
    }

    /// Sends one message, made of `parts`, and takes the one that answers it.
    ///
    /// # Errors
    /// If anything else happens. The process must be ended then.
    pub(super) fn turn(&mut self, parts: &[&[u8]], may: Allowance) -> Result<Message, Fault> {
        let now = Instant::now();
        let mut watch = Watch { until: now + may.wall, may, cpu: None, look: now + LOOK };
        if pipe::ready(self.from.as_fd(), None, None, Duration::ZERO).map_err(system)?.read {
            let mut byte = [0];
            return Err(Fault::Before(match pipe::read(&mut self.from, &mut byte) {
                Got::Bytes(_) => "it spoke without being asked".to_owned(),
                _ => "it ended while nothing ran".to_owned(),
            }));
        }
        for part in parts {
            self.write(part, &mut watch)?;
        }
        self.read(&mut watch)
    }

    fn write(&mut self, mut part: &[u8], watch: &mut Watch) -> Result<(), Fault> {
        while !part.is_empty() {
            match self.to.write(part) {
                Ok(count) => part = &part[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let to = Some(self.to.as_fd());
                    let wait = watch.wait()?;
                    let ready = pipe::ready(self.from.as_fd(), to, None, wait).map_err(system)?;
                    if ready.read {
                        return Err(self.early());
                    }
                    if !ready.write {
                        watch.look(self.pid)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Fault::Gone),
            }
        }
        Ok(())
    }

    /// There is something to read before everything was said.
    fn early(&mut self) -> Fault {
        match pipe::read(&mut self.from, &mut [0]) {
            Got::Bytes(_) => Fault::Garbled("it answered before it was asked".to_owned()),
            _ => Fault::Gone,
        }
    }

    fn read(&mut self, watch: &mut Watch) -> Result<Message, Fault> {
        let mut incoming = Incoming::new(watch.may.bounds);
        // Whether the last read took all that there was.
        let mut dry = true;
        let mut few = [0; FEW];
        while !incoming.is_whole() {
            // One that never stops is never waited for.
            let wait = watch.wait()?;
            if dry {
                let aside = self.aside.as_ref().filter(|_| !self.answered).map(AsFd::as_fd);
                let ready = pipe::ready(self.from.as_fd(), None, aside, wait).map_err(system)?;
                if ready.aside {
                    self.listen_aside();
                }
                if !ready.read {
                    if watch.look(self.pid)? {
                        // Something it started may hold its output open.
                        return Err(Fault::Gone);
                    }
                    continue;
                }
            }
            // Most messages are small, and come whole with the first read.
            let (got, most) = if incoming.is_begun() {
                let Some((part, left)) = incoming.next() else { break };
                let most = left.min(CHUNK);
                (pipe::append(&mut self.from, part, most), most)
            } else {
                (pipe::read(&mut self.from, &mut few), FEW)
            };
            match got {
                Got::Bytes(count) => {
                    if incoming.is_begun() {
                        incoming.came()?;
                    } else {
                        incoming.take(&few[..count])?;
                    }
                    dry = count < most;
                }
                Got::Nothing => dry = true,
                // Also within a reply: it may have been ended there.
                Got::End => return Err(Fault::Gone),
            }
        }
        if !dry && let Got::Bytes(count) = pipe::read(&mut self.from, &mut [0; 1024]) {
            return Err(FrameError::Trailing(count).into());
        }
        let message = incoming.done()?;
        self.answered = true;
        Ok(message)
    }

    /// Takes one chunk of standard error, and keeps the end.
    fn listen_aside(&mut self) {
        let mut chunk = [0; ERRORS];
        let Some(aside) = &mut self.aside else { return };
        match pipe::read(aside, &mut chunk) {
            Got::Bytes(count) => {
                self.errors.extend_from_slice(&chunk[..count]);
                let surplus = self.errors.len().saturating_sub(ERRORS);
                self.errors.drain(..surplus);
            }
            Got::Nothing => {}
            Got::End => self.aside = None,
        }
    }

    /// Ends it, with all that it started in its group. One that is about to end by itself may.
    pub(super) fn end(mut self, fault: &Fault) -> End {
        let alone = match fault {
            Fault::Gone | Fault::Before(_) => self.leaves(),
            _ => false,
        };
        let status = self.stop();
        self.listen_aside();
        let starved = match (self.starved, starved()) {
            (Some(before), Some(after)) => after > before,
            _ => false,
        };
        let errors = String::from_utf8_lossy(&self.errors).into_owned();
        End { status: status.filter(|_| alone), starved, errors }
    }

    /// Whether it ends by itself before long.
    fn leaves(&self) -> bool {
        let until = Instant::now() + LEAVE;
        let mut pause = Duration::from_micros(100);
        while !has_exited(self.pid) {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        true
    }

    fn stop(&mut self) -> Option<ExitStatus> {
        let mut held = self.group.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some_and(|pid| pid == self.pid) {
            *held = None;
        }
        // Not waited for yet, so the number still means this group.
        kill_process_group(self.pid, Signal::KILL).ok();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Looks after the time.
struct Watch {
    until: Instant,
    may: Allowance,
    /// What the process had used when it was first looked at. One that answers before that costs no
    /// look.
    cpu: Option<Duration>,
    look: Instant,
}

impl Watch {
    /// How long to wait for something to happen.
    fn wait(&self) -> Result<Duration, Fault> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Fault::Slow(self.may.wall)) } else { Ok(left.min(LOOK)) }
    }

    /// Whether the process is gone.
    ///
    /// # Errors
    /// If it used more than it may.
    fn look(&mut self, pid: Pid) -> Result<bool, Fault> {
        let now = Instant::now();
        if now < self.look {
            return Ok(false);
        }
        self.look = now + LOOK;
        if let Some(limit) = self.may.cpu
            && let Some(used) = cpu(pid)
            && used.saturating_sub(*self.cpu.get_or_insert(used)) > limit
        {
            return Err(Fault::Slow(limit));
        }
        Ok(has_exited(pid))
    }
}

fn system(errno: rustix::io::Errno) -> Fault {
    Fault::System(errno.into())
}

/// Whether it has, without waiting for it in the system's sense: its number stays taken.
fn has_exited(pid: Pid) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}

/// The processor time it used, on all cores. `None` where the system does not tell.
fn cpu(pid: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let kernel: u32 = fields.next()?.parse().ok()?;
    Some(TICK * user.saturating_add(kernel))
}

/// How many processes the system has killed for want of memory. `None` where it does not tell.
fn starved() -> Option<u64> {
    let stat = fs::read_to_string("/proc/vmstat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}
