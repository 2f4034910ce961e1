//! What each patch fixed and broke.
use std::fmt;
use std::sync::Arc;

use crate::graph::CodeGraph;
use crate::program::{Provenance, ProvenanceKind, VersionId};

/// What a patch fixed and broke, of a program whose tests are steps of it: see
/// [`CodeGraph::credit`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credit {
    /// The version of a step that the patch made.
    pub version: VersionId,
    /// That step.
    pub step: Arc<str>,
    /// Where the patch comes from.
    pub provenance: Provenance,
    /// The steps that failed before it and succeeded with it.
    pub fixed: Vec<Arc<str>>,
    /// The steps that succeeded before it and failed with it.
    pub broke: Vec<Arc<str>>,
}

impl fmt::Display for Credit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.version, self.step)?;
        if let Some(agent) = &self.provenance.agent {
            write!(f, " by {agent}")?;
        }
        match (&self.fixed[..], &self.broke[..]) {
            ([], []) => f.write_str(" fixed nothing"),
            (fixed, []) => write!(f, " fixed {}", fixed.join(", ")),
            ([], broke) => write!(f, " broke {}", broke.join(", ")),
            (fixed, broke) => {
                write!(f, " fixed {} and broke {}", fixed.join(", "), broke.join(", "))
            }
        }
    }
}

impl CodeGraph {
    /// What each patch fixed and broke, oldest first: the steps that ended otherwise in the replay in
    /// which it first ran than before, and read what it changed. Patches that have not run are not
    /// listed. If several ran first in one replay, each counts for what it reached.
    ///
    /// ```
    /// use harness_esg::{Blobs, CPython, CodeGraph, Patch, Program, Trust};
    ///
    /// let program = Program::from_script("# %% load\nrow = [3, 1]\n# %% test\nassert sum(row) == 5")?;
    /// let python = CPython::find().trust(Trust::Mine).start()?;
    /// let mut graph = CodeGraph::new(program, python, Blobs::memory());
    /// graph.replay()?;
    ///
    /// let patch = Patch::search_replace("load", "[3, 1]", "[3, 2]").agent("fixer");
    /// graph.edit(|program| program.patch(&patch))?;
    /// graph.replay()?;
    /// assert_eq!(graph.credit()[0].to_string(), "v2 of load by fixer fixed test");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn credit(&self) -> Vec<Credit> {
        let versions = self.program().versions().iter();
        let patched = versions
            .filter(|version| version.provenance.kind == ProvenanceKind::Patched)
            .map(|version| (version, self.effect_of(version.id).steps))
            .filter(|(_, touched)| !touched.is_empty());
        patched
            .map(|(version, touched)| {
                let turned = |ok: bool| {
                    let these = touched.iter().filter(|one| one.succeeds() == Some(ok));
                    these.map(|one| one.step.clone()).collect()
                };
                Credit {
                    version: version.id,
                    step: version.step.clone(),
                    provenance: version.provenance.clone(),
                    fixed: turned(true),
                    broke: turned(false),
                }
            })
            .collect()
    }
}
