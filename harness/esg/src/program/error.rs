//! The error of a program.
use crate::text::shown;

use super::VersionId;
use super::refusal::Refusal;

/// Why a change or a script was refused. The program has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// There is no step with that id.
    #[error("there is no step `{}`{}", shown(.step), meant(.near))]
    UnknownStep {
        /// The id.
        step: String,
        /// A step with a similar id.
        near: Option<String>,
    },
    /// There is no artifact with that name.
    #[error("there is no artifact `{}`{}", shown(.artifact), meant(.near))]
    UnknownArtifact {
        /// The name.
        artifact: String,
        /// An artifact with a similar name.
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
    /// The change was made for another version than the current one.
    #[error(
        "the change of `{}` was made for {parent}, and {current} is current (look at {current} and \
         make the change for it, or roll back to {parent} first)", shown(.step)
    )]
    Outdated {
        /// The step or the input.
        step: String,
        /// The version that the change was made for.
        parent: VersionId,
        /// The current version.
        current: VersionId,
    },
    /// A step with that id exists.
    #[error("step `{}` already exists (replace it, or use another id)", shown(.step))]
    DuplicateStep {
        /// The id.
        step: String,
    },
    /// An invalid id for a step or an artifact.
    #[error("`{}` is not a valid id: it {why} (expected 1 to 200 bytes without control characters)", shown(.id))]
    BadId {
        /// The id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An invalid name for an input.
    #[error(
        "`{}` is not a valid name of an input: expected a Python identifier in NFKC form", shown(.name)
    )]
    BadInput {
        /// The name.
        name: String,
    },
    /// The value of an input is no JSON, or is nested too deeply to be stored.
    #[error(
        "the value of the input `{}` is not usable as JSON: {why} (make a value that is nested more deeply in a step)",
        shown(.name)
    )]
    InputJson {
        /// The name.
        name: String,
        /// What is wrong with the value.
        why: String,
    },
    /// A patch was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Two cells of a script or notebook have the same name.
    #[error(
        "{}, {first} and {second}, are both called `{}` (rename one)",
        if *.lines { "the cells on two lines" } else { "two cells" }, shown(.name)
    )]
    DuplicateCell {
        /// The name.
        name: String,
        /// The position of the first: its line in a script, or its number in a notebook, from 1.
        first: usize,
        /// The position of the second.
        second: usize,
        /// Whether the positions are lines.
        lines: bool,
    },
    /// A step cannot be written into a script.
    #[error("failed to write step `{}` as a cell of a script: {why}", shown(.step))]
    NotACell {
        /// The step.
        step: String,
        /// The reason.
        why: &'static str,
    },
    /// The text is not a notebook.
    #[error("this is not a notebook: {why} (expected the JSON of an .ipynb file, nbformat 3 or 4)")]
    NotANotebook {
        /// What was found.
        why: String,
    },
    /// A cell of a notebook has a line with IPython syntax.
    #[error(
        "line {line} of cell {cell} of the notebook is IPython, not Python: `{}` (remove it, \
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
