//! Turns a worker's reply into an execution with its trace.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Execution, Trace, execution::Read};
use crate::exec::{Ran, Wrote};
use crate::model::{Entity, Fingerprint};
use crate::state::{Looked, Made, Past, State};

/// The context of one execution.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    pub(crate) seq: u64,
    pub(crate) run: u64,
    pub(crate) step: &'a Arc<str>,
    pub(crate) syntax: Fingerprint,
    pub(crate) source: &'a Arc<str>,
    pub(crate) executor: &'a Arc<str>,
    pub(crate) started: std::time::SystemTime,
    /// The state it ran on.
    pub(crate) before: &'a State,
    /// The entities it could read. They count as its reads if the worker died and cannot report
    /// them.
    pub(crate) shown: &'a BTreeSet<Entity>,
    /// The execution that stands, if it only makes the values of that one again.
    pub(crate) stands: Option<&'a Execution>,
}

impl Looked for Ran {
    fn outside(&self, entity: &Entity) -> Option<String> {
        self.external.get(entity).cloned().flatten()
    }
}

impl Recorder<'_> {
    /// The execution. `made` holds its units, already stored.
    pub(crate) fn record(&self, mut ran: Ran, made: Vec<Made>) -> Execution {
        let reads = if ran.lost { self.shown } else { &ran.reads };
        let mut tied = self.tied(&ran, &made);
        let again = self.again(&ran, &made);
        tied.extend(
            again
                .iter()
                .map(|(entity, _)| entity)
                .filter(|one| !ran.wrote.contains_key(*one))
                .cloned(),
        );
        let reads = reads.iter().chain(ran.external.keys());
        let mut trace = Trace {
            reads: reads.map(|entity| (entity.clone(), self.read(entity, &ran))).collect(),
            ..Trace::default()
        };
        for entity in tied.iter().flat_map(|entity| self.before.group(entity)) {
            if !trace.reads.contains_key(&entity) {
                let read = self.read(&entity, &ran);
                trace.altered.insert(entity, read);
            }
        }
        let joint = self.before.joint(trace.known(), &ran);
        trace.unserializable = joint
            .visited
            .iter()
            .filter_map(|entity| self.before.slot(entity))
            .filter(|slot| slot.made.unit.unserializable.is_some())
            .map(|slot| slot.key().clone())
            .collect();
        trace.joint = Some(joint.fingerprint);
        let stands = self.stands.filter(|_| ran.untracked.is_empty());
        trace.mark = stands.and_then(|it| it.trace.mark()).filter(|it| *it != joint.fingerprint);
        trace.visited = joint.visited;
        trace.tied = tied;
        let files = ran.wrote.keys().filter(|entity| matches!(entity, Entity::File(_)));
        let unseen = files.filter(|entity| !trace.reads.contains_key(*entity));
        trace.over = unseen.map(|entity| (entity.clone(), self.before.file_kind(entity))).collect();
        if ran.ending.is_ok() {
            trace.wrote = std::mem::take(&mut ran.wrote);
            trace.order = std::mem::take(&mut ran.order);
            trace.again = again;
            let mark = trace.mark().unwrap_or(joint.fingerprint);
            trace.units = made.into_iter().map(|made| Arc::new(self.marked(made, mark))).collect();
        }
        trace.shown = std::mem::take(&mut ran.shown);
        trace.untracked = std::mem::take(&mut ran.untracked);
        trace.readings = std::mem::take(&mut ran.readings);
        trace.clock = ran.clock;
        if ran.ending.is_ok() && !trace.altered.is_empty() && trace.only_binds() {
            trace.inputs = Some(self.before.joint(trace.reads.keys(), &ran));
        }
        let Past { ran: past, residue } = self.before.past();
        (trace.past, trace.residue) = (past, residue);
        Execution {
            seq: self.seq,
            run: self.run,
            step: self.step.clone(),
            syntax: self.syntax,
            source: self.source.clone(),
            executor: self.executor.clone(),
            started: self.started,
            wall: ran.wall,
            host: std::time::Duration::ZERO,
            ending: ran.ending,
            stdout: ran.stdout,
            stderr: ran.stderr,
            trace,
        }
    }

    fn read(&self, entity: &Entity, ran: &Ran) -> Read {
        Read {
            fingerprint: self.before.joint([entity], ran).fingerprint,
            by: self.before.by(entity).cloned(),
            outside: ran.outside(entity),
        }
    }

    /// Entities that existed before and are in a unit that the step altered.
    fn tied(&self, ran: &Ran, made: &[Made]) -> BTreeSet<Entity> {
        made.iter()
            .flat_map(|made| &made.unit.members)
            .map(|member| &member.entity)
            .filter(|entity| self.before.slot(entity).is_some())
            .filter(|entity| ran.wrote.get(*entity) != Some(&Wrote::Bound))
            .cloned()
            .collect()
    }

    /// Entities that the step bound to the object they were already bound to. Nothing changed, so
    /// the worker has no unit for them; but without the step they would still have to exist.
    fn again(&self, ran: &Ran, made: &[Made]) -> Vec<(Entity, Arc<Made>)> {
        let units = made.iter().flat_map(|made| &made.unit.members);
        let given: BTreeSet<_> = units.map(|member| &member.entity).collect();
        let bound =
            ran.wrote.iter().filter(|(_, wrote)| **wrote == Wrote::Bound).map(|(entity, _)| entity);
        let same = bound.filter(|entity| !given.contains(*entity));
        let with: BTreeSet<_> = same.flat_map(|entity| self.before.group(entity)).collect();
        with.into_iter()
            .filter(|entity| !given.contains(entity))
            .filter_map(|entity| {
                self.before.slot(&entity).map(|slot| (entity.clone(), slot.made.clone()))
            })
            .collect()
    }

    /// Replaces a fingerprint that does not depend on the content by one of the run that made it.
    fn marked(&self, mut made: Made, mark: Fingerprint) -> Made {
        for member in &mut made.unit.members {
            if member.opaque {
                let entity = member.entity.to_string();
                let entity =
                    if matches!(member.entity, Entity::Token(_)) { "t" } else { entity.as_str() };
                member.own = Fingerprint::of(&[
                    b"opaque",
                    entity.as_bytes(),
                    member.own.bytes(),
                    self.syntax.bytes(),
                    mark.bytes(),
                ]);
            }
        }
        made
    }
}
