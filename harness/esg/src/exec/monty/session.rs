//! The interpreter: what is fed to it, with limits.
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use monty::MontyRepl;
use monty_types::{
    BASELINE_MEMORY, CompileOptions, ExcType, LIVE_MEMORY, MontyException, MontyObject,
    PrintWriter, PrintWriterCallback, ResourceLimits, ResourceTracker,
};

use super::MontyError;
use crate::exec::{Ending, ExecError, Frame, Limits, Output};
use crate::scan::roomy;

/// Begins every name of the worker's own.
pub(super) const OWN: &str = "_harness_";

/// What the worker needs in each session. Its functions hold builtins as they are here: a step may bind the
/// names of them. The walk returns the identities of the mutable objects that a value reaches, in order, and
/// [`OTHER`] for an object that looks like another one from outside, such as a deque like a list.
const PRELUDE: &str = "\
from collections import deque as _harness_deque

_harness_error = ValueError

def _harness_walk(value, id=id, isinstance=isinstance, type=type, list=list, dict=dict, set=set, tuple=tuple, deque=_harness_deque, str=str):
    found = []
    seen = {}
    rest = [value]
    while rest:
        one = rest.pop()
        kind = type(one)
        if kind is list or kind is dict or kind is set:
            number = str(id(one))
            found.append(number)
            if number in seen:
                continue
            seen[number] = True
            if kind is dict:
                rest.extend(one.values())
            else:
                rest.extend(one)
        elif kind is tuple:
            rest.extend(one)
        elif kind is deque or isinstance(one, (dict, tuple)):
            found.append('other')
    return found
";

/// What the walk returns for an object that looks like another one from outside.
pub(super) const OTHER: &str = "other";

/// Whether the program's allocator counts what is allocated.
pub(super) fn counts_memory() -> bool {
    // This program has allocated something by now.
    LIVE_MEMORY.load(Ordering::Relaxed) > 0
}

/// One interpreter, and what each text was that it was fed.
pub(super) struct Session {
    repl: MontyRepl,
    limits: Limits,
    /// How many texts it was fed.
    fed: u64,
    /// The steps among them, by number.
    steps: HashMap<u64, Arc<str>>,
}

/// What a step printed, up to a limit.
pub(super) struct Printed {
    output: Output,
    limit: u64,
}

