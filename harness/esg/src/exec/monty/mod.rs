//! The worker in this process: an interpreter for a part of Python, without access to the host.
mod functions;
mod names;
mod session;
mod values;
mod worker;

use monty_types::MONTY_VERSION;
use thiserror::Error;

use super::{Caps, Limits, Trust};
use session::Session;
pub use worker::MontyWorker;

/// The allocator that counts what the program holds, so that [`Monty`] can limit memory. It takes memory
/// from the system's allocator.
///
/// ```no_run
/// use harness_esg::MontyAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: MontyAllocator = MontyAllocator;
/// # fn main() {}
/// ```
pub use monty_alloc::LimitedAllocator as MontyAllocator;

/// Starts [workers](MontyWorker) inside of this process, for steps in a part of Python: no process, no
/// interpreter to install, and a start that takes microseconds. Steps have no access to the host: no files, no
/// environment, no network, no clock.
///
/// ```
/// use harness_esg::{Blobs, CodeGraph, Monty, Program, Trust};
///
/// let program = Program::from_script("# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(rows)")?;
/// let worker = Monty::new().trust(Trust::Mine).start()?;
/// let mut graph = CodeGraph::new(program, worker, Blobs::memory());
/// assert!(graph.replay()?.ok());
/// assert_eq!(graph.value("total")?.repr, "4");
///
/// // What the language lacks is an ending of its own.
/// graph.edit(|program| program.push("more", "del rows"))?;
/// let report = graph.replay()?;
/// assert_eq!(report.failed[0].1.to_string(), "this worker does not support the 'del' statement");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The language
///
/// The interpreter is [monty](https://docs.rs/monty), which is young. It has no inheritance of classes, so no
/// exceptions of a program's own, no generators, no `del`, no `match`, no packages, and of the standard library
/// little but `math`, `json`, `re`, `datetime` and `collections`. A step that needs more ends as
/// [`Ending::Unsupported`](crate::Ending::Unsupported), which names it.
///
/// # What it cannot do
///
/// [`Caps`] say that it tracks no files and that a running step cannot be killed: it ends at
/// [`Limits::wall`]. It restores plain data, functions without default values, and modules. Instances, classes,
/// closures, and values that share a part with others are made again by their steps. What a step reads is known
/// from its source, so a step that calls a function of an unknown origin counts as a reader of everything that any
/// function loads, and one that uses a class, an instance or a closure as one that changes it.
///
/// # Limits
///
/// [`Limits::wall`], [`Limits::output`] and [`Limits::value`] hold. [`Limits::address_space`] bounds what a step
/// allocates, if the program counts what it allocates: if its global allocator is [`MontyAllocator`]. Untrusted
/// code is refused without it ([`MontyError::NoMemoryLimit`]). What other threads allocate while a step runs
/// counts, too.
///
/// The interpreter is a part of this process. A fault of it that aborts ends your program, which no limit
/// prevents: for code that is meant to do harm, [`CPython`](crate::CPython) has a process and a sandbox.
#[derive(Clone, Debug, Default)]
pub struct Monty {
    trust: Trust,
    limits: Limits,
}

/// The worker was not started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MontyError {
    /// Untrusted code was to run, and nothing limits its memory.
    #[error(
        "untrusted code needs a limit of its memory, and this program does not count what it allocates (make \
         `MontyAllocator` its global allocator, or set `.trust(Trust::Mine)` if the code may use all of it)"
    )]
    NoMemoryLimit,
    /// The interpreter does not run what the worker needs.
    #[error("the interpreter does not run what the worker needs: {why}")]
    Unfit {
        /// What it says.
        why: String,
    },
}

impl Monty {
    /// For untrusted code, with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the origin of the code.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the limits of steps. Those of files, processes and threads have no meaning here.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the workers can do.
    #[must_use]
    pub const fn caps() -> Caps {
        Caps::new(None).files(false).interrupts(false)
    }

    /// Starts a worker.
    ///
    /// ```
    /// use harness_esg::{Monty, MontyError};
    ///
    /// // This program has another allocator.
    /// assert_eq!(Monty::new().start().unwrap_err(), MontyError::NoMemoryLimit);
    /// ```
    ///
    /// # Errors
    /// If untrusted code is to run without a limit of its memory.
    pub fn start(&self) -> Result<MontyWorker, MontyError> {
        if self.trust == Trust::Untrusted && !session::counts_memory() {
            return Err(MontyError::NoMemoryLimit);
        }
        Ok(MontyWorker::new(self.clone(), Session::start(self.limits)?))
    }

    /// What values and fingerprints of the workers depend on.
    fn fingerprint(&self) -> String {
        let Limits { wall, address_space, output, .. } = self.limits;
        format!("monty {MONTY_VERSION}, worker 1, {wall:?}, {address_space}, {output}")
    }
}
