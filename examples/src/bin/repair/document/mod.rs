//! A file as code steps, and the steps as a file again.
//!
//! A script is split where its author left a blank line between statements at the top level, a notebook
//! into its cells. So a repair of one part re-runs only the parts that it affects.

mod cells;
mod checks;
mod split;

use std::ops::Range;

use harness::esg::{Program, ProgramError, Step};
use serde::{Deserialize, Serialize};

pub(crate) use checks::{CheckError, add_checks};

/// How code steps make up a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Document {
    /// A script: what comes before the first part, and each part with the line ends after it.
    Script {
        /// A byte order mark, if there is one.
        head: String,
        /// The step of each part, and the line ends.
        parts: Vec<(String, String)>,
    },
    /// A notebook: its JSON, and the step of each cell with code, by the place of the cell.
    Notebook {
        /// The file.
        json: String,
        /// The places and the steps.
        cells: Vec<(usize, String)>,
    },
}

impl Default for Document {
    fn default() -> Self {
        Self::Script { head: String::new(), parts: Vec::new() }
    }
}

impl Document {
    /// Splits a script.
    pub(crate) fn script(text: &str) -> Result<(Self, Program), ProgramError> {
        let (head, text) = match text.strip_prefix('\u{feff}') {
            Some(rest) => ("\u{feff}", rest),
            None => ("", text),
        };
        let (mut program, mut parts) = (Program::new(), Vec::new());
        for (index, Range { start, end }) in split::parts(text).into_iter().enumerate() {
            let (id, part) = (format!("part{}", index + 1), &text[start..end]);
            let source = part.trim_end_matches(['\r', '\n']);
            program.push(&id, source)?;
            parts.push((id, part[source.len()..].to_owned()));
        }
        Ok((Self::Script { head: head.to_owned(), parts }, program))
    }

    /// Reads a notebook of nbformat 4.
    pub(crate) fn notebook(json: &str) -> Result<(Self, Program), ProgramError> {
        let program = Program::from_notebook(json)?;
        let cells = cells::places(json, &program)?;
        Ok((Self::Notebook { json: json.to_owned(), cells }, program))
    }

    /// The file as it was read. `view` is that of its steps then.
    pub(crate) fn original<'a>(&'a self, view: &'a str) -> &'a str {
        match self {
            Self::Script { .. } => view,
            Self::Notebook { json, .. } => json,
        }
    }

    /// The steps of the file, in order.
    pub(crate) fn steps(&self) -> Vec<&str> {
        match self {
            Self::Script { parts, .. } => parts.iter().map(|(id, _)| id.as_str()).collect(),
            Self::Notebook { cells, .. } => cells.iter().map(|(_, id)| id.as_str()).collect(),
        }
    }

    /// The text of the steps as a person reads it: of a script, the script.
    pub(crate) fn view(&self, program: &Program) -> String {
        self.view_until(None, program)
    }

    /// The line of the view at which a line of a step is, from 1.
    pub(crate) fn line(&self, program: &Program, step: &str, line: usize) -> usize {
        self.view_until(Some(step), program).matches('\n').count() + line
    }

    /// A sentence about a step with the lines that it names as lines of the view.
    pub(crate) fn sentence(&self, program: &Program, step: &str, text: &str) -> String {
        let mut words = text.split("line ");
        let mut sentence = words.next().unwrap_or_default().to_owned();
        for rest in words {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            sentence.push_str("line ");
            match rest[..digits].parse() {
                Ok(line) => sentence.push_str(&self.line(program, step, line).to_string()),
                Err(_) => sentence.push_str(&rest[..digits]),
            }
            sentence.push_str(&rest[digits..]);
        }
        sentence
    }

    /// The view before a step.
    fn view_until(&self, until: Option<&str>, program: &Program) -> String {
        let source = |id: &str| program.step(id).map_or("", |step: &Step| &*step.source);
        let before = |id: &str| until != Some(id);
        let mut view = String::new();
        match self {
            Self::Script { head, parts } => {
                view.push_str(head);
                for (id, gap) in parts.iter().take_while(|(id, _)| before(id)) {
                    view.push_str(source(id));
                    view.push_str(gap);
                }
            }
            Self::Notebook { cells, .. } => {
                for (place, id) in cells {
                    view.push_str(&format!("# %% cell {}\n", place + 1));
                    if !before(id) {
                        break;
                    }
                    view.push_str(source(id).trim_end_matches('\n'));
                    view.push_str("\n\n");
                }
            }
        }
        view
    }

    /// The file with the steps as they are. What is not a step stays as it was.
    pub(crate) fn file(&self, program: &Program) -> String {
        match self {
            Self::Script { .. } => self.view(program),
            Self::Notebook { json, cells } => cells::replaced(json, cells, program),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_split_and_joined_without_a_change() {
        for text in [
            "",
            "\n\n",
            "# only a comment",
            "x = 1\n\n\n# about y\ny = 2\nz = 3\r\n\r\n\tprint(1)",
            "\u{feff}import os\r\n\r\nprint('''a\r\n\r\nb''')\r\n",
            "def f():\n    x = 1\n\n    return x\n\nprint(f())\n\n",
            "if x:\n    y\n\nelse:\n    z\n\n\nprint((1,\n\n2)\n\nw = 3\n",
        ] {
            let (document, program) = Document::script(text).unwrap();
            assert_eq!(document.view(&program), text);
            assert_eq!(document.file(&program), text);
        }
    }

    #[test]
    fn a_line_of_a_part_is_one_of_the_file() {
        let text = "x = 1\n\n# about y\ny = 2\n\nprint(x)\n";
        let (document, program) = Document::script(text).unwrap();
        assert_eq!(document.steps(), ["part1", "part2", "part3"]);
        assert_eq!(document.line(&program, "part2", 2), 4);
        assert_eq!(document.line(&program, "part3", 1), 6);
        let about = |text: &str| document.sentence(&program, "part2", text);
        assert_eq!(about("line 1 opens: line 2 is in it"), "line 3 opens: line 4 is in it");
        assert_eq!(about("the line is long, line x"), "the line is long, line x");
    }

    #[test]
    fn only_a_changed_cell_changes_in_a_notebook() {
        let json = r##"{
 "nbformat": 4, "nbformat_minor": 5,
 "cells": [
  {"cell_type": "markdown", "id": "m", "source": ["# Totals: é"]},
  {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [],
   "source": [
    "%matplotlib inline\n",
    "rows = [3, 1]\n",
    "print('\u00e9')"
   ]},
  {"cell_type": "code", "id": "e", "source": "  # nothing"},
  {"cell_type": "code", "id": "b", "source": "print(sum(row))"}
 ]
}
"##;
        let (document, mut program) = Document::notebook(json).unwrap();
        assert_eq!(document.steps(), ["a", "b"]);
        assert_eq!(document.file(&program), json);
        assert_eq!(document.line(&program, "b", 1), 7, "{}", document.view(&program));
        program.replace("b", "print(sum(rows))").unwrap();
        assert_eq!(document.file(&program), json.replace("sum(row)", "sum(rows)"));
        program.replace("a", "# %matplotlib inline\nrows = [3]\nprint('\u{e9}')").unwrap();
        let wanted = json.replace("sum(row)", "sum(rows)").replace("[3, 1]", "[3]");
        assert_eq!(document.file(&program), wanted.replace("\\u00e9", "é"));
    }
}
