//! The attempts in flight, and what each has asked, begun and spawned.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::id::Position;
use crate::session::Timer;
use crate::step::{Asked, EffectScope, Place};

use super::stop::StopSignal;

/// The attempts in flight: one of a plain step, several of a step that has items.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// That of the step.
    step: StepSlot,
    /// Those of its items.
    items: BTreeMap<u32, StepSlot>,
    /// The last attempt that was begun at the step itself: its position and its number.
    last: (Position, u32),
    /// How many model calls each asker has made at the position at work.
    calls: BTreeMap<Option<u32>, u32>,
    /// The effects at work whose scope is the session.
    of_session: BTreeSet<String>,
}

/// One attempt.
#[derive(Debug, Default)]
struct StepSlot {
    /// The attempt in flight; `None` if there is none.
    place: Option<Place>,
    /// Polls the attempt again, if it waits.
    waker: Option<Waker>,
    /// When it is given up.
    due: Option<Instant>,
    /// Most attempts do nothing of it.
    work: Option<Box<Work>>,
}

/// What an attempt waits for, and what it has begun and spawned.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Questions that have no answer: another attempt is made once they have.
    pub(super) asked: Vec<(String, Asked)>,
    /// Timers that are not due, for which it waits as well.
    pub(super) timers: Vec<Timer>,
    /// The keys of children whose turns are not over, for which it waits as well.
    pub(super) children: Vec<String>,
    asked_keys: Vec<String>,
    effect_keys: Vec<String>,
    tasks: Vec<AbortHandle>,
    /// What stops the children that it has started.
    child_stops: Vec<StopSignal>,
    /// How many effects are running.
    effects: usize,
}

/// The slot of an attempt stays open: an effect of it is running.
pub(super) struct StaysOpen;

impl Slots {
    /// Opens the slot of an attempt.
    #[inline]
    pub(super) fn enter(&mut self, place: Place) {
        let slot = StepSlot { place: Some(place), ..StepSlot::default() };
        match place.item {
            None => {
                self.last = (place.position, place.attempt);
                self.step = slot;
            }
            Some(index) => self.enter_item(index, slot),
        }
    }

    fn enter_item(&mut self, index: u32, slot: StepSlot) {
        // Items count their attempts themselves.
        self.last = (Position(0), 0);
        self.items.insert(index, slot);
    }

    /// The number of the last attempt at a position, if one was begun there.
    pub(super) fn begun_at(&self, position: Position) -> Option<u32> {
        (self.last.0 == position).then_some(self.last.1)
    }

    /// What an attempt in flight does.
    pub(super) fn of(&mut self, place: Place) -> Option<&mut Work> {
        let slot = self.slot(place)?;
        Some(slot.work.get_or_insert_default())
    }

    /// Sets when an attempt in flight is given up.
    pub(super) fn set_due(&mut self, place: Place, due: Instant) {
        if let Some(slot) = self.slot(place) {
            slot.due = Some(due);
        }
    }

    /// When an attempt in flight is given up, if ever.
    pub(super) fn due(&mut self, place: Place) -> Option<Instant> {
        self.slot(place)?.due
    }

    fn slot(&mut self, place: Place) -> Option<&mut StepSlot> {
        let slot = match place.item {
            None => &mut self.step,
            Some(index) => self.items.get_mut(&index)?,
        };
        (slot.place == Some(place)).then_some(slot)
    }

    /// Whether an attempt in flight has asked something that has no answer.
    pub(super) fn has_asked(&mut self, place: Place) -> bool {
        self.begun(place).is_some_and(Work::has_asked)
    }

    /// Whether an attempt in flight waits for a timer or a child, and no effect of it is running.
    pub(super) fn sleeps(&mut self, place: Place) -> bool {
        let waits = |work: &Work| !work.timers.is_empty() || !work.children.is_empty();
        self.begun(place).is_some_and(|work| waits(work) && work.effects == 0)
    }

    /// Whether an effect of an attempt in flight is running.
    pub(super) fn has_effects_of(&mut self, place: Place) -> bool {
        self.begun(place).is_some_and(|work| work.effects > 0)
    }

    /// The same as [`of`](Self::of), if there is any of it.
    fn begun(&mut self, place: Place) -> Option<&Work> {
        self.slot(place)?.work.as_deref()
    }

