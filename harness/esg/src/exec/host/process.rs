//! The worker's process: starts it, exchanges messages in turns, kills it with everything it
//! started.
use std::io;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::frame::{Bounds, FrameError, Incoming, Message};
use super::pipe::{self, Got};
use super::usage::{cpu, excess, is_victim, resident, starved};

/// The interval at which the process and its CPU time are checked.
const LOOK: Duration = Duration::from_millis(100);

/// How long a process that closed its output may take to exit.
const LEAVE: Duration = Duration::from_millis(500);

/// The bytes kept of its standard error.
const ERRORS: usize = 8 * 1024;

/// The bytes that are read between checks of the time.
const CHUNK: usize = 1024 * 1024;

/// The largest capacity that a system gives to the pipe of an ordinary user, in bytes.
const PIPE: usize = 1024 * 1024;

/// The read size before the length of a message is known, in bytes.
const FEW: usize = 4 * 1024;

/// The share of its time that a step which exceeds its limit has worked. With less, it waited for
/// something, or for its turn on a busy machine.
const WORKED: f64 = 0.7;

/// The process group of the running worker, shared with kill handles.
#[derive(Debug, Default)]
pub(in crate::exec) struct Group(Mutex<Option<Pid>>);

impl Group {
    /// Kills the group, if there is one.
    pub(in crate::exec) fn kill(&self) {
        // Holding the lock keeps the number from being reused for another group.
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *group {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

/// The limits of a turn.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Allowance {
    pub(in crate::exec) wall: Duration,
    /// CPU time of the process.
    pub(in crate::exec) cpu: Option<Duration>,
    pub(in crate::exec) bounds: Bounds,
    /// The bytes and the files that it may have in its working directory.
    pub(in crate::exec) room: Option<(u64, u64)>,
}

/// Why a turn failed. The process is unusable then.
#[derive(Debug)]
pub(in crate::exec) enum Fault {
    /// It had exited, or written out of turn, before the request.
    Before(String),
    /// It exceeded this time.
    Slow(Duration),
    /// It exceeded this time, most of which it waited.
    Stalled(Duration),
    /// It filled scratch.
    Full(String),
    /// It exited, or closed its output.
    Gone,
    /// It wrote something that is not a reply.
    Garbled(String),
    /// It reported its own failure.
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
pub(in crate::exec) struct End {
    /// Its exit status, or the signal of another process; `None` if it had to be killed.
    pub(in crate::exec) status: Option<ExitStatus>,
    /// Whether the OOM killer may have killed it.
    pub(in crate::exec) starved: bool,
    /// The end of its standard error.
    pub(in crate::exec) errors: String,
}

impl End {
    /// The signal that ended it.
    pub(in crate::exec) fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }
}

/// A running process.
#[derive(Debug)]
pub(in crate::exec) struct Process {
    child: Child,
    /// Its working directory.
    folder: PathBuf,
    pid: Pid,
    group: Arc<Group>,
    to: ChildStdin,
    from: ChildStdout,
    /// Its standard error, for failures during start. After its first reply the worker detects the
    /// end of its host by the closing of this pipe.
    aside: Option<ChildStderr>,
    answered: bool,
    errors: Vec<u8>,
    starved: Option<u64>,
    /// Its memory at the last check, in bytes.
    resident: Option<u64>,
}

impl Process {
    /// Starts it in a process group of its own.
    ///
    /// # Errors
    /// If the system refuses.
    pub(in crate::exec) fn start(mut command: Command, group: &Arc<Group>) -> io::Result<Self> {
        // A kill waits until the process exists.
        let folder = command.get_current_dir().map(Path::to_owned).unwrap_or_default();
        let mut held = group.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = Pid::from_child(&child);
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("failed to open the pipes of a process"));
        };
        *held = Some(pid);
        drop(held);
        let aside = child.stderr.take();
        let starved = starved();
        let group = Arc::clone(group);
        let process = Self {
            child,
            folder,
            pid,
            group,
            to,
            from,
            aside,
            answered: false,
            errors: Vec::new(),
            starved,
            resident: None,
        };
        pipe::unblock(&process.to)?;
        pipe::unblock(&process.from)?;
        process.aside.as_ref().map(pipe::unblock).transpose()?;
        Ok(process)
    }

