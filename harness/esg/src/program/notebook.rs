//! Programs from notebooks.
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged as _;
use serde_json::Value;

use super::cells::{self, Cell, has_code};
use super::{Program, ProgramError};

impl Program {
    /// Reads the JSON of an `.ipynb` file, nbformat 4 or 3: its code cells, in order. Outputs, tags
    /// and everything else are ignored.
    ///
    /// The id of a step is the `name` in the cell's metadata, else the cell's id, else `s0`, `s1`
    /// and so on. Cells without code are skipped unless their metadata name them.
    ///
    /// A line `%matplotlib inline`, or with another way to show figures, becomes a comment: steps draw
    /// into files and values, and show nothing.
    ///
    /// # Errors
    /// [`ProgramError::NotANotebook`]; [`ProgramError::Magic`] for a line with IPython syntax;
    /// [`ProgramError::DuplicateCell`], [`ProgramError::BadId`].
    pub fn from_notebook(json: &str) -> Result<Self, ProgramError> {
        let refuse = |why: String| ProgramError::NotANotebook { why };
        let notebook: Value =
            serde_json::from_str(json).map_err(|error| refuse(error.to_string()))?;
        let format = notebook.get("nbformat").and_then(Value::as_u64);
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        let found = match format {
            Some(4) => list(notebook.get("cells"))
                .ok_or_else(|| refuse("it has no list `cells`".to_owned()))?,
            Some(3) => list(notebook.get("worksheets"))
                .ok_or_else(|| refuse("it has no list `worksheets`".to_owned()))?
                .iter()
                .flat_map(|sheet| list(sheet.get("cells")).unwrap_or_default())
                .collect(),
            Some(other) => return Err(refuse(format!("its `nbformat` is {other}"))),
            None => return Err(refuse("it has no `nbformat`".to_owned())),
        };
        let mut cells = Vec::new();
        for (index, cell) in found.iter().enumerate() {
            if cell.get("cell_type").and_then(Value::as_str) != Some("code") {
                continue;
            }
            let number = index + 1;
            let source = cell.get("source").or_else(|| cell.get("input")).and_then(joined);
            let mut source = source
                .ok_or_else(|| refuse(format!("cell {number} has no text in its `source`")))?;
            let text = |value: Option<&Value>| {
                value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
            };
            let named = text(cell.get("metadata").and_then(|metadata| metadata.get("name")));
            while let Some((start, text)) = magic(&source) {
                if !is_display(&source[start..]) {
                    let line = source[..start].matches('\n').count() + 1;
                    return Err(ProgramError::Magic { cell: number, line, text });
                }
                // The other lines keep their numbers.
                source.insert_str(start, "# ");
            }
            if named.is_none() && !has_code(&source) {
                continue;
            }
            let name = named.or_else(|| text(cell.get("id")));
            cells.push(Cell { name, source, at: number });
        }
        cells::program(cells, false)
    }
}

/// Text, or a list of its parts.
fn joined(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => parts.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Whether the text begins with a line that only says how figures are shown.
fn is_display(text: &str) -> bool {
    text.lines().next().and_then(|line| line.split_whitespace().next()) == Some("%matplotlib")
        && text.starts_with('%')
}

/// Where the first line with IPython syntax starts, and its text. The grammar decides, not the start
/// of a line: a line of a long expression may begin with `%`.
fn magic(source: &str) -> Option<(usize, String)> {
    if !source.contains(['%', '!', '?']) {
        return None;
    }
    // The rest of a cell that begins with `%%` may be in any language.
    let parsed = parse_unchecked(source, ParseOptions::from(Mode::Ipython));
    let tokens = parsed.tokens();
    let foreign = [TokenKind::IpyEscapeCommand, TokenKind::Question];
    let token = tokens.iter().find(|token| foreign.contains(&token.kind()))?;
    let at = token.start().to_usize();
    let start = source[..at].rfind('\n').map_or(0, |end| end + 1);
    Some((start, source[start..].lines().next().unwrap_or_default().trim().to_owned()))
}

#[cfg(test)]
mod tests;
