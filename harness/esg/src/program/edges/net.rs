//! The index of readers and writers by channel, updated as steps change.
//!
//! Edges are not stored: a name that many steps may bind has edges from each of them to each of its
//! readers, which is quadratic. They are computed from the index, which is linear.
use super::super::order::{Order, Slot};
use super::book::Book;
use super::channel::{
    AFAR, ALIAS, BODY, CHANGE, Channel, DERIVED, How, LATE, READ, READS, SURE, Use, WRITE, WRITES,
};
use super::facts::{Body, Facts};
use super::names::Name;

/// The readers and writers of each channel.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Net {
    /// By name.
    channels: Vec<Channel>,
    /// By slot: the uses of a step that follow from other steps.
    derived: Vec<Vec<(Name, How)>>,
    /// The steps that may read every name, in order.
    pub(super) readers_of_all: Vec<Slot>,
    /// The steps that may write every name, in order.
    pub(super) writers_of_all: Vec<Slot>,
    /// By name: names whose objects it may share, and the step that caused it.
    links: std::collections::HashMap<Name, Vec<(Name, Slot)>>,
    /// Steps whose derived facts may have changed.
    dirty: Vec<Slot>,
    seen: Seen,
}

/// A set of names with a cheap clear.
#[derive(Clone, Debug, Default)]
struct Seen {
    round: u32,
    rounds: Vec<u32>,
}

impl Seen {
    fn clear(&mut self, names: usize) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.rounds.clear();
            self.round = 1;
        }
        if self.rounds.len() < names {
            self.rounds.resize(names, 0);
        }
    }

    /// Whether it was new.
    fn add(&mut self, name: Name) -> bool {
        let Some(round) = self.rounds.get_mut(name.index()) else {
            return false;
        };
        std::mem::replace(round, self.round) != self.round
    }
}

/// The effect of a step's binding on steps that run what the name holds.
#[derive(PartialEq)]
struct Binding {
    name: Name,
    sure: bool,
    loads: Option<Vec<Name>>,
}

impl Binding {
    /// Whether these, sorted by name, have the same one.
    fn is_in(&self, others: &[Self]) -> bool {
        let at = others.binary_search_by_key(&self.name, |other| other.name);
        at.is_ok_and(|at| others[at] == *self)
    }
}

/// The effects of a removed step that others may depend on.
#[derive(Default)]
pub(in super::super) struct Left {
    /// Sorted by name.
    bindings: Vec<Binding>,
    late_writes: Vec<(Name, How)>,
    links: Vec<(Name, Name)>,
}

impl Net {
    /// The index of a whole program.
    pub(in super::super) fn of(order: &Order, book: &Book) -> Self {
        let mut room = vec![(0, 0); book.names().len()];
        for (name, how) in order.slots().iter().flat_map(|slot| book.own(*slot)) {
            let (readers, writers) = &mut room[name.index()];
            *readers += usize::from(how & READS != 0);
            *writers += usize::from(how & WRITES != 0);
        }
        let channels = room.into_iter().map(|(readers, writers)| Channel::new(readers, writers));
        let mut net = Self { channels: channels.collect(), ..Self::default() };
        for slot in order.slots() {
            // A step does not affect the uses of steps before it.
            net.place(order, book, *slot);
            net.derive(order, book, *slot);
        }
        net
    }

    /// A channel's uses.
    pub(super) fn channel(&self, name: Name) -> Option<&Channel> {
        self.channels.get(name.index())
    }