    /// Sends as much of a message as can wait in the pipe, which is made as large as the system allows.
    /// Returns how many bytes that was.
    ///
    /// # Errors
    /// If the process has ended.
    pub(in crate::exec) fn send_ahead(&mut self, message: &[u8]) -> io::Result<usize> {
        // If the system refuses, less is sent.
        fcntl_setpipe_size(&self.to, PIPE).ok();
        let mut sent = 0;
        while sent < message.len() {
            match self.to.write(&message[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Makes it the process of `group`, with its working directory now at `folder`.
    pub(in crate::exec) fn join(&mut self, group: &Arc<Group>, folder: PathBuf) {
        // A kill waits until the group has its process.
        *group.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.pid);
        self.group = Arc::clone(group);
        self.folder = folder;
        // What happened before is not its end.
        self.starved = starved();
    }

    /// Sends one message, made of `parts`, and receives the reply.
    ///
    /// # Errors
    /// In any other case. The process must be killed then.
    pub(in crate::exec) fn turn(
        &mut self,
        parts: &[&[u8]],
        may: Allowance,
    ) -> Result<Message, Fault> {
        if pipe::ready(self.from.as_fd(), None, None, Duration::ZERO).map_err(system)?.read {
            let mut byte = [0];
            return Err(Fault::Before(match pipe::read(&mut self.from, &mut byte) {
                Got::Bytes(_) => "it wrote without a request".to_owned(),
                _ => "it exited while no step ran".to_owned(),
            }));
        }
        self.finish(parts, may)
    }

    /// Sends the rest of a message that was [sent ahead](Self::send_ahead), and receives the reply, which may
    /// be there already.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub(in crate::exec) fn finish(
        &mut self,
        rest: &[&[u8]],
        may: Allowance,
    ) -> Result<Message, Fault> {
        let now = Instant::now();
        let mut watch = Watch {
            until: now + may.wall,
            may,
            first: None,
            look: now + LOOK,
            room: now + LOOK,
            resident: None,
        };
        for part in rest {
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
                    let wait = watch.wait(self.pid)?;
                    let ready = pipe::ready(self.from.as_fd(), to, None, wait).map_err(system)?;
                    if ready.read {
                        return Err(self.early());
                    }
                    if !ready.write {
                        watch.look(self.pid, &self.folder)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Fault::Gone),
            }
        }
        Ok(())
    }

    /// There is input before the request was sent completely.
    fn early(&mut self) -> Fault {
        match pipe::read(&mut self.from, &mut [0]) {
            Got::Bytes(_) => {
                Fault::Garbled("it replied before the request was complete".to_owned())
            }
            _ => Fault::Gone,
        }
    }

    fn read(&mut self, watch: &mut Watch) -> Result<Message, Fault> {
        let mut incoming = Incoming::new(watch.may.bounds);
        // Whether the last read took all available bytes.
        let mut dry = true;
        let mut few = [0; FEW];
        while !incoming.is_whole() {
            // A process that never stops writing is never waited for.
            let wait = watch.wait(self.pid)?;
            if dry {
                let aside = self.aside.as_ref().filter(|_| !self.answered).map(AsFd::as_fd);
                let ready = pipe::ready(self.from.as_fd(), None, aside, wait).map_err(system)?;
                if ready.aside {
                    self.listen_aside();
                }
                if !ready.read {
                    let exited = watch.look(self.pid, &self.folder)?;
                    self.resident = watch.resident.or(self.resident);
                    if exited {
                        // A child process may hold its output open.
                        return Err(Fault::Gone);
                    }
                    continue;
                }
            }
            // Most messages are small and arrive with the first read.
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
                // Also within a reply: the process may have been killed there.
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

    /// Reads one chunk of standard error, and keeps the end.
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

    /// Kills its process group. A process that is about to exit by itself may do so.
    pub(in crate::exec) fn end(mut self, fault: &Fault) -> End {
        let alone = match fault {
            Fault::Gone | Fault::Before(_) => self.leaves(),
            _ => false,
        };
        let status = self.stop();
        self.listen_aside();
        let starved = is_victim(self.starved, starved(), self.resident);
        let errors = String::from_utf8_lossy(&self.errors).into_owned();
        End { status: status.filter(|_| alone), starved, errors }
    }

    /// Whether it exits by itself soon.
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
        // Not reaped yet, so the number still means this group.
        kill_process_group(self.pid, Signal::KILL).ok();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Enforces the limits of a turn.
struct Watch {
    until: Instant,
    may: Allowance,
    /// The first check, and the CPU time at it. A process that replies before it is never checked.
    first: Option<(Instant, Duration)>,
    look: Instant,
    /// When the working directory is checked.
    room: Instant,
    /// The memory of the process at the last check, in bytes.
    resident: Option<u64>,
}

impl Watch {
    /// How long to wait for the next event.
    fn wait(&self, pid: Pid) -> Result<Duration, Fault> {
        let now = Instant::now();
        let left = self.until.saturating_duration_since(now);
        if !left.is_zero() {
            return Ok(left.min(LOOK));
        }
        let worked = self.first.and_then(|(begun, before)| {
            Some(cpu(pid)?.saturating_sub(before).as_secs_f64() / (now - begun).as_secs_f64())
        });
        let limit = self.may.wall;
        let stalled = worked.is_some_and(|share| share < WORKED);
        Err(if stalled { Fault::Stalled(limit) } else { Fault::Slow(limit) })
    }

    /// Whether the process has exited.
    ///
    /// # Errors
    /// If it exceeded its limits.
    fn look(&mut self, pid: Pid, folder: &Path) -> Result<bool, Fault> {
        let now = Instant::now();
        if now < self.look {
            return Ok(false);
        }
        self.look = now + LOOK;
        self.resident = resident(pid).or(self.resident);
        if let Some(limit) = self.may.cpu
            && let Some(used) = cpu(pid)
            && used.saturating_sub(self.first.get_or_insert((now, used)).1) > limit
        {
            return Err(Fault::Slow(limit));
        }
        if let Some((bytes, files)) = self.may.room
            && now >= self.room
        {
            if let Some(what) = excess(folder, bytes, files) {
                return Err(Fault::Full(what));
            }
            // Many files take long, and checking them at most a tenth of the time.
            self.room = now + now.elapsed() * 10;
        }
        Ok(has_exited(pid))
    }
}

fn system(errno: rustix::io::Errno) -> Fault {
    Fault::System(errno.into())
}

/// Whether it has exited, without reaping it: its number stays in use.
fn has_exited(pid: Pid) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}
