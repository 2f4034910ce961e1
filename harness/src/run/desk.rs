use std::collections::HashSet;

use tokio::task::AbortHandle;

use crate::session::Memory;
use crate::step::{Asked, Place};

/// What the step at work has laid before its run: questions, effects, tasks. It lives behind one
/// lock that a step takes only when it does one of these.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Borrowed from the session for the length of the run.
    pub(crate) memory: Memory,
    /// Questions that this attempt asked and nobody has answered.
    pub(crate) asked: Vec<(Place, String, Asked)>,
    /// Keys used in this attempt, questions and effects apart.
    asked_keys: HashSet<String>,
    effect_keys: HashSet<String>,
    pub(crate) tasks: Vec<AbortHandle>,
}

impl Desk {
    /// Notes that this attempt asks under `key`; false if it did before.
    pub(crate) fn use_ask_key(&mut self, key: &str) -> bool {
        self.asked_keys.insert(key.to_owned())
    }

    /// Notes that this attempt has an effect under `key`; false if it did before.
    pub(crate) fn use_effect_key(&mut self, key: &str) -> bool {
        self.effect_keys.insert(key.to_owned())
    }

    pub(crate) fn abort_tasks(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
    }

    /// Ends an attempt: aborts its tasks, hands over its questions.
    pub(crate) fn clear(&mut self, place: Place) -> Vec<(String, Asked)> {
        self.abort_tasks();
        self.asked_keys.clear();
        self.effect_keys.clear();
        let asked = std::mem::take(&mut self.asked);
        asked
            .into_iter()
            .filter(|(at, ..)| *at == place)
            .map(|(_, key, asked)| (key, asked))
            .collect()
    }
}