    /// The uses of a step that follow from other steps.
    pub(super) fn derived(&self, slot: Slot) -> &[(Name, How)] {
        self.derived.get(slot.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Removes a step, which must still have its label and facts.
    pub(in super::super) fn leave(&mut self, order: &Order, book: &Book, slot: Slot) -> Left {
        let Some(facts) = book.facts(slot) else { return Left::default() };
        let (late_writes, links) = (facts.late_writes.clone(), facts.links.clone());
        let left = Left { bindings: self.bindings(book, slot), late_writes, links };
        self.displace(order, facts, slot);
        left
    }

    /// Updates other steps after a step was removed for good.
    pub(in super::super) fn gone(&mut self, order: &Order, slot: Slot, left: Left) {
        let names: Vec<Name> = left.bindings.iter().map(|binding| binding.name).collect();
        self.mark(order, slot, &names);
        self.mark_linked(left.links.into_iter());
    }

    /// Adds a step. [`settle`](Net::settle) updates the steps affected by the difference from the
    /// one that was removed.
    pub(in super::super) fn enter(&mut self, order: &Order, book: &Book, slot: Slot, left: Left) {
        self.place(order, book, slot);
        let now = self.bindings(book, slot);
        let late = book.facts(slot).map(|facts| facts.late_writes.as_slice()).unwrap_or_default();
        // They run with every body of the step.
        let other = late != left.late_writes;
        let differs =
            |one: &&Binding, others: &[Binding]| other && one.loads.is_some() || !one.is_in(others);
        let gone = left.bindings.iter().filter(|old| differs(old, &now));
        let come = now.iter().filter(|new| differs(new, &left.bindings));
        let names: Vec<Name> = gone.chain(come).map(|binding| binding.name).collect();
        self.mark(order, slot, &names);
        let links = book.facts(slot).map(|facts| facts.links.as_slice()).unwrap_or_default();
        if links != left.links {
            self.mark_linked(links.iter().copied().chain(left.links));
        }
        self.dirty.push(slot);
    }

    /// Updates what follows from the changes since the last call.
    pub(in super::super) fn settle(&mut self, order: &Order, book: &Book) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for slot in dirty {
            self.derive(order, book, slot);
        }
    }

    fn place(&mut self, order: &Order, book: &Book, slot: Slot) {
        let Some(facts) = book.facts(slot) else { return };
        let channels = book.names().len().max(self.channels.len());
        self.channels.resize_with(channels, Channel::default);
        for (name, how) in &facts.own {
            self.channels[name.index()].add(order, slot, *how);
        }
        for (bound, shared) in &facts.links {
            self.links.entry(*bound).or_default().push((*shared, slot));
            self.links.entry(*shared).or_default().push((*bound, slot));
        }
        for (all, list) in [
            (facts.reads_all, &mut self.readers_of_all),
            (facts.writes_all, &mut self.writers_of_all),
        ] {
            if all {
                let at = list.partition_point(|other| order.label(*other) < order.label(slot));
                list.insert(at, slot);
            }
        }
    }

    fn displace(&mut self, order: &Order, facts: &Facts, slot: Slot) {
        let derived = self.derived.get_mut(slot.index()).map(std::mem::take).unwrap_or_default();
        for (name, how) in facts.own.iter().chain(&derived) {
            self.channels[name.index()].take(order, slot, *how);
        }
        for name in facts.links.iter().flat_map(|(bound, shared)| [bound, shared]) {
            if let Some(links) = self.links.get_mut(name) {
                links.retain(|(_, by)| *by != slot);
            }
        }
        self.readers_of_all.retain(|other| *other != slot);
        self.writers_of_all.retain(|other| *other != slot);
    }

    /// How a step binds the names that some step binds to a body, sorted by name.
    fn bindings(&self, book: &Book, slot: Slot) -> Vec<Binding> {
        let Some(facts) = book.facts(slot) else { return Vec::new() };
        let written = facts
            .own
            .iter()
            .filter(|(name, how)| how & WRITE != 0 && self.channels[name.index()].bodies > 0);
        let mut names: Vec<(Name, bool)> =
            written.map(|(name, how)| (*name, how & SURE != 0)).collect();
        names.sort_unstable();
        names.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 |= same && next.1;
            same
        });
        let binding = |(name, sure)| {
            let loads = facts.body_of(name).map(|body| body.loads.clone());
            Binding { name, sure, loads }
        };
        names.into_iter().map(binding).collect()
    }

    /// Marks the steps that the step's values of these names may reach.
    fn mark(&mut self, order: &Order, slot: Slot, names: &[Name]) {
        for name in names {
            let (readers, _) = self.channels[name.index()].reached(order, slot);
            self.dirty.extend(readers.iter().map(|reader| reader.slot));
        }
    }

    /// Marks the steps that change anything linked to these names.
    fn mark_linked(&mut self, links: impl Iterator<Item = (Name, Name)>) {
        self.seen.clear(self.channels.len());
        let mut open: Vec<Name> = links.flat_map(|(bound, shared)| [bound, shared]).collect();
        open.retain(|name| self.seen.add(*name));
        while let Some(name) = open.pop() {
            let writers = self.channels[name.index()].writers();
            let changing = writers.iter().filter(|writer| writer.how & (CHANGE | AFAR) != 0);
            self.dirty.extend(changing.map(|writer| writer.slot));
            for (other, _) in self.links.get(&name).into_iter().flatten() {
                if self.seen.add(*other) {
                    open.push(*other);
                }
            }
        }
    }

    fn derive(&mut self, order: &Order, book: &Book, slot: Slot) {
        let Some(facts) = book.facts(slot) else { return };
        let mut derived =
            self.derived.get_mut(slot.index()).map(std::mem::take).unwrap_or_default();
        for (name, how) in derived.drain(..) {
            self.channels[name.index()].take(order, slot, how);
        }
        // The recorded effects are complete.
        if !facts.traced {
            self.close(order, book, slot, facts, &mut derived);
            self.spread(order, slot, facts, &mut derived);
        }
        for (name, how) in &derived {
            self.channels[name.index()].add(order, slot, *how & DERIVED);
        }
        if derived.is_empty() {
            return;
        }
        if self.derived.len() <= slot.index() {
            self.derived.resize_with(slot.index() + 1, Vec::new);
        }
        self.derived[slot.index()] = derived;
    }

    /// What the bodies that the step may run load and write: those bound to the names it loads, to
    /// the names these load, and so on.
    fn close(
        &mut self,
        order: &Order,
        book: &Book,
        slot: Slot,
        facts: &Facts,
        derived: &mut Vec<(Name, How)>,
    ) {
        let Facts { own, late_writes: own_late, .. } = facts;
        let runs = |name: Name| self.channels[name.index()].bodies > 0;
        let direct = own.iter().filter(|(name, how)| how & READ != 0 && runs(*name));
        // With each name: whether the step itself may have bound it before.
        let mut open: Vec<(Name, bool)> = direct.map(|(name, _)| (*name, false)).collect();
        if open.is_empty() {
            return;
        }
        self.seen.clear(self.channels.len());
        for (name, _) in &open {
            self.seen.add(*name);
        }
        let mut own_seen: Vec<Name> = Vec::new();
        let mut bodies: Vec<(&Body, &[(Name, How)])> = Vec::new();
        while let Some((name, late)) = open.pop() {
            let writers = self.channels[name.index()].reaching(order, slot);
            bodies.extend(writers.filter(|writer| writer.how & BODY != 0).filter_map(|writer| {
                let by = book.facts(writer.slot)?;
                Some((by.body_of(name)?, by.late_writes.as_slice()))
            }));
            if late && !own_seen.contains(&name) {
                own_seen.push(name);
                let own = facts.body_of(name);
                bodies.extend(own.map(|body| (body, own_late.as_slice())));
            }
            for (body, late_writes) in bodies.drain(..) {
                derived.extend(late_writes);
                for load in &body.loads {
                    if self.seen.add(*load) {
                        derived.push((*load, LATE));
                        open.push((*load, true));
                    } else if facts.body_of(*load).is_some() && !own_seen.contains(load) {
                        open.push((*load, true));
                    }
                }
            }
        }
    }

    /// The names that share an object with what the step changes.
    fn spread(&mut self, order: &Order, slot: Slot, facts: &Facts, derived: &mut Vec<(Name, How)>) {
        if self.links.is_empty() {
            return;
        }
        let changed = facts.own.iter().chain(&*derived);
        let changed = changed.filter(|(_, how)| how & (CHANGE | AFAR) != 0);
        let mut open: Vec<Name> = changed.map(|(name, _)| *name).collect();
        self.seen.clear(self.channels.len());
        open.retain(|name| self.seen.add(*name));
        let label = order.label(slot);
        while let Some(name) = open.pop() {
            for (other, by) in self.links.get(&name).into_iter().flatten() {
                if order.label(*by) <= label && self.seen.add(*other) {
                    derived.push((*other, ALIAS | AFAR));
                    open.push(*other);
                }
            }
        }
    }
}

/// Why a reader needs a writer.
pub(super) fn strongest(reader: Use) -> How {
    [READ, LATE, ALIAS].into_iter().find(|how| reader.how & how != 0).unwrap_or(READ)
}
