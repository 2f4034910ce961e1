//! Where a change comes from.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::VersionId;

/// Where a change comes from: who made it, in which run, and why. Everything but the kind is optional.
///
/// ```
/// use harness_esg::{Provenance, ProvenanceKind};
///
/// let patch = Provenance::new(ProvenanceKind::Patched)
///     .agent("fixer")
///     .run("r-7")
///     .call("c-3")
///     .diagnosis("NameError: name 'row' is not defined");
/// assert_eq!(patch.agent.as_deref(), Some("fixer"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Provenance {
    /// What kind of change it is.
    pub kind: ProvenanceKind,
    /// The agent, or the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// The model call that returned the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
    /// What it is to repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Arc<str>>,
    /// Why it was proposed, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// The version that it was made for. The change is refused if another one is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<VersionId>,
}

/// What kind of change it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProvenanceKind {
    /// A person or a program wrote it.
    #[default]
    Written,
    /// A model wrote it.
    Generated,
    /// It repairs a failure.
    Patched,
}

impl Provenance {
    /// A change of this kind.
    #[must_use]
    pub fn new(kind: ProvenanceKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Sets the agent, or the person.
    #[must_use]
    pub fn agent(mut self, agent: &str) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the run of the agent.
    #[must_use]
    pub fn run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the model call that returned the code.
    #[must_use]
    pub fn call(mut self, call: &str) -> Self {
        self.call = Some(call.into());
        self
    }

    /// Sets what it is to repair.
    #[must_use]
    pub fn diagnosis(mut self, diagnosis: &str) -> Self {
        self.diagnosis = Some(diagnosis.into());
        self
    }

    /// Sets why it was proposed, in a sentence.
    #[must_use]
    pub fn why(mut self, why: &str) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Sets the version that it was made for. The change is refused if another one is current.
    #[must_use]
    pub fn parent(mut self, parent: VersionId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Whether it says nothing.
    pub(in crate::program) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
