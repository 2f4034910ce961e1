//! Sessions and changes with their steps named another way: by index while a loop runs, by name in
//! its log.

use std::sync::Arc;

use crate::graph::Wiring;

use super::change::{Adopted, Change, Committed, Diverted, Entry, Finishing, RunStarted};
use super::{Cursor, Parked, Session, Snapshot, StepRef};

/// Names the steps of a session as its log does.
pub(crate) trait Names<P: StepRef> {
    /// The name of a step.
    fn name(&self, step: &P) -> Arc<str>;

    /// The entry as the log stores it.
    fn entry(&self, entry: Entry<P>) -> Entry;
}

impl Names<usize> for Wiring {
    fn name(&self, step: &usize) -> Arc<str> {
        self.name_of(*step)
    }

    fn entry(&self, entry: Entry<usize>) -> Entry {
        entry.map_step(&|step| self.name_of(*step))
    }
}

/// The names of a session that has them already.
pub(crate) struct AsNamed;

impl Names<Arc<str>> for AsNamed {
    fn name(&self, step: &Arc<str>) -> Arc<str> {
        Arc::clone(step)
    }

    fn entry(&self, entry: Entry) -> Entry {
        entry
    }
}

#[allow(private_bounds, reason = "the method is private, too")]
impl<P: StepRef> Entry<P> {
    pub(super) fn map_step<Q: StepRef>(self, name: &impl Fn(&P) -> Q) -> Entry<Q> {
        let Self { at, spent, change } = self;
        Entry { at, spent, change: change.map_step(name) }
    }
}

#[allow(private_bounds, reason = "the method is private, too")]
impl<P: StepRef> Change<P> {
    fn map_step<Q: StepRef>(self, name: &impl Fn(&P) -> Q) -> Change<Q> {
        match self {
            Self::Opened(opened) => Change::Opened(opened),
            Self::Adopted(adopted) => {
                let Adopted { graph, schema, state, renamed } = *adopted;
                let renamed = renamed.iter().map(|(old, new)| (name(old), name(new))).collect();
                Change::Adopted(Box::new(Adopted { graph, schema, state, renamed }))
            }
            Self::RunStarted(started) => {
                let RunStarted { run, start, ops, input, input_digest, inbox, trace } = *started;
                let start = start.as_ref().map(name);
                Change::RunStarted(Box::new(RunStarted {
                    run,
                    start,
                    ops,
                    input,
                    input_digest,
                    inbox,
                    trace,
                }))
            }
            Self::Recovered(recovered) => Change::Recovered(recovered),
            Self::Attempt(attempt) => Change::Attempt(attempt),
            Self::Intent(intent) => Change::Intent(intent),
            Self::NotDone(intent) => Change::NotDone(intent),
            Self::Effect(effect) => Change::Effect(effect),
            Self::Asked(asked) => Change::Asked(asked),
            Self::Resolved(resolved) => Change::Resolved(resolved),
            Self::Timer(wait) => Change::Timer(wait),
            Self::Child(at) => Change::Child(at),
            Self::ChildDone(done) => Change::ChildDone(done),
            Self::Planned(planned) => Change::Planned(planned),
            Self::Item(item) => Change::Item(item),
            Self::Committed(Committed { next, ops }) => {
                Change::Committed(Committed { next: next.as_ref().map(name), ops })
            }
            Self::Diverted(diverted) => {
                let Diverted { failure, next } = *diverted;
                Change::Diverted(Box::new(Diverted { failure, next: name(&next) }))
            }
            Self::Finishing(finishing) => {
                let Finishing { end, next, active_ms } = *finishing;
                Change::Finishing(Box::new(Finishing { end, next: name(&next), active_ms }))
            }
            Self::Settled(settled) => Change::Settled(settled),
            Self::Edited(edited) => Change::Edited(edited),
            Self::Snapshot(snapshot) => {
                let Snapshot { session, state } = *snapshot;
                Change::Snapshot(Box::new(Snapshot { session: session.map_step(name), state }))
            }
            Self::Reserved(reserved) => Change::Reserved(reserved),
        }
    }
}

impl Session<usize> {
    /// The session as the log has it.
    pub(crate) fn named(&self, wiring: &Wiring) -> Session {
        self.clone().map_step(&|step| wiring.name_of(*step))
    }
}

impl Session {
    /// The session as a run of this loop has it. `None` if it stands at a step that the loop does
    /// not have. A turn that ended stands nowhere: the next begins at the start.
    pub(crate) fn indexed(self, wiring: &Wiring) -> Option<Session<usize>> {
        let stands =
            |cursor: &Cursor| !cursor.is_entered() || wiring.index_of(&cursor.step).is_some();
        let parked = self.parked.as_ref().map(|parked| &parked.cursor);
        let ended = self.phase == crate::store::Phase::Ended;
        if !ended && ![Some(&self.cursor), parked].into_iter().flatten().all(stands) {
            return None;
        }
        Some(self.map_step(&|step| wiring.index_of(step).unwrap_or(wiring.start)))
    }
}

impl<P: StepRef> Session<P> {
    fn map_step<Q: StepRef>(self, name: &impl Fn(&P) -> Q) -> Session<Q> {
        let Self { format, agent, salt, graph, schema, from, phase, cursor, interrupts, .. } = self;
        let Self {
            effects, timers, session_effects, items, parked, turn, run, input, spent, ..
        } = self;
        let Self { input_digest, total, active_ms, settled, recovered, inbox, trace, .. } = self;
        let Self { parent, notified, .. } = self;
        Session {
            format,
            agent,
            salt,
            graph,
            schema,
            from,
            parent,
            notified,
            phase,
            cursor: cursor.map_step(name),
            interrupts,
            effects,
            timers,
            session_effects,
            items,
            parked: parked.map(|parked| {
                let Parked { cursor, interrupts, effects, timers, items } = *parked;
                let cursor = cursor.map_step(name);
                Box::new(Parked { cursor, interrupts, effects, timers, items })
            }),
            turn,
            run,
            input,
            input_digest,
            spent,
            total,
            active_ms,
            settled,
            recovered,
            inbox,
            trace,
        }
    }
}

impl<P: StepRef> Cursor<P> {
    fn map_step<Q: StepRef>(self, name: &impl Fn(&P) -> Q) -> Cursor<Q> {
        let Self { step, position, last, attempt, retries, steps, visits, failure, finishing } =
            self;
        let entered = position.0 > 0;
        Cursor {
            step: if entered { name(&step) } else { Q::default() },
            position,
            last,
            attempt,
            retries,
            steps,
            visits: visits.iter().map(|(step, count)| (name(step), count)).collect(),
            failure,
            finishing,
        }
    }
}

impl Wiring {
    /// The name of a step.
    pub(crate) fn name_of(&self, step: usize) -> Arc<str> {
        Arc::clone(&self.nodes[step].name)
    }

    /// The step of this name, now or before.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| {
            *node.name == *name || node.aliases.iter().any(|alias| **alias == *name)
        })
    }
}
