//! Queries of edges.
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use crate::model::Entity;

use super::super::order::{Order, Slot};
use super::super::{Node, Part, Program, ProgramError};
use super::channel::{ALIAS, How, LATE, READS, SURE, WRITE, WRITES};
use super::facts::Facts;
use super::names::Name;
use super::net::{Net, strongest};
use super::{Edge, EdgeKind, EdgeSource, Origin};

/// What the steps of a program may need of each other. See [`Program::edges`].
#[derive(Clone, Copy, Debug)]
pub struct Edges<'a> {
    program: &'a Program,
    net: &'a Net,
}

impl<'a> Edges<'a> {
    pub(in super::super) fn new(program: &'a Program, net: &'a Net) -> Self {
        Self { program, net }
    }

    /// The program of these edges.
    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    fn order(&self) -> &'a Order {
        &self.program.order
    }

    fn facts(&self, slot: Slot) -> Option<&'a Facts> {
        self.program.book.facts(slot)
    }

    /// The channels that a step uses with any of these flags.
    fn uses(&self, slot: Slot, ways: How) -> impl Iterator<Item = Name> {
        let own = self.program.book.own(slot).iter();
        let all = own.chain(self.net.derived(slot));
        all.filter(move |(_, how)| how & ways != 0).map(|(name, _)| *name)
    }

    /// Every edge along which a value may pass, by reader in program order.
    ///
    /// A step that may read every name has an edge with each step before it, one that may write
    /// every name with each step after it.
    pub fn iter(&self) -> impl Iterator<Item = Edge> + 'a {
        let edges = *self;
        self.order().slots().iter().flat_map(move |slot| edges.into_slot(*slot))
    }

    /// The edges that end at a step: what it may need.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn into(self, id: &str) -> Result<Vec<Edge>, ProgramError> {
        Ok(self.into_slot(self.program.slot(id)?))
    }

    /// The edges that begin at a step: the steps that may need it.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn of(&self, id: &str) -> Result<Vec<Edge>, ProgramError> {
        Ok(self.of_slot(self.program.slot(id)?))
    }

    /// The edges that begin at an input. None if there is no such input.
    #[must_use]
    pub fn of_input(&self, name: &str) -> Vec<Edge> {
        self.program.inputs.get(name).map(|slot| self.of_slot(*slot)).unwrap_or_default()
    }

    /// Every step that may depend on a step, directly or indirectly, in program order and without
    /// the step itself.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn from(&self, id: &str) -> Result<Vec<Arc<str>>, ProgramError> {
        Ok(self.forward(self.program.slot(id)?))
    }

    /// Every step that may depend on an input, directly or indirectly, in program order.
    #[must_use]
    pub fn after_input(&self, name: &str) -> Vec<Arc<str>> {
        self.program.inputs.get(name).map(|slot| self.forward(*slot)).unwrap_or_default()
    }

    /// Every step and input that a step may depend on, directly or indirectly, in program order and
    /// without the step itself. With `names`, only the dependencies for the values of these names
    /// at the step.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn ancestors(&self, id: &str, names: Option<&[&str]>) -> Result<Vec<Origin>, ProgramError> {
        let slot = self.program.slot(id)?;
        let found = match names {
            None => self.behind([slot]),
            Some(names) => {
                let net = self.net;
                let known = self.program.book.names();
                let names = names.iter().filter_map(|name| known.find(name));
                let channels = names.filter_map(|name| net.channel(name));
                let direct: BTreeSet<Slot> = channels
                    .flat_map(|channel| channel.reaching(self.order(), slot))
                    .map(|writer| writer.slot)
                    .chain(self.before(&net.writers_of_all, slot).iter().copied())
                    .collect();
                let mut found = self.behind(direct.iter().copied());
                found.extend(direct);
                found
            }
        };
        Ok(self.origins(found))
    }

    /// The steps of an artifact, in program order.
    ///
    /// # Errors
    /// [`ProgramError::UnknownArtifact`].
    pub fn artifact(&self, name: &str) -> Result<Vec<Arc<str>>, ProgramError> {
        let slots = self.artifact_slots(name)?;
        Ok(self.origins(slots).into_iter().filter_map(|origin| self.step_id(&origin)).collect())
    }

    /// The other artifacts that an artifact may depend on, directly or indirectly.
    ///
    /// # Errors
    /// [`ProgramError::UnknownArtifact`].
    pub fn artifact_needs(&self, name: &str) -> Result<Vec<Arc<str>>, ProgramError> {
        let own = self.artifact_slots(name)?;
        let needed: HashSet<Slot> = self.behind(own.iter().copied()).into_iter().collect();
        let mut needs = Vec::new();
        for other in self.program.artifacts.keys().filter(|other| &***other != name) {
            let slots = self.artifact_slots(other)?;
            if slots.iter().any(|slot| needed.contains(slot) && !own.contains(slot)) {
                needs.push(other.clone());
            }
        }
        Ok(needs)
    }

    /// The steps that must run before a step although no value passes: those before it that read or
    /// wrote what the step may bind, unbind or change.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn order_into(&self, id: &str) -> Result<Vec<Edge>, ProgramError> {
        let slot = self.program.slot(id)?;
        let Some(facts) = self.facts(slot) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (name, _) in facts.own.iter().filter(|(_, how)| how & WRITE != 0) {
            let Some(channel) = self.net.channel(*name) else { continue };
            let mut from = 0;
            let note = |other| self.note(other, EdgeKind::Order, Some(*name));
            for writer in channel.reaching(self.order(), slot) {
                from = self.order().label(writer.slot);
                found.push(note(writer.slot));
            }
            let readers = channel.readers_between(self.order(), from, slot);
            found.extend(readers.iter().map(|reader| note(reader.slot)));
        }
        Ok(self.made(found, |other| (other, slot)))
    }

    fn artifact_slots(&self, name: &str) -> Result<BTreeSet<Slot>, ProgramError> {
        let parts = self.program.artifacts.get(name);
        let parts = parts.ok_or_else(|| self.program.unknown_artifact(name))?;
        let mut slots = BTreeSet::new();
        for part in parts {
            match part {
                Part::Step(id) => slots.extend(self.program.steps.get(id)),
                Part::Symbol(name) => {
                    let known = self.program.book.names().find(name);
                    let channel = known.and_then(|name| self.net.channel(name));
                    slots.extend(
                        channel.into_iter().flat_map(|found| found.last()).map(|at| at.slot),
                    );
                }
            }
        }
        Ok(slots)
    }

    fn into_slot(self, slot: Slot) -> Vec<Edge> {
        let Some(facts) = self.facts(slot) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for name in self.uses(slot, READS) {
            let Some(channel) = self.net.channel(name) else { continue };
            let Some(kind) = channel.reader(self.order(), slot).map(strongest).map(kind) else {
                continue;
            };
            let writers = channel.reaching(self.order(), slot);
            found.extend(writers.map(|writer| self.note(writer.slot, kind, Some(name))));
        }
        let all = if facts.reads_all { self.order().slots() } else { &self.net.writers_of_all };
        let all = self.before(all, slot).iter();
        found.extend(all.map(|other| self.note(*other, EdgeKind::Flow, None)));
        self.made(found, |other| (other, slot))
    }

    fn of_slot(&self, slot: Slot) -> Vec<Edge> {
        let Some(facts) = self.facts(slot) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for name in self.uses(slot, WRITES) {
            let Some(channel) = self.net.channel(name) else { continue };
            let readers = channel.reached(self.order(), slot).0.iter();
            found.extend(readers.map(|at| self.note(at.slot, kind(strongest(*at)), Some(name))));
        }
        let all = if facts.writes_all { self.order().slots() } else { &self.net.readers_of_all };
        let all = self.after(all, slot).iter();
        found.extend(all.map(|other| self.note(*other, EdgeKind::Flow, None)));
        self.made(found, |other| (slot, other))
    }

    /// Walks forward, nearest first. Each section of a channel is visited once.
    fn forward(&self, start: Slot) -> Vec<Arc<str>> {
        let (net, order) = (self.net, self.order());
        let mut open = BinaryHeap::from([Reverse((order.label(start), start))]);
        let mut seen = HashSet::from([start]);
        let mut covered: HashMap<Name, u64> = HashMap::new();
        let mut all = false;
        let mut found = Vec::new();
        while let Some(Reverse((_, slot))) = open.pop() {
            let Some(facts) = self.facts(slot) else { continue };
            if slot != start {
                found.push(slot);
            }
            if all {
                continue;
            }
            let mut reach = |other: Slot| {
                if seen.insert(other) {
                    open.push(Reverse((order.label(other), other)));
                }
            };
            if facts.writes_all {
                all = true;
                self.after(order.slots(), slot).iter().copied().for_each(&mut reach);
                continue;
            }
            self.after(&net.readers_of_all, slot).iter().copied().for_each(&mut reach);
            for name in self.uses(slot, WRITES) {
                let Some(channel) = net.channel(name) else { continue };
                if covered.get(&name).is_some_and(|until| *until > order.label(slot)) {
                    continue;
                }
                let (readers, until) = channel.reached(order, slot);
                covered.insert(name, until);
                readers.iter().map(|reader| reader.slot).for_each(&mut reach);
            }
        }
        self.origins(found).into_iter().filter_map(|origin| self.step_id(&origin)).collect()
    }

    /// Walks backward, nearest first. Each section of a channel is visited once.
    fn behind(&self, starts: impl IntoIterator<Item = Slot>) -> BTreeSet<Slot> {
        let (net, order) = (self.net, self.order());
        let mut seen: HashSet<Slot> = starts.into_iter().collect();
        let mut open: BinaryHeap<(u64, Slot)> =
            seen.iter().map(|slot| (order.label(*slot), *slot)).collect();
        let mut found = BTreeSet::new();
        let mut covered: HashMap<Name, u64> = HashMap::new();
        let mut all = false;
        while let Some((label, slot)) = open.pop() {
            let Some(facts) = self.facts(slot) else { continue };
            let mut reach = |other: Slot| {
                found.insert(other);
                if seen.insert(other) {
                    open.push((order.label(other), other));
                }
            };
            if all {
                continue;
            }
            if facts.reads_all {
                all = true;
                self.before(order.slots(), slot).iter().copied().for_each(&mut reach);
                continue;
            }
            self.before(&net.writers_of_all, slot).iter().copied().for_each(&mut reach);
            for name in self.uses(slot, READS) {
                let Some(channel) = net.channel(name) else { continue };
                // All writers from there up to a later step are known already.
                if covered.get(&name).is_some_and(|from| *from < label) {
                    continue;
                }
                let mut from = 0;
                for writer in channel.reaching(order, slot) {
                    if writer.how & SURE != 0 {
                        from = order.label(writer.slot);
                    }
                    reach(writer.slot);
                }
                covered.insert(name, from);
            }
        }
        found
    }

    fn before<'s>(&self, sorted: &'s [Slot], slot: Slot) -> &'s [Slot] {
        let label = self.order().label(slot);
        &sorted[..sorted.partition_point(|other| self.order().label(*other) < label)]
    }

    fn after<'s>(&self, sorted: &'s [Slot], slot: Slot) -> &'s [Slot] {
        let label = self.order().label(slot);
        &sorted[sorted.partition_point(|other| self.order().label(*other) <= label)..]
    }

    fn note(&self, other: Slot, kind: EdgeKind, name: Option<Name>) -> Note {
        Note { label: self.order().label(other), other, kind, name }
    }

    /// The edges of one step, by the other end and by kind. `ends` decides which of the two is the
    /// producer.
    fn made(&self, mut notes: Vec<Note>, ends: impl Fn(Slot) -> (Slot, Slot)) -> Vec<Edge> {
        notes.sort_unstable();
        notes.dedup();
        let same = |left: &Note, right: &Note| (left.other, left.kind) == (right.other, right.kind);
        let mut edges = Vec::with_capacity(notes.len());
        for notes in notes.chunk_by(same) {
            let Some(Note { other, kind, .. }) = notes.first() else { continue };
            let (producer, reader) = ends(*other);
            let (Some(from), Some(Origin::Step(to))) = (self.origin(producer), self.origin(reader))
            else {
                continue;
            };
            let traced = |slot: Slot| self.facts(slot).is_some_and(|facts| facts.traced);
            let input = matches!(from, Origin::Input(_));
            let source = if (input || traced(producer)) && traced(reader) {
                EdgeSource::Traced
            } else {
                EdgeSource::Static
            };
            let names = self.program.book.names();
            let entity = |note: &Note| {
                note.name.map_or(Entity::Everything, |name| names.entity(name).clone())
            };
            let mut channels: Vec<Entity> = notes.iter().map(entity).collect();
            channels.sort_unstable();
            edges.push(Edge { producer: from, reader: to, channels, kind: *kind, source });
        }
        edges
    }

    fn origin(&self, slot: Slot) -> Option<Origin> {
        match self.program.nodes.get(slot.index())? {
            Node::Step(step) => Some(Origin::Step(step.id.clone())),
            Node::Input(input) => Some(Origin::Input(input.name.clone())),
            Node::Gone => None,
        }
    }

    fn origins(&self, slots: impl IntoIterator<Item = Slot>) -> Vec<Origin> {
        let mut slots: Vec<Slot> = slots.into_iter().collect();
        slots.sort_by_key(|slot| self.order().label(*slot));
        slots.into_iter().filter_map(|slot| self.origin(slot)).collect()
    }

    fn step_id(&self, origin: &Origin) -> Option<Arc<str>> {
        match origin {
            Origin::Step(id) => Some(id.clone()),
            Origin::Input(_) => None,
        }
    }
}

/// Why one step has an edge with another. Sorts by the other's position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    label: u64,
    other: Slot,
    kind: EdgeKind,
    name: Option<Name>,
}

fn kind(how: How) -> EdgeKind {
    match how {
        LATE => EdgeKind::LateBound,
        ALIAS => EdgeKind::Alias,
        _ => EdgeKind::Flow,
    }
}
