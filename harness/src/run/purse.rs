use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::llm::Spend;

/// What a run spends. It takes a pointer's room until something is.
#[derive(Debug, Default)]
pub(super) struct Purse {
    sums: OnceLock<Box<Mutex<Sums>>>,
    /// Whether anything was spent since the last entry was made.
    charged: AtomicBool,
}

#[derive(Debug, Default)]
struct Sums {
    /// In this turn.
    spent: Spend,
    /// Since the last entry was made.
    unrecorded: Spend,
}

fn lock(sums: &Mutex<Sums>) -> MutexGuard<'_, Sums> {
    sums.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Purse {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        lock(self.sums.get_or_init(Box::default))
    }

    /// What the turn has spent, if anything.
    pub(super) fn spent(&self) -> Option<Spend> {
        self.sums.get().map(|sums| lock(sums).spent)
    }

    /// Takes over what the turn has spent before.
    pub(super) fn begin(&self, spent: Option<&Spend>) {
        if spent.is_some() || self.sums.get().is_some() {
            self.sums().spent = spent.copied().unwrap_or_default();
        }
    }

    /// Adds to what was spent; `recorded` if the next entry of a log is to tell.
    pub(super) fn charge(&self, spend: &Spend, recorded: bool) {
        let mut sums = self.sums();
        sums.spent += *spend;
        if recorded {
            sums.unrecorded += *spend;
            self.charged.store(true, Ordering::Release);
        }
    }

    /// Gives out what no entry has told of, if that is anything.
    pub(super) fn unrecorded(&self) -> Option<Spend> {
        let charged = self.charged.swap(false, Ordering::AcqRel);
        charged.then(|| std::mem::take(&mut self.sums().unrecorded))
    }
}
