//! The facts about an exception. They come from the process of the program, which may write anything:
//! rules look things up in them and never rely on them.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exec::Ending;

/// An uncaught exception.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The class of the exception, such as `NameError`.
    pub kind: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// The lines of the source it passed through, the innermost last.
    #[serde(default)]
    pub frames: Vec<Frame>,
    /// What a rule may look things up in.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Fault {
    /// What an ending says of an exception of a step with this source.
    pub(super) fn of(ending: &Ending, source: &str) -> Self {
        let Ending::Raised { type_name, message, line, name, syntax, .. } = ending else {
            return Self { kind: ending.to_string(), ..Self::default() };
        };
        let number = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let text = source.lines().nth(line.unwrap_or(0).wrapping_sub(1)).unwrap_or_default();
        let text = || text.to_owned();
        let syntax = syntax.then(|| Syntax {
            line: number,
            column: 0,
            message: message.clone(),
            text: text(),
        });
        let frame = Frame { line: number, text: text(), ..Frame::default() };
        Self {
            kind: type_name.clone(),
            message: message.clone(),
            frames: if syntax.is_none() && number > 0 { vec![frame] } else { Vec::new() },
            facts: Facts { name: name.clone(), syntax, ..Facts::default() },
        }
    }

    /// The line of the source to look at, counted from 1; 0 when unknown.
    #[must_use]
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

/// A line that an exception passed through.
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
    /// The members of the module that have the attribute which it lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The module that has the attribute which its member lacks, or the installed package that an undefined
    /// name stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
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
    /// Where the source does not parse, if it does not.
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
    /// The file of its definition, where known: `<step:ID>` for a step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
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
