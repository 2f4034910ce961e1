//! Why a program was not changed, or not read.
use crate::text::shown;

use super::VersionId;

/// Why a program was not changed, or not read. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// There is no step of that id.
    #[error("there is no step `{}`{}", shown(.step), meant(.near))]
    UnknownStep {
        /// The id.
        step: String,
        /// A step whose id is near.
        near: Option<String>,
    },
    /// There is no artifact of that name.
    #[error("there is no artifact `{}`{}", shown(.artifact), meant(.near))]
    UnknownArtifact {
        /// The name.
        artifact: String,
        /// An artifact whose name is near.
        near: Option<String>,
    },
    /// The program never had that version.
    #[error("the program never had a version {version} (it has had {count}, from v0 on)")]
    UnknownVersion {
        /// The version.
        version: VersionId,
        /// How many versions the program has had.
        count: usize,
    },
    /// A step of that id is there already.
    #[error("there is a step `{}` already (replace it, or give the new one another id)", shown(.step))]
    DuplicateStep {
        /// The id.
        step: String,
    },
    /// An id that no step or artifact can have.
    #[error("`{}` can not be an id: it {why} (expected 1 to 200 bytes without control characters)", shown(.id))]
    BadId {
        /// The id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A name that no input can have.
    #[error(
        "`{}` can not be the name of an input: expected a Python identifier, in the form in which \
         Python keeps it (NFKC)", shown(.name)
    )]
    BadInput {
        /// The name.
        name: String,
    },
    /// Two cells of a script or notebook have one name.
    #[error(
        "{}, {first} and {second}, are both called `{}` (rename one)",
        if *.lines { "the cells on two lines" } else { "two cells" }, shown(.name)
    )]
    DuplicateCell {
        /// The name.
        name: String,
        /// Where the first is: its line in a script, or its number in a notebook, from 1.
        first: usize,
        /// Where the second is.
        second: usize,
        /// Whether these are lines.
        lines: bool,
    },
    /// A step can not be written into a script.
    #[error("step `{}` can not be written as a cell of a script: {why}", shown(.step))]
    NotACell {
        /// The step.
        step: String,
        /// Why not.
        why: &'static str,
    },
    /// The text is no notebook.
    #[error("this is no notebook: {why} (expected the JSON of an .ipynb file, nbformat 3 or 4)")]
    NotANotebook {
        /// What was found.
        why: String,
    },
    /// A cell of a notebook has a line that only IPython understands.
    #[error(
        "line {line} of cell {cell} of the notebook is IPython's, not Python's: `{}` (remove it, \
         or write it in Python)", shown(.text)
    )]
    Magic {
        /// The cell's number among all cells, from 1.
        cell: usize,
        /// The line in the cell, from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

fn meant(near: &Option<String>) -> String {
    match near {
        Some(near) => format!(" (did you mean `{}`?)", shown(near)),
        None => " (see `Program::steps` for those there are)".to_owned(),
    }
}
