use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::step::{Answer, EffectScope, Interrupt};

/// What a step must not do or ask again: the results of its effects and the answers it got.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Effects of the position at work.
    pub(crate) effects: HashMap<String, Value>,
    /// Effects whose scope is the session.
    pub(crate) session_effects: HashMap<String, Value>,
    /// Effects of the position at work that were about to happen, and have no result.
    pub(crate) intents: HashSet<String>,
    /// The same of effects whose scope is the session.
    pub(crate) session_intents: HashSet<String>,
    /// Answers to inline questions of the position at work, each with the question it answers.
    pub(crate) answers: HashMap<String, (Interrupt, Answer)>,
    /// Inline questions of the position at work that nobody answered in time.
    pub(crate) expired: HashMap<String, Interrupt>,
    /// Model completions of the position at work.
    pub(crate) calls: u32,
}

impl Memory {
    /// Forgets what belongs to a position that is left.
    pub(crate) fn leave(&mut self) {
        // Clearing an empty map touches its memory; nearly every step leaves it empty.
        if !self.effects.is_empty() {
            self.effects.clear();
        }
        if !self.intents.is_empty() {
            self.intents.clear();
        }
        if !self.answers.is_empty() {
            self.answers.clear();
        }
        if !self.expired.is_empty() {
            self.expired.clear();
        }
        self.calls = 0;
    }

    /// What is known of the effects of a scope: results, and intents without one.
    pub(crate) fn effects_of(
        &mut self,
        scope: EffectScope,
    ) -> (&mut HashMap<String, Value>, &mut HashSet<String>) {
        match scope {
            EffectScope::Position => (&mut self.effects, &mut self.intents),
            EffectScope::Session => (&mut self.session_effects, &mut self.session_intents),
        }
    }

    /// Adds what was recorded after this was taken.
    pub(crate) fn extend(&mut self, late: Memory) {
        self.effects.extend(late.effects);
        self.session_effects.extend(late.session_effects);
        self.intents.extend(late.intents);
        self.session_intents.extend(late.session_intents);
        self.answers.extend(late.answers);
        self.expired.extend(late.expired);
        self.calls = self.calls.max(late.calls);
    }

    /// Whether anything here ends with the position at work.
    pub(crate) fn holds_position(&self) -> bool {
        !self.effects.is_empty()
            || !self.intents.is_empty()
            || !self.answers.is_empty()
            || !self.expired.is_empty()
            || self.calls > 0
    }

    /// Takes out what belongs to the position at work.
    pub(crate) fn split_position(&mut self) -> Memory {
        let session_effects = std::mem::take(&mut self.session_effects);
        let session_intents = std::mem::take(&mut self.session_intents);
        let left = Memory { session_effects, session_intents, ..Memory::default() };
        std::mem::replace(self, left)
    }
}
