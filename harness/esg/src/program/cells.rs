//! Cells of a script or notebook, before they become steps.
use std::collections::HashMap;

use super::{Program, ProgramError};

/// A cell of a script or a notebook.
pub(super) struct Cell {
    /// Its name, if it has one.
    pub(super) name: Option<String>,
    pub(super) source: String,
    /// Its line in a script, or its number in a notebook, from 1.
    pub(super) at: usize,
}

/// The program of these cells. Cells without a name are called `s0`, `s1` and so on, skipping names
/// in use.
pub(super) fn program(cells: Vec<Cell>, lines: bool) -> Result<Program, ProgramError> {
    let mut taken: HashMap<&str, usize> = HashMap::new();
    for cell in &cells {
        if let Some(name) = &cell.name
            && let Some(first) = taken.insert(name, cell.at)
        {
            let second = cell.at;
            return Err(ProgramError::DuplicateCell { name: name.clone(), first, second, lines });
        }
    }
    let mut program = Program::new();
    let mut numbers = 0..;
    for cell in &cells {
        match &cell.name {
            Some(name) => program.push(name, &cell.source)?,
            None => {
                let mut names = numbers.by_ref().map(|number: usize| format!("s{number}"));
                let name = names.find(|name| !taken.contains_key(name.as_str()));
                program.push(&name.unwrap_or_default(), &cell.source)?
            }
        };
    }
    Ok(program)
}

/// Whether the text has more than comments.
pub(super) fn has_code(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The text without blank lines at its end.
pub(super) fn trimmed(text: &str) -> &str {
    let mut kept = text;
    loop {
        let line = kept.trim_end_matches(['\r', '\n']);
        let start = line.rfind('\n').map_or(0, |at| at + 1);
        if !line[start..].trim().is_empty() || line.is_empty() {
            return line;
        }
        kept = &line[..start];
    }
}
