//! The structure of a loop, as far as its sessions depend on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The structure of a loop, as far as its sessions depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fingerprint {
    /// The name of the harness.
    pub name: String,
    /// A hash of the steps and the edges between them.
    pub wiring: String,
    /// The steps with their kinds.
    pub steps: BTreeMap<String, StepKind>,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// It has a body.
    Run,
    /// It only has a route.
    Decide,
    /// It asks a question.
    Gate,
    /// It runs its body for each of several items.
    Each,
    /// It is switched off.
    Off,
}
