//! What a session is compared with: the identity of a loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::graph::Wiring;
use crate::session::Fingerprint;
use crate::state::{Schema, State};

use super::{Compatibility, TargetVersion};

/// The parts of a loop that its sessions depend on.
pub(crate) struct LoopIdentity {
    pub(crate) fingerprint: Arc<Fingerprint>,
    pub(crate) schema: Arc<Schema>,
    aliases: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
}

impl LoopIdentity {
    pub(crate) fn of<S: State>(wiring: &Wiring) -> Self {
        let aliases = wiring.nodes.iter().flat_map(|node| {
            node.aliases.iter().map(|alias| (alias.to_string(), node.name.to_string()))
        });
        let questions = wiring.nodes.iter().filter_map(|node| node.question.as_ref());
        let answers =
            questions.map(|question| (question.name.to_owned(), (question.answer_schema)()));
        Self {
            fingerprint: Arc::new(Fingerprint::of(wiring)),
            schema: Arc::new(S::schema()),
            aliases: aliases.collect(),
            answers: answers.collect(),
        }
    }

    /// The loop as the version that a session is to be resumed with.
    pub(crate) fn target(&self, compatibility: Compatibility) -> TargetVersion<'_> {
        let Self { fingerprint, schema, aliases, answers } = self;
        TargetVersion { graph: fingerprint, schema, aliases, answers, compatibility }
    }
}
