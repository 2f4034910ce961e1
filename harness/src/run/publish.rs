//! Publishes the events of a run.

use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::id::Seq;
use crate::observe::{Event, EventKind};
use crate::step::Place;

use super::core::RunCore;

/// Where an event happened, and the key of the item.
type At = (Option<Place>, Option<Arc<str>>);

impl RunCore {
    /// Publishes an event, if there are observers.
    pub(crate) fn publish(&self, place: Option<Place>, kind: impl FnOnce() -> EventKind) {
        if !self.is_silent() {
            self.publish_as((place, self.key_at(place)), None, kind());
        }
    }

    fn key_at(&self, place: Option<Place>) -> Option<Arc<str>> {
        self.item_keys.at(place?)
    }

    /// Publishes an event of what was recorded last: once it is in the log, where there is one.
    pub(crate) fn publish_recorded(self: &Arc<Self>, place: Place, kind: EventKind) {
        let at = (Some(place), self.key_at(Some(place)));
        match &self.journal {
            Some(journal) => {
                let core = Arc::clone(self);
                journal.notify(|bytes| {
                    Box::new(move |seq| core.publish_as(at, Some((seq, bytes)), kind))
                });
            }
            None => self.publish_as(at, None, kind),
        }
    }

    /// Publishes a part of a reply.
    pub(crate) fn publish_token(&self, place: Place, kind: EventKind) {
        let at = (Some(place), self.key_at(Some(place)));
        let event = self.event(at, None, kind);
        self.fanout.publish_token(event);
    }

    /// `at` is where it happened, with the key of the item; `stored` the entry with its size in bytes.
    fn publish_as(&self, at: At, stored: Option<(Seq, u64)>, kind: EventKind) {
        if let Some(spans) = &self.spans {
            let name = at.0.map(|at| &*self.wiring().nodes[at.step].name);
            spans.on((at.0, at.1.as_deref()), name, stored, &kind);
            if self.fanout.is_silent() {
                return;
            }
        }
        let event = self.event(at, stored, kind);
        self.fanout.publish(event);
    }

    fn event(
        &self,
        (place, item_key): At,
        stored: Option<(Seq, u64)>,
        kind: EventKind,
    ) -> impl FnOnce(u64) -> Event {
        let at = place.unwrap_or_default();
        let step = place.map(|at| self.wiring().name_of(at.step));
        move |number| Event {
            number,
            at: UtcMillis::now(),
            agent: self.ids.agent.clone(),
            session: self.ids.session.clone(),
            run: self.ids.run.clone(),
            parent: self.ids.parent.clone(),
            parent_step: self.parent.as_ref().map(|parent| Arc::clone(parent.step())),
            step,
            position: at.position,
            item: at.item,
            item_key,
            attempt: at.attempt,
            seq: stored.map(|(seq, _)| seq),
            bytes: stored.map(|(_, bytes)| bytes),
            kind,
        }
    }
}
