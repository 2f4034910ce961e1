//! Patchers propose patches for a diagnosis. [`RulePatcher`] knows common mistakes and asks no model.
//!
//! A patcher decides nothing: whether a patch repairs the program is known when it has run. What only
//! hides a failure is refused by [`judge`](judge()), for any patcher.
mod judge;
mod lex;
mod lines;
mod rules;
mod whole;

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use crate::diagnosis::Diagnosis;
use crate::program::{Patch, Program, Provenance, ProvenanceKind, unified};

pub use judge::{Evasion, judge};
pub use rules::{LineEdit, Proposal, Rule, propose};

use whole::Changed;

/// Proposes patches for a diagnosis.
///
/// ```
/// use harness_esg::patcher::{Patcher, Proposing, PatcherError};
/// use harness_esg::{Diagnosis, Patch, Program};
///
/// /// Knows one mistake.
/// struct Tabs;
///
/// impl Patcher for Tabs {
///     fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
///         let step = &diagnosis.failing.step;
///         let source = program.step(step).map(|step| step.source.replace('\t', "    "));
///         let patches = source.map(|source| vec![Patch::step(step, &source).agent("tabs")]);
///         Box::pin(async move { patches.map_err(PatcherError::new) })
///     }
/// }
/// ```
pub trait Patcher: Send + Sync {
    /// The patches that are worth a try, the most likely first. None is an answer.
    ///
    /// # Errors
    /// If the patcher itself fails: a model cannot be reached.
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a>;
}

impl<P: Patcher + ?Sized> Patcher for Arc<P> {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        (**self).propose(diagnosis, program)
    }
}

/// The future of [`Patcher::propose`].
pub type Proposing<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Patch>, PatcherError>> + Send + 'a>>;

/// Why a patcher failed. Its source is the error of what it uses.
#[derive(Debug)]
pub struct PatcherError(Box<dyn std::error::Error + Send + Sync>);

impl PatcherError {
    /// An error with this source.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

impl fmt::Display for PatcherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the patcher failed")
    }
}

impl std::error::Error for PatcherError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// Knows common mistakes: names, attributes, keys, arguments and modules that are nearly right, missing
/// imports, indentation, brackets, quotes, colons and commas. It asks no model.
///
/// ```
/// use harness_esg::{Blobs, CPython, CodeGraph, Program, RulePatcher, Trust};
///
/// let program = Program::from_script("# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(row)")?;
/// let python = CPython::find().trust(Trust::Mine).start()?;
/// let mut graph = CodeGraph::new(program, python, Blobs::memory());
/// graph.replay()?;
/// while let Some(diagnosis) = graph.diagnose()? {
///     let Some(patch) = RulePatcher.patches(&diagnosis, graph.program()).into_iter().next() else {
///         break;
///     };
///     graph.edit(|program| program.patch(&patch))?;
///     graph.replay()?;
/// }
/// assert_eq!(graph.value("total")?.repr, "4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RulePatcher;

impl RulePatcher {
    /// The patches of the rules, the most likely first. Each applies, and none hides the failure.
    #[must_use]
    pub fn patches(&self, diagnosis: &Diagnosis, program: &Program) -> Vec<Patch> {
        let provenance =
            Provenance::new(ProvenanceKind::Patched).agent("rules").diagnosis(&diagnosis.error());
        let patch = |Changed { step, source, proposal }: Changed<'_>| {
            Patch::unified(&step.id, &unified(&step.id, &step.source, &source))
                .signed(provenance.clone())
                .why(&format!("{}: {}", proposal.rule, proposal.explanation))
                .pinned(program)
        };
        let patches = whole::proposals(diagnosis, program).into_iter().map(patch);
        patches.filter(|patch| program.accepts(patch).is_ok()).collect()
    }
}

impl Patcher for RulePatcher {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        Box::pin(ready(Ok(self.patches(diagnosis, program))))
    }
}