    /// `waker` polls an attempt in flight again.
    pub(super) fn wait(&mut self, place: Place, waker: &Waker) {
        let Some(slot) = self.slot(place) else { return };
        match &mut slot.waker {
            Some(kept) => kept.clone_from(waker),
            kept => *kept = Some(waker.clone()),
        }
    }

    /// What polls an attempt in flight again, if it waits.
    pub(super) fn waker(&mut self, place: Place) -> Option<Waker> {
        self.slot(place)?.waker.take()
    }

    /// Whether any effect is running.
    pub(super) fn has_effects(&self) -> bool {
        let slots = std::iter::once(&self.step).chain(self.items.values());
        slots.filter_map(|slot| slot.work.as_ref()).any(|work| work.effects > 0)
    }

    /// Closes the slot of an attempt: aborts its tasks, and returns what it has begun and waits for,
    /// if anything.
    pub(super) fn close(&mut self, place: Place) -> Result<Option<Box<Work>>, StaysOpen> {
        let Some(slot) = self.slot(place) else { return Ok(None) };
        if slot.work.as_ref().is_some_and(|work| work.effects > 0) {
            return Err(StaysOpen);
        }
        let mut work = slot.work.take();
        (slot.place, slot.waker) = (None, None);
        if let Some(index) = place.item {
            self.items.remove(&index);
        }
        work.iter_mut().for_each(|work| work.abort_tasks());
        Ok(work)
    }

    /// What polls the attempts in flight that wait.
    pub(super) fn wakers(&mut self) -> Vec<Waker> {
        self.all().filter_map(|slot| slot.waker.take()).collect()
    }

    /// Aborts the tasks of all attempts.
    pub(super) fn abort_tasks(&mut self) {
        self.all().filter_map(|slot| slot.work.as_deref_mut()).for_each(Work::abort_tasks);
    }

    /// What stops the children of all attempts in flight, or of one.
    pub(super) fn children(&mut self, place: Option<Place>) -> Vec<StopSignal> {
        let here = |slot: &&mut StepSlot| place.is_none() || slot.place == place;
        let works = self.all().filter(here).filter_map(|slot| slot.work.as_deref());
        works.flat_map(|work| work.child_stops.iter().cloned()).collect()
    }

    fn all(&mut self) -> impl Iterator<Item = &mut StepSlot> {
        std::iter::once(&mut self.step).chain(self.items.values_mut())
    }

    /// The number of the next model call of the asker at its position, from 1.
    pub(super) fn next_call(&mut self, item: Option<u32>) -> u32 {
        let calls = self.calls.entry(item).or_default();
        *calls += 1;
        *calls
    }

    /// Whether an effect whose scope is the session is at work.
    pub(super) fn is_at_work(&self, scope: EffectScope, key: &str) -> bool {
        scope == EffectScope::Session && self.of_session.contains(key)
    }

    /// An effect begins in an attempt in flight.
    pub(super) fn begin_effect(&mut self, place: Place, scope: EffectScope, key: &str) {
        if let Some(slot) = self.of(place) {
            slot.effects += 1;
        }
        if scope == EffectScope::Session {
            self.of_session.insert(key.to_owned());
        }
    }

    /// An effect is over.
    pub(super) fn end_effect(&mut self, place: Place, scope: EffectScope, key: &str) {
        if let Some(slot) = self.of(place) {
            slot.effects = slot.effects.saturating_sub(1);
        }
        if scope == EffectScope::Session {
            self.of_session.remove(key);
        }
    }

    /// What belongs to the position ends with it.
    pub(super) fn leave(&mut self) {
        if !self.calls.is_empty() {
            self.calls.clear();
        }
    }
}

impl Work {
    /// Whether the attempt has asked something that has no answer.
    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    fn abort_tasks(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
    }

    /// Uses a key for a question; false if this attempt has used it before.
    pub(super) fn use_ask_key(&mut self, key: &str) -> bool {
        use_key(&mut self.asked_keys, key)
    }

    /// Uses a key for an effect; false if this attempt has used it before.
    pub(super) fn use_effect_key(&mut self, key: String) -> bool {
        use_key(&mut self.effect_keys, &key)
    }

    pub(super) fn adopt(&mut self, task: AbortHandle) {
        self.tasks.push(task);
    }

    pub(super) fn adopt_child(&mut self, stop: StopSignal) {
        self.child_stops.push(stop);
    }
}

fn use_key(keys: &mut Vec<String>, key: &str) -> bool {
    let fresh = !keys.iter().any(|used| used == key);
    if fresh {
        keys.push(key.to_owned());
    }
    fresh
}
