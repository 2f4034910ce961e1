//! From what the worker said to an execution with its trace.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Execution, Trace, execution::Read};
use crate::exec::{Ran, Wrote};
use crate::model::{Entity, Print};
use crate::state::{Looked, Made, State};

/// What an execution was of.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    pub(crate) seq: u64,
    pub(crate) run: u64,
    pub(crate) step: &'a Arc<str>,
    pub(crate) syntax: Print,
    pub(crate) source: &'a Arc<str>,
    pub(crate) executor: &'a Arc<str>,
    pub(crate) started: std::time::SystemTime,
    /// The state that it ran on.
    pub(crate) before: &'a State,
    /// What it could look at: its reads, where the worker is gone and can not tell.
    pub(crate) shown: &'a BTreeSet<Entity>,
}

impl Looked for Ran {
    fn outside(&self, entity: &Entity) -> Option<String> {
        self.external.get(entity).cloned().flatten()
    }
}

impl Recorder<'_> {
    /// The execution. Its units come in `made`, stored already.
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
        let mut trace = Trace {
            reads: reads.iter().map(|entity| (entity.clone(), self.read(entity, &ran))).collect(),
            ..Trace::default()
        };
        for entity in tied.iter().flat_map(|entity| self.before.group(entity)) {
            if !trace.reads.contains_key(&entity) {
                let read = self.read(&entity, &ran);
                trace.altered.insert(entity, read);
            }
        }
        let joint = self.before.joint(trace.known(), &ran);
        trace.holes = joint
            .visited
            .iter()
            .filter_map(|entity| self.before.slot(entity))
            .filter(|slot| slot.made.unit.hole.is_some())
            .map(|slot| slot.key().clone())
            .collect();
        trace.joint = Some(joint.print);
        trace.visited = joint.visited;
        trace.tied = tied;
        let files = ran.wrote.keys().filter(|entity| matches!(entity, Entity::File(_)));
        let unseen = files.filter(|entity| !trace.reads.contains_key(*entity));
        trace.over = unseen.map(|entity| (entity.clone(), self.before.file_kind(entity))).collect();
        if ran.ending.is_ok() {
            trace.wrote = std::mem::take(&mut ran.wrote);
            trace.again = again;
            trace.units =
                made.into_iter().map(|made| Arc::new(self.marked(made, joint.print))).collect();
        }
        trace.untracked = std::mem::take(&mut ran.untracked);
        trace.readings = std::mem::take(&mut ran.readings);
        trace.clock = ran.clock;
        Execution {
            seq: self.seq,
            run: self.run,
            step: self.step.clone(),
            syntax: self.syntax,
            source: self.source.clone(),
            executor: self.executor.clone(),
            started: self.started,
            wall: ran.wall,
            ending: ran.ending,
            stdout: ran.stdout,
            stderr: ran.stderr,
            trace,
        }
    }

    fn read(&self, entity: &Entity, ran: &Ran) -> Read {
        Read {
            print: self.before.joint([entity], ran).print,
            by: self.before.by(entity).cloned(),
            outside: ran.outside(entity),
        }
    }

    /// What was there before, and is in a unit that the step altered.
    fn tied(&self, ran: &Ran, made: &[Made]) -> BTreeSet<Entity> {
        made.iter()
            .flat_map(|made| &made.unit.members)
            .map(|member| &member.entity)
            .filter(|entity| self.before.slot(entity).is_some())
            .filter(|entity| ran.wrote.get(*entity) != Some(&Wrote::Bound))
            .cloned()
            .collect()
    }

    /// What the step bound to the very object that it was bound to. The worker has no unit for it, as
    /// nothing changed; without the step it would have to be there all the same.
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

    /// A print that says nothing of the content becomes one of the run that made it.
    fn marked(&self, mut made: Made, joint: Print) -> Made {
        for member in &mut made.unit.members {
            if member.opaque {
                let entity = member.entity.to_string();
                let entity =
                    if matches!(member.entity, Entity::Token(_)) { "t" } else { entity.as_str() };
                member.own = Print::of(&[
                    b"opaque",
                    entity.as_bytes(),
                    member.own.bytes(),
                    self.syntax.bytes(),
                    joint.bytes(),
                ]);
            }
        }
        made
    }
}