impl Session {
    pub(super) fn start(limits: Limits) -> Result<Self, MontyError> {
        let repl = MontyRepl::new("step", ResourceTracker::default(), CompileOptions::default());
        let mut session = Self { repl, limits, fed: 0, steps: HashMap::new() };
        match session.own(PRELUDE, Vec::new()) {
            Ok(_) => Ok(session),
            Err(error) => Err(MontyError::Unfit { why: error.summary() }),
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Feeds a text of the worker's own.
    pub(super) fn own(
        &mut self,
        text: &str,
        inputs: Vec<(String, MontyObject)>,
    ) -> Result<MontyObject, MontyException> {
        self.fed += 1;
        self.limit(self.limits.service);
        self.repl.feed_run(text, inputs, PrintWriter::Disabled)
    }

    /// Feeds a text of the worker's own that must not fail.
    pub(super) fn must(
        &mut self,
        text: &str,
        inputs: Vec<(String, MontyObject)>,
    ) -> Result<MontyObject, ExecError> {
        self.own(text, inputs).map_err(|error| ExecError::new(error.summary()))
    }

    /// Feeds a definition that a step has made, so that tracebacks show that step.
    pub(super) fn define(&mut self, step: &str, text: &str) -> Result<(), MontyException> {
        self.steps.insert(self.fed, step.into());
        self.own(text, Vec::new()).map(drop)
    }

    /// Runs a step.
    pub(super) fn run(&mut self, step: &str, source: &str) -> (Ending, Output) {
        self.steps.insert(self.fed, step.into());
        self.fed += 1;
        self.limit(self.limits.wall);
        let mut printed = Printed { output: Output::default(), limit: self.limits.output };
        // A text without anything is not counted.
        let source = if source.is_empty() { "pass" } else { source };
        let ran = self.repl.feed_run(source, Vec::new(), PrintWriter::Callback(&mut printed));
        let ending = match ran {
            Ok(_) => Ending::Ok,
            Err(error) => self.ending(&error),
        };
        (ending, printed.output)
    }

    /// Sets the limits again: the interpreter counts the time of the whole session.
    fn limit(&mut self, wall: Duration) {
        let mut limits = ResourceLimits::default().max_duration(wall);
        if counts_memory() {
            let live = LIVE_MEMORY.load(Ordering::Relaxed);
            let baseline = BASELINE_MEMORY.fetch_min(live, Ordering::Relaxed).min(live);
            let room = usize::try_from(self.limits.address_space).unwrap_or(usize::MAX);
            limits = limits.max_memory((live - baseline).saturating_add(room));
        }
        *self.repl.tracker_mut() = ResourceTracker::new(limits);
    }

    fn ending(&self, error: &MontyException) -> Ending {
        let message = error.message().unwrap_or_default();
        let late = self.repl.tracker().elapsed() >= self.limits.wall;
        match error.exc_type() {
            ExcType::TimeoutError if late => {
                return Ending::Timeout { limit: self.limits.wall };
            }
            ExcType::NotImplementedError => {
                if let Some(feature) = unsupported(message) {
                    return Ending::Unsupported { feature: feature.to_owned() };
                }
            }
            ExcType::ModuleNotFoundError => {
                if let Some(module) = quoted(message) {
                    return Ending::Unsupported { feature: format!("the module `{module}`") };
                }
            }
            _ => {}
        }
        let frames: Vec<Frame> = error
            .traceback()
            .iter()
            .filter_map(|frame| {
                let number = frame.filename.strip_prefix("<python-input-")?.strip_suffix('>')?;
                let step = self.steps.get(&number.parse().ok()?)?;
                Some(Frame {
                    step: step.to_string(),
                    line: usize::try_from(frame.start.line).unwrap_or(usize::MAX),
                    function: frame.frame_name.clone().unwrap_or_else(|| "<module>".to_owned()),
                })
            })
            .collect();
        let is_name = matches!(error.exc_type(), ExcType::NameError | ExcType::UnboundLocalError);
        Ending::Raised {
            type_name: error.exc_type().to_string(),
            message: message.to_owned(),
            line: frames.first().map(|frame| frame.line),
            frames,
            name: quoted(message).filter(|_| is_name).map(str::to_owned),
            syntax: matches!(error.exc_type(), ExcType::SyntaxError),
        }
    }
}

/// Runs work on a large stack: the interpreter and what is done with its values follow each level of a
/// nested value with a call, and a program may nest them as deeply as it may call functions.
pub(super) fn apart<T: Send>(
    work: impl FnOnce() -> Result<T, ExecError> + Send,
) -> Result<T, ExecError> {
    roomy(work).unwrap_or_else(|| {
        let why = "the interpreter panicked, or no thread could be started for it";
        Err(ExecError::new(why).with_loss())
    })
}

/// What the language lacks, as the interpreter says it before it runs anything.
fn unsupported(message: &str) -> Option<&str> {
    message.strip_prefix("The monty syntax parser does not yet support ").or_else(|| {
        message.starts_with("Wildcard imports").then_some("imports of everything in a module")
    })
}

/// The first name that a message quotes.
fn quoted(message: &str) -> Option<&str> {
    message.split('\'').nth(1)
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        let room = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let room = room.saturating_sub(self.output.bytes.len());
        let (kept, rest) = output.as_bytes().split_at(room.min(output.len()));
        // What comes after something that was left out does not count as printed either.
        match self.output.dropped {
            0 => {
                self.output.bytes.extend_from_slice(kept);
                self.output.dropped += rest.len() as u64;
            }
            _ => self.output.dropped += output.len() as u64,
        }
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.stdout_write(Cow::Owned(end.to_string()))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("fed", &self.fed).finish_non_exhaustive()
    }
}
