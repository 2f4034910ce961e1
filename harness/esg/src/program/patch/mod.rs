//! Patches: edits of the text of steps, located by what they replace, that apply together or not at all.
//!
//! Every edit is located in the source as it is before the patch. What it replaces must be found exactly
//! once, by the [rungs](find) of a ladder from exact to lenient. Lines are numbered by steps, from 1.
mod diff;
mod find;
mod hunk;
mod locate;
mod symbol;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::scan::{Scan, SyntaxError, scan};

use super::operation::{Change, Operation};
use super::refusal::Refusal;
use super::{Program, ProgramError, Provenance, ProvenanceKind, VersionId};

pub use diff::unified;

use text::{Splice, Text};

/// Edits of one or more steps, with where they come from. They apply together, or not at all.
///
/// What an edit replaces is found by its text: exactly, else but for trailing white space, else but
/// for the indentation of the whole block, else but for typographic punctuation. It must be found once.
/// Line numbers only break ties. A patch whose result does not parse is refused.
///
/// ```
/// use harness_esg::{Patch, Program, ProgramError, Refusal};
///
/// let mut program = Program::from_script("# %% load\nrows = [3, 1]\n# %% total\nprint(sum(row))\n")?;
/// let patch = Patch::search_replace("total", "sum(row)", "sum(rows)").agent("reviewer");
/// let versions = program.patch(&patch)?;
/// assert_eq!(&*program.step("total")?.source, "print(sum(rows))");
/// assert_eq!(program.version(versions[0])?.provenance.agent.as_deref(), Some("reviewer"));
///
/// // A refusal names what a model or a person can correct. The program has not changed.
/// let again = program.patch(&patch).unwrap_err();
/// assert!(matches!(again, ProgramError::Refused(Refusal::NoMatch { .. })));
/// println!("{again}");
/// # Ok::<(), harness_esg::ProgramError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Patch {
    /// The edits, of any number of steps.
    pub edits: Vec<StepEdit>,
    /// Where they come from. The parent version is that of each edit.
    #[serde(default)]
    pub provenance: Provenance,
    /// Why they are proposed, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// One edit of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepEdit {
    /// The step.
    pub step: Arc<str>,
    /// The version it was made for. The patch is refused if another one is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<VersionId>,
    /// The edit.
    pub edit: EditKind,
}

/// How an edit is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EditKind {
    /// Replaces text by other text.
    SearchReplace {
        /// Lines, or a part of one.
        search: String,
        /// What takes their place.
        replace: String,
        /// The line at which the text is, if it is there more than once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
    /// Replaces a function or a class, with its decorators.
    Symbol {
        /// Its name, with the names of the classes and functions around it: `Model.fit`.
        path: String,
        /// Its new definition.
        source: String,
    },
    /// A unified diff of one step. Counts may be wrong and line numbers missing.
    Unified {
        /// The diff.
        diff: String,
    },
    /// Replaces the whole source.
    Whole {
        /// The new source.
        source: String,
    },
}

impl Patch {
    /// Replaces text of a step by other text.
    #[must_use]
    pub fn search_replace(step: &str, search: &str, replace: &str) -> Self {
        let (search, replace) = (search.to_owned(), replace.to_owned());
        Self::of(step, EditKind::SearchReplace { search, replace, line: None })
    }

    /// Replaces a function or a class of a step: `fit`, `Model.fit`.
    #[must_use]
    pub fn symbol(step: &str, path: &str, source: &str) -> Self {
        Self::of(step, EditKind::Symbol { path: path.to_owned(), source: source.to_owned() })
    }

    /// Applies a unified diff to a step.
    #[must_use]
    pub fn unified(step: &str, diff: &str) -> Self {
        Self::of(step, EditKind::Unified { diff: diff.to_owned() })
    }

    /// Replaces the whole source of a step.
    #[must_use]
    pub fn step(step: &str, source: &str) -> Self {
        Self::of(step, EditKind::Whole { source: source.to_owned() })
    }

    /// A patch of one edit.
    #[must_use]
    pub fn of(step: &str, edit: EditKind) -> Self {
        Self {
            edits: vec![StepEdit { step: step.into(), parent: None, edit }],
            provenance: Provenance::new(ProvenanceKind::Patched),
            why: String::new(),
        }
    }

    /// Adds the edits of another patch.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.edits.extend(other.edits);
        self
    }

    /// Sets where it comes from.
    #[must_use]
    pub fn signed(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets the agent, or the person.
    #[must_use]
    pub fn agent(mut self, agent: &str) -> Self {
        self.provenance.agent = Some(agent.into());
        self
    }

    /// Sets why it is proposed, in a sentence.
    #[must_use]
    pub fn why(mut self, why: &str) -> Self {
        why.clone_into(&mut self.why);
        self
    }

    /// Sets the current versions as those that the edits are made for. The patch is then refused if
    /// one of the steps has changed in between.
    #[must_use]
    pub fn pinned(mut self, program: &Program) -> Self {
        for edit in &mut self.edits {
            edit.parent = program.step(&edit.step).ok().map(|step| step.version);
        }
        self
    }

    /// The steps that it changes, without duplicates.
    pub fn steps(&self) -> impl Iterator<Item = &Arc<str>> {
        let steps: std::collections::BTreeSet<_> =
            self.edits.iter().map(|edit| &edit.step).collect();
        steps.into_iter()
    }

    /// The source that a step would have with this patch. It is not parsed.
    ///
    /// # Errors
    /// Why the edits do not apply to this source.
    pub fn preview(&self, step: &str, source: &str) -> Result<String, Refusal> {
        let edits = self.edits.iter().filter(|edit| &*edit.step == step).map(|edit| &edit.edit);
        changed(step, source, None, edits)
    }
}

