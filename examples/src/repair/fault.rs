//! What a run of a script came to, and what is known about an exception.
//!
//! The facts come from the process of the script, which may write whatever it
//! likes: they are data to look things up in, never something to rely on.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// What it printed, up to the limit; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// What it wrote to standard error, up to the limit.
    pub stderr: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ending {
    /// With exit status 0.
    Ok,
    /// With an exception nobody caught.
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

/// An exception nobody caught.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The class of the exception, such as `NameError`.
    pub kind: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// The places in the script it passed, the innermost last.
    #[serde(default)]
    pub frames: Vec<Frame>,
    /// What a rule may look things up in.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Fault {
    /// The line of the script to look at, counted from 1; 0 when unknown.
    pub fn line(&self) -> usize {
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
pub struct Frame {
    /// The line, counted from 1.
    pub line: u32,
    /// The last line of the expression, where known.
    pub end_line: Option<u32>,
    /// The byte in the line where the expression starts, where known.
    pub column: Option<u32>,
    /// The byte in its last line where it ends, where known.
    pub end_column: Option<u32>,
    /// The function.
    pub function: String,
    /// The text of the line.
    pub text: String,
}

/// What was found at the failing place. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Local names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<String>,
    /// Global names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globals: Vec<String>,
    /// Built-in names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builtins: Vec<String>,
    /// The name, attribute, key, argument or module which is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type (or module) that lacks the attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The attributes it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
    /// The keys of the mappings which lack the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What was called with the wrong arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<Callee>,
    /// The operands of the additions on the failing line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<Operand>,
    /// The modules of the standard library.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stdlib: Vec<String>,
    /// Where the script cannot be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syntax: Option<Syntax>,
}

/// A function or class called with the wrong arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Callee {
    /// Its name at the call.
    pub name: String,
    /// Its parameters that may be given by name.
    pub parameters: Vec<String>,
    /// The line of its definition, where known.
    pub line: Option<u32>,
    /// Whether it was called on an object.
    pub method: bool,
}

/// One operand of an addition; columns count bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operand {
    /// Its first line.
    pub line: u32,
    /// Where it starts.
    pub column: u32,
    /// Its last line.
    pub end_line: u32,
    /// Where it ends.
    pub end_column: u32,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A syntax error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Syntax {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1; 0 when unknown.
    pub column: u32,
    /// The message.
    pub message: String,
    /// The text of the line.
    pub text: String,
}
