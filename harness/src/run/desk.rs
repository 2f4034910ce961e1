use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::session::Memory;
use crate::step::{Asked, Place};

/// A desk that several threads work at, and what is at work there.
#[derive(Debug, Default)]
pub(super) struct Workplace {
    desk: Mutex<Desk>,
    effects_running: AtomicUsize,
    effect_ended: Notify,
}

impl Workplace {
    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn effect_begins(&self) {
        self.effects_running.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn effect_is_over(&self) {
        self.effects_running.fetch_sub(1, Ordering::SeqCst);
        self.effect_ended.notify_waiters();
    }

    pub(super) fn has_effects(&self) -> bool {
        self.effects_running.load(Ordering::SeqCst) > 0
    }

    /// Waits for effects in flight: they are never dropped half-way.
    pub(super) async fn effects_done(&self) {
        while self.has_effects() {
            let ended = self.effect_ended.notified();
            if !self.has_effects() {
                return;
            }
            ended.await;
        }
    }
}

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
