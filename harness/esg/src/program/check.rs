//! What an id, a name and the value of an input must be; and the identity of code.
use ruff_python_ast::Expr;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::Fingerprint;
use crate::scan::Scan;

use super::ProgramError;

/// The longest id, in bytes.
const MAX_ID: usize = 200;

/// How the ids of inputs begin in executions and reports.
pub(crate) const INPUT: &str = "input/";

/// The most levels of a stored record around the value of an input.
const RECORD: usize = 8;

/// Identity of the code, or of the text if the text is not code.
pub(super) fn syntax_of(scan: &Scan, source: &str) -> Fingerprint {
    if scan.errors.is_empty() && scan.syntax != [0; 32] {
        Fingerprint::of(&[b"syntax", &scan.syntax])
    } else {
        Fingerprint::of(&[b"text", source.as_bytes()])
    }
}

pub(super) fn check_id(id: &str) -> Result<(), ProgramError> {
    let why = match id.len() {
        0 => "is empty",
        length if length > MAX_ID => "is too long",
        _ if id.chars().any(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    Err(ProgramError::BadId { id: id.to_owned(), why })
}

/// The id of a step must not be that of an input.
pub(super) fn check_step(id: &str) -> Result<(), ProgramError> {
    if id.starts_with(INPUT) {
        let why = "begins like the ids of inputs";
        return Err(ProgramError::BadId { id: id.to_owned(), why });
    }
    check_id(id)
}

/// The value of an input must be JSON that a stored graph can read back.
pub(super) fn check_json(name: &str, json: &str) -> Result<(), ProgramError> {
    // A record holds it within a few levels of its own.
    let record = ["[".repeat(RECORD).as_str(), json, &"]".repeat(RECORD)].concat();
    let checked = serde_json::from_str::<IgnoredAny>(json)
        .and_then(|_| serde_json::from_str::<Value>(&record));
    let bad = |error: serde_json::Error| ProgramError::InputJson {
        name: name.to_owned(),
        why: error.to_string(),
    };
    checked.map(drop).map_err(bad)
}

/// The name of an input must be one that a step can load. The parser normalises names as Python
/// does.
pub(super) fn check_input(name: &str) -> Result<(), ProgramError> {
    let bad = || ProgramError::BadInput { name: name.to_owned() };
    if name.len() > MAX_ID {
        return Err(bad());
    }
    let parsed = ruff_python_parser::parse_expression(name).map_err(|_| bad())?;
    match parsed.expr() {
        Expr::Name(found) if found.id.as_str() == name => Ok(()),
        _ => Err(bad()),
    }
}
