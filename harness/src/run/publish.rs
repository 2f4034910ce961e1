//! Publishes the events of a run.

use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::id::Seq;
use crate::observe::{Event, EventKind};
use crate::step::Place;

use super::core::RunCore;

impl RunCore {
    /// Publishes an event, if there are observers.
    pub(crate) fn publish(&self, place: Option<Place>, kind: impl FnOnce() -> EventKind) {
        if !self.is_silent() {
            self.publish_as(place, None, kind());
        }
    }

    /// Publishes an event of what was recorded last: once it is in the log, where there is one.
    pub(crate) fn publish_recorded(self: &Arc<Self>, place: Place, kind: EventKind) {
        match &self.journal {
            Some(journal) => {
                let core = Arc::clone(self);
                journal.notify(|bytes| {
                    Box::new(move |seq| core.publish_as(Some(place), Some((seq, bytes)), kind))
                });
            }
            None => self.publish_as(Some(place), None, kind),
        }
    }

    /// Publishes a part of a reply.
    pub(crate) fn publish_token(&self, place: Place, kind: EventKind) {
        let event = self.event(Some(place), None, kind);
        self.fanout.publish_token(event);
    }

    /// `stored` is the entry with its size in bytes.
    fn publish_as(&self, place: Option<Place>, stored: Option<(Seq, u64)>, kind: EventKind) {
        if let Some(spans) = &self.spans {
            let name = place.map(|at| &*self.wiring().nodes[at.step].name);
            spans.on(place, name, stored, &kind);
            if self.fanout.is_silent() {
                return;
            }
        }
        let event = self.event(place, stored, kind);
        self.fanout.publish(event);
    }

    fn event(
        &self,
        place: Option<Place>,
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
            attempt: at.attempt,
            seq: stored.map(|(seq, _)| seq),
            bytes: stored.map(|(_, bytes)| bytes),
            kind,
        }
    }
}
