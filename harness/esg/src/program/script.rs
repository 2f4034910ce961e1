//! Programs as scripts, in cells that begin with `# %%`.
use std::collections::HashSet;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged as _;

use super::cells::{self, Cell, has_code, trimmed};
use super::{Program, ProgramError};

/// What a line that begins a cell says.
#[derive(Debug, PartialEq, Eq)]
struct Marker {
    name: Option<String>,
    code: bool,
}

impl Program {
    /// Reads a script whose cells begin with `# %%`, as Jupytext writes them.
    ///
    /// What follows on that line is the cell's name and becomes the step's id; tags and other
    /// metadata are ignored, and cells that are not code, such as `# %% [markdown]`, are skipped.
    /// Text before the first cell is a step if it has code. Cells without a name are called `s0`,
    /// `s1` and so on; those of them that have no code are skipped too. Blank lines at the end of a
    /// cell are not part of it.
    ///
    /// ```
    /// use harness_esg::Program;
    ///
    /// let program = Program::from_script("# %% load\nrows = [1]\n\n# %%\nprint(rows)\n")?;
    /// let ids: Vec<&str> = program.steps().map(|step| &*step.id).collect();
    /// assert_eq!(ids, ["load", "s0"]);
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    ///
    /// # Errors
    /// [`ProgramError::DuplicateCell`], [`ProgramError::BadId`].
    pub fn from_script(text: &str) -> Result<Self, ProgramError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let quoted = quoted_markers(text);
        let mut found = Vec::new();
        let mut open = (Marker { name: None, code: true }, 1, 0);
        let mut at = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            if let Some(marker) = marker(line)
                && !quoted.contains(&at)
            {
                let (before, line_of, start) =
                    std::mem::replace(&mut open, (marker, number + 1, at + line.len()));
                found.push((before, line_of, &text[start..at]));
            }
            at += line.len();
        }
        let (last, line_of, start) = open;
        found.push((last, line_of, &text[start..]));
        let cells = found
            .into_iter()
            .filter(|(marker, _, source)| {
                marker.code && (marker.name.is_some() || has_code(source))
            })
            .map(|(marker, at, source)| Cell {
                name: marker.name,
                source: trimmed(source).to_owned(),
                at,
            })
            .collect();
        cells::program(cells, true)
    }

    /// Writes the steps as such a script. [`from_script`](Program::from_script) reads the same
    /// steps back. Inputs and artifacts are not included.
    ///
    /// # Errors
    /// [`ProgramError::NotACell`] for a step that would be read back differently.
    pub fn to_script(&self) -> Result<String, ProgramError> {
        let mut script = String::new();
        for step in self.steps() {
            let refuse = |why| ProgramError::NotACell { step: step.id.to_string(), why };
            let line = format!("# %% {}\n", step.id);
            if marker(&line) != Some(Marker { name: Some(step.id.to_string()), code: true }) {
                return Err(refuse("its id would be read back differently (use another id)"));
            }
            if step.source.lines().any(|line| marker(line).is_some()) {
                return Err(refuse("one of its lines begins with `# %%` (change that line)"));
            }
            if !script.is_empty() {
                script.push('\n');
            }
            script.push_str(&line);
            script.push_str(trimmed(&step.source));
            script.push('\n');
        }
        Ok(script)
    }
}

/// The marker on a line, if it begins a cell.
fn marker(line: &str) -> Option<Marker> {
    let rest = line.strip_prefix("# %%").or_else(|| line.strip_prefix("#%%"))?;
    // More `%` mean nested cells.
    let rest = rest.trim_start_matches('%');
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let mut name = rest.trim();
    // Metadata: `{"tags": ["a"]}`, or `tags=["a"] key="value"`.
    if let Some(at) = name.find('{') {
        name = &name[..at];
    }
    let mut from = 0;
    for word in name.split_whitespace() {
        let start = from + name[from..].find(word).unwrap_or(0);
        let key = word.split_once('=').map(|(key, _)| key);
        let is_key = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
        };
        if key.is_some_and(is_key) {
            name = &name[..start];
            break;
        }
        from = start + word.len();
    }
    let mut name = name.trim_end();
    let mut code = true;
    if let Some(inner) = name.strip_suffix(']')
        && let Some((before, kind)) = inner.rsplit_once('[')
        && (before.is_empty() || before.ends_with(char::is_whitespace))
        && ["markdown", "md", "raw"].contains(&kind)
    {
        code = false;
        name = before.trim_end();
    }
    Some(Marker { name: (!name.is_empty()).then(|| name.to_owned()), code })
}

/// The lines within strings that look like the beginning of a cell. A script that does not parse as
/// a whole is split at every such line, because the ends of its strings are unknown.
fn quoted_markers(text: &str) -> HashSet<usize> {
    if !text.contains("'''") && !text.contains("\"\"\"") {
        return HashSet::new();
    }
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    if parsed.has_invalid_syntax() {
        return HashSet::new();
    }
    let comments: HashSet<usize> = parsed
        .tokens()
        .iter()
        .filter(|token| token.kind() == TokenKind::Comment)
        .map(|token| token.start().to_usize())
        .collect();
    let mut at = 0;
    let mut quoted = HashSet::new();
    for line in text.split_inclusive('\n') {
        if marker(line).is_some() && !comments.contains(&at) {
            quoted.insert(at);
        }
        at += line.len();
    }
    quoted
}

#[cfg(test)]
mod tests;
