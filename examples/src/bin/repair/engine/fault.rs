//! The result of a run of a script, and the facts about an exception.
//!
//! The facts come from the process of the script, which may write anything: rules look things up in
//! them and never rely on them.

use std::fmt;
use std::time::Duration;

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

/// An uncaught exception.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// The class of the exception, such as `NameError`.
    pub(crate) kind: String,
    /// Its message.
    #[serde(default)]
    pub(crate) message: String,
    /// The places in the script it passed, the innermost last.
    #[serde(default)]
    pub(crate) frames: Vec<Frame>,
    /// What a rule may look things up in.
    #[serde(flatten)]
    pub(crate) facts: Facts,
}

impl Fault {
    /// The line of the script to look at, counted from 1; 0 when unknown.
    pub(crate) fn line(&self) -> usize {
        match (&self.facts.syntax, self.frames.last()) {
            (Some(syntax), _) => syntax.line as usize,
            (None, Some(frame)) => frame.line as usize,
            (None, None) => 0,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.line() > 0 {
            write!(f, " on line {}", self.line())?;
        }
        // A syntax error repeats the place in brackets after its message.
        let message = self.facts.syntax.as_ref().map_or(&self.message, |s| &s.message);
        match message.lines().next() {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// A place in the script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Frame {
    /// The line, counted from 1.
    pub(crate) line: u32,
    /// The last line of the expression, where known.
    pub(crate) end_line: Option<u32>,
    /// The byte in the line where the expression starts, where known.
    pub(crate) column: Option<u32>,
    /// The byte in its last line where it ends, where known.
    pub(crate) end_column: Option<u32>,
    /// The function.
    pub(crate) function: String,
    /// The text of the line.
    pub(crate) text: String,
}

/// What was found at the failing place. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    /// Local names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) locals: Vec<String>,
    /// Global names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) globals: Vec<String>,
    /// Built-in names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) builtins: Vec<String>,
    /// The name, attribute, key, argument or module which is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The type (or module) that lacks the attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// The attributes it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attributes: Vec<String>,
    /// The keys of the mappings which lack the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<String>,
    /// What was called with the wrong arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) callee: Option<Callee>,
    /// The operands of the additions on the failing line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) operands: Vec<Operand>,
    /// The modules of the standard library.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stdlib: Vec<String>,
    /// Where the script cannot be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syntax: Option<Syntax>,
}

/// A function or class called with the wrong arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Callee {
    /// Its name at the call.
    pub(crate) name: String,
    /// Its parameters that may be given by name.
    pub(crate) parameters: Vec<String>,
    /// The line of its definition, where known.
    pub(crate) line: Option<u32>,
    /// Whether it was called on an object.
    pub(crate) method: bool,
}

/// One operand of an addition; columns count bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Operand {
    /// Its first line.
    pub(crate) line: u32,
    /// Where it starts.
    pub(crate) column: u32,
    /// Its last line.
    pub(crate) end_line: u32,
    /// Where it ends.
    pub(crate) end_column: u32,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A syntax error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Syntax {
    /// The line, counted from 1.
    pub(crate) line: u32,
    /// The column, counted from 1; 0 when unknown.
    pub(crate) column: u32,
    /// The message.
    pub(crate) message: String,
    /// The text of the line.
    pub(crate) text: String,
}
