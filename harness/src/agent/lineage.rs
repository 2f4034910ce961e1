//! What of a loop its sessions are compared with.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::graph::Wiring;
use crate::log::{Fingerprint, Fit, Successor};

/// What of a loop its sessions depend on.
pub(super) struct Lineage {
    pub(super) fingerprint: Fingerprint,
    aliases: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
}

impl Lineage {
    pub(super) fn of(wiring: &Wiring) -> Self {
        let aliases = wiring.nodes.iter().flat_map(|node| {
            node.aliases.iter().map(|alias| (alias.to_string(), node.name.to_string()))
        });
        let questions = wiring.nodes.iter().filter_map(|node| node.question.as_ref());
        let answers =
            questions.map(|question| (question.name.to_owned(), (question.answer_schema)()));
        Self {
            fingerprint: Fingerprint::of(wiring),
            aliases: aliases.collect(),
            answers: answers.collect(),
        }
    }

    pub(super) fn successor(&self, fit: Fit) -> Successor<'_> {
        let Self { fingerprint, aliases, answers } = self;
        Successor { graph: fingerprint, aliases, answers, fit }
    }
}