/// The new source of a step that a patch is about to change.
struct Changed {
    step: Arc<str>,
    source: Arc<str>,
    scan: Scan,
    parent: VersionId,
}

impl Program {
    /// Applies a patch. Returns the new version of each step that it changes, in the order of its edits. Its
    /// reason is in their provenance.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if an edit does not apply or the result does not parse,
    /// [`ProgramError::UnknownStep`], [`ProgramError::Outdated`]. The program has not changed then.
    pub fn patch(&mut self, patch: &Patch) -> Result<Vec<VersionId>, ProgramError> {
        let changes = self.changes_of(patch)?;
        let mut provenance = patch.provenance.clone();
        if provenance.why.is_none() && !patch.why.is_empty() {
            provenance = provenance.why(&patch.why);
        }
        let mut versions = Vec::with_capacity(changes.len());
        for change in changes {
            let Changed { step, source, scan, parent } = change;
            let signed = provenance.clone().parent(parent);
            let operation = Operation::from(Change::Replaced { step, source }).signed(signed);
            versions.extend(self.perform(operation, Some(scan))?);
        }
        Ok(versions)
    }

    /// Whether a patch applies: what [`patch`](Program::patch) checks.
    ///
    /// # Errors
    /// As [`patch`](Program::patch).
    pub fn accepts(&self, patch: &Patch) -> Result<(), ProgramError> {
        self.changes_of(patch).map(drop)
    }

    fn changes_of(&self, patch: &Patch) -> Result<Vec<Changed>, ProgramError> {
        if patch.edits.is_empty() {
            return Err(Refusal::Empty.into());
        }
        let mut order: Vec<&Arc<str>> = Vec::new();
        let mut edits: BTreeMap<&Arc<str>, Vec<&EditKind>> = BTreeMap::new();
        for StepEdit { step, parent, edit } in &patch.edits {
            let current = self.step(step)?.version;
            if let Some(parent) = parent.or(patch.provenance.parent)
                && self.version(parent)?.step == *step
                && parent != current
            {
                return Err(ProgramError::Outdated { step: step.to_string(), parent, current });
            }
            let of_step = edits.entry(step).or_default();
            if of_step.is_empty() {
                order.push(step);
            }
            of_step.push(edit);
        }
        let mut changes = Vec::with_capacity(order.len());
        for id in order {
            let step = self.step(id)?;
            let edits = edits.get(id).into_iter().flatten().copied();
            let source: Arc<str> = changed(id, &step.source, Some(&step.scan), edits)?.into();
            let scan = scan(&source);
            parses(id, &step.scan.errors, &scan.errors, &source)?;
            changes.push(Changed { step: step.id.clone(), source, scan, parent: step.version });
        }
        Ok(changes)
    }
}

/// The source with these edits, which is of this scan if it is known.
fn changed<'a>(
    step: &str,
    source: &str,
    scan: Option<&Scan>,
    edits: impl Iterator<Item = &'a EditKind>,
) -> Result<String, Refusal> {
    let edits: Vec<_> = edits.collect();
    let new = match edits[..] {
        [EditKind::Whole { source: whole }] => text::unfenced(whole).to_owned(),
        _ => {
            let text = Text::of(source);
            let mut splices: Vec<Splice> = Vec::new();
            for edit in edits {
                locate::splices(step, source, &text, scan, edit, &mut splices)?;
            }
            text.spliced(step, splices)?
        }
    };
    match new == source {
        true => Err(Refusal::NoChange { step: step.to_owned() }),
        false => Ok(new),
    }
}

/// A step that parses must parse afterwards. One that does not must have fewer errors, or its first
/// one further on: a patch corrects one of several.
fn parses(
    step: &str,
    before: &[SyntaxError],
    after: &[SyntaxError],
    source: &str,
) -> Result<(), Refusal> {
    let Some(error) = after.first() else { return Ok(()) };
    let at = |error: &SyntaxError| (error.line, error.column);
    let further = before.first().is_some_and(|first| at(error) > at(first));
    if !before.is_empty() && (after.len() < before.len() || further) {
        return Ok(());
    }
    Err(Refusal::DoesNotParse {
        step: step.to_owned(),
        line: error.line,
        message: error.message.clone(),
        text: source.lines().nth(error.line.saturating_sub(1)).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
