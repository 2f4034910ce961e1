//! The result of a run of a script.

use std::fmt;
use std::time::Duration;

use harness::esg::diagnosis::Fault;
use serde::{Deserialize, Serialize};

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) ending: Ending,
    /// What it printed, up to the limit; bytes that are no UTF-8 are replaced.
    pub(crate) stdout: String,
    /// What it wrote to standard error, up to the limit.
    pub(crate) stderr: String,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// With exit status 0.
    Ok,
    /// With an uncaught exception.
    Raised(Box<Fault>),
    /// It ran longer than allowed, on the wall clock or the CPU.
    TimedOut,
    /// It wrote more than allowed.
    TooMuchOutput,
    /// It asked for more memory than allowed.
    OutOfMemory,
    /// With another exit status.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Ok => f.write_str("ran to its end"),
            Ending::Raised(fault) => fault.fmt(f),
            Ending::TimedOut => f.write_str("ran longer than allowed"),
            Ending::TooMuchOutput => f.write_str("wrote more than allowed"),
            Ending::OutOfMemory => f.write_str("used more memory than allowed"),
            Ending::Exited(code) => write!(f, "ended with exit status {code}"),
            Ending::Signalled(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}
