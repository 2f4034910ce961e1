//! What the suite needs and cannot do through the trait of stores.

use std::process::Command;
use std::time::Duration;

use crate::id::SessionId;

use super::{Boxed, Store};
use crate::testing::stop::{Kept, Stop};

/// What is done to the stored bytes of a session, as by a bad disk, a crash or a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Damage {
    /// A bit of an entry that was acknowledged becomes another.
    Flip,
    /// The last batch is cut in its middle, as a crash leaves it that comes while it is written.
    CutTail,
    /// What is stored says that a newer version has written it. Only this session: the store itself
    /// still opens.
    NewerFormat,
}

type Hook<I, O> = Box<dyn Fn(I) -> Boxed<O> + Send + Sync>;

pub(super) struct Hooks {
    pub(super) open: Box<dyn Fn() -> Boxed<Store> + Send + Sync>,
    pub(super) advance: Option<Hook<Duration, ()>>,
    pub(super) damage: Option<Box<dyn Fn(SessionId, Damage) -> Boxed<bool> + Send + Sync>>,
    pub(super) stored: Option<Hook<SessionId, Vec<u8>>>,
    pub(super) child: Option<Box<dyn Fn(&SessionId) -> Command + Send + Sync>>,
    pub(super) max_batch: Option<u64>,
}

impl Hooks {
    pub(super) fn new(open: impl Fn() -> Boxed<Store> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            advance: None,
            damage: None,
            stored: None,
            child: None,
            max_batch: None,
        }
    }

    /// Skips the clause unless the session was damaged.
    pub(super) async fn damage(&self, id: &SessionId, how: Damage) -> Kept {
        let Some(damage) = &self.damage else {
            return Err(missing("how to damage a session", "damage"));
        };
        if damage(id.clone(), how).await {
            return Ok(());
        }
        Err(Stop::Skipped(format!("this store cannot be damaged so: {how:?}")))
    }

    pub(super) async fn stored(&self, id: &SessionId) -> Kept<Vec<u8>> {
        match &self.stored {
            Some(stored) => Ok(stored(id.clone()).await),
            None => Err(missing("what is stored of a session", "stored")),
        }
    }

    pub(super) fn child(&self, id: &SessionId) -> Kept<Command> {
        match &self.child {
            Some(child) => Ok(child(id)),
            None => Err(missing("how to start another process", "child")),
        }
    }
}

fn missing(what: &str, hook: &str) -> Stop {
    Stop::Skipped(format!("the suite does not know {what} (`Contract::{hook}`)"))
}
