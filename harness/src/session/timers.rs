//! The timers of a position: when each is due, and which of them an attempt waits for.

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;

/// A point in time at which a step continues. It is recorded once: neither a crash nor a new attempt
/// starts it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timer {
    /// Its key; none for the `.after(..)` of a step.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When it is due, by the clock of the process that runs the session.
    pub due: UtcMillis,
}

impl Timer {
    pub(crate) fn new(key: Option<String>, due: UtcMillis) -> Self {
        Self { key, due }
    }
}

/// A step, or an item of it, waits for timers or children: for these, and for no earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimerWait {
    /// The attempt that waits, from 1; 0 if none was made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n: u32,
    /// The item that waits, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The timers.
    pub timers: Vec<Timer>,
    /// The keys of the children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What is known of the timers of a step, or of an item of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Timers(Vec<KnownTimer>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownTimer {
    #[serde(flatten)]
    timer: Timer,
    /// The last attempt waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    waits: bool,
}

impl Timers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When a timer that was started is due.
    pub(crate) fn due(&self, key: Option<&str>) -> Option<UtcMillis> {
        let found = self.0.iter().find(|known| known.timer.key.as_deref() == key);
        found.map(|known| known.timer.due)
    }

    /// The timers that the last attempt waits for.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Timer> {
        self.0.iter().filter(|known| known.waits).map(|known| &known.timer)
    }

    /// When the first of those is due.
    pub(crate) fn first_due(&self) -> Option<UtcMillis> {
        self.waiting().map(|timer| timer.due).min()
    }

    /// The last attempt waits for these.
    pub(super) fn wait(&mut self, timers: &[Timer]) {
        self.wait_for_none();
        for timer in timers {
            let known = self.0.iter_mut().find(|known| known.timer.key == timer.key);
            match known {
                Some(known) => known.waits = true,
                None => self.0.push(KnownTimer { timer: timer.clone(), waits: true }),
            }
        }
    }

    /// No attempt waits for any of them.
    pub(super) fn wait_for_none(&mut self) {
        self.0.iter_mut().for_each(|known| known.waits = false);
    }
}
