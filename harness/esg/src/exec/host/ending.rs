//! Maps the end of a worker to the ending of a step or to an error.
use std::time::Duration;

use rustix::process::Signal;

use super::process::{End, Fault};
use crate::exec::error::ExecError;
use crate::exec::wire::Ending;

/// The ending of the step during which the worker broke down.
pub(in crate::exec) fn of_step(fault: Fault, end: Option<End>, cpu: Duration) -> Ending {
    match fault {
        Fault::Slow(limit) => Ending::Timeout { limit },
        Fault::Stalled(limit) => Ending::Stalled { limit },
        Fault::Garbled(what) | Fault::Before(what) => Ending::Protocol { what },
        // The worker had no memory left to inspect the step's values.
        Fault::Failed(what) if what.starts_with("MemoryError") => Ending::OutOfMemory,
        Fault::Failed(what) => {
            Ending::Protocol { what: format!("the worker failed around the step: {what}") }
        }
        Fault::Full(what) => Ending::Denied { what },
        Fault::System(error) => Ending::Protocol { what: error.to_string() },
        Fault::Gone => {
            let signal = end.as_ref().and_then(End::signal);
            let starved = end.as_ref().is_some_and(|end| end.starved);
            match end.and_then(|end| end.status) {
                None => {
                    Ending::Protocol { what: "it closed its output and did not end".to_owned() }
                }
                // The kernel's OOM killer does this; only its counter reports it.
                Some(_) if signal == Some(Signal::KILL.as_raw()) && starved => Ending::OutOfMemory,
                Some(_) if signal == Some(Signal::XCPU.as_raw()) => Ending::Timeout { limit: cpu },
                // The filters of the sandbox end a process so.
                Some(_) if signal == Some(Signal::SYS.as_raw()) => {
                    Ending::Denied { what: "a system call that no step needs".to_owned() }
                }
                Some(status) => Ending::Crashed { signal, code: status.code() },
            }
        }
    }
}

/// The error for a worker that broke down while no step ran.
pub(in crate::exec) fn outside(op: &str, fault: Fault, end: Option<End>) -> ExecError {
    let message = format!("the worker was lost at `{op}`: {}", words(&fault, end.as_ref()));
    match fault {
        Fault::System(error) => ExecError::io(message, error),
        _ => ExecError::new(message),
    }
}

/// A description of what happened.
pub(in crate::exec) fn words(fault: &Fault, end: Option<&End>) -> String {
    let status = end.and_then(|end| end.status).map(|status| format!(" ({status})"));
    match fault {
        Fault::Slow(limit) | Fault::Stalled(limit) => format!("it took longer than {limit:?}"),
        Fault::Before(what) | Fault::Garbled(what) | Fault::Full(what) => {
            what.clone() + &status.unwrap_or_default()
        }
        Fault::Failed(what) => format!("it failed: {what}"),
        Fault::System(error) => error.to_string(),
        Fault::Gone => format!("it ended{}", status.unwrap_or_default()),
    }
}
