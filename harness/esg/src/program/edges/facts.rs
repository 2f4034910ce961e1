//! The effects of one step on channels, as numbers.
use crate::model::Entity;
use crate::scan::Scan;

use super::Observed;
use super::channel::{AFAR, ALIAS, BODY, CHANGE, How, LATE, READ, SURE, WRITE};
use super::names::{Name, Names};

/// The effects of one step by itself, independent of other steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Facts {
    /// How it uses channels.
    pub(super) own: Vec<(Name, How)>,
    /// The names it binds to something with a body, sorted.
    pub(super) bodies: Vec<Body>,
    /// What these bodies may bind or change.
    pub(super) late_writes: Vec<(Name, How)>,
    /// Names it binds, with names that they may share objects with.
    pub(super) links: Vec<(Name, Name)>,
    /// It may read every name.
    pub(super) reads_all: bool,
    /// It may write every name.
    pub(super) writes_all: bool,
    /// Whether it ran.
    pub(super) traced: bool,
}

/// A name whose value may run later, and what it loads then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) name: Name,
    pub(super) loads: Vec<Name>,
}

impl Facts {
    pub(super) fn of(names: &mut Names, scan: &Scan, observed: Option<&Observed>) -> Self {
        let mut facts = Self::default();
        match observed {
            Some(observed) => facts.observe(names, scan, observed),
            None => facts.expect(names, scan),
        }
        facts.body(names, scan);
        facts
    }

    /// The effects of the input `name`.
    pub(super) fn input(names: &mut Names, name: &str) -> Self {
        Self { own: vec![(names.of_name(name), WRITE | SURE)], ..Self::default() }
    }

    pub(super) fn body_of(&self, name: Name) -> Option<&Body> {
        let at = self.bodies.binary_search_by_key(&name, |body| body.name).ok()?;
        self.bodies.get(at)
    }

    fn observe(&mut self, names: &mut Names, scan: &Scan, observed: &Observed) {
        self.traced = true;
        let dark = scan.opaque || !scan.star_imports.is_empty();
        // What its own code does not name, the functions it called loaded.
        let late = |name: &str| {
            let named = [
                &scan.reads,
                &scan.builtin_reads,
                &scan.mutates,
                &scan.escapes,
                &scan.deletes,
                &scan.writes,
            ];
            !dark && named.iter().all(|names| !names.contains(name))
        };
        for read in &observed.reads {
            let how = if read.as_name().is_some_and(late) { LATE } else { READ };
            match read {
                Entity::Everything => self.reads_all = true,
                read => self.own.push((names.of_entity(read), how)),
            }
        }
        let altered = observed.altered.iter();
        self.own.extend(altered.map(|altered| (names.of_entity(altered), ALIAS)));
        // The recorded writes are complete: no earlier value remains.
        let wrote = observed.wrote.iter();
        self.own.extend(wrote.map(|wrote| (names.of_entity(wrote), WRITE | SURE)));
    }

    fn expect(&mut self, names: &mut Names, scan: &Scan) {
        self.reads_all = scan.opaque || !scan.star_imports.is_empty();
        self.writes_all = self.reads_all;
        let many = scan.reads.len() + scan.builtin_reads.len() + scan.writes.len();
        self.own.reserve_exact(many + scan.deletes.len());
        for read in &scan.reads {
            let changes = scan.mutates.contains(read) || scan.escapes.contains(read);
            let how = if changes { READ | WRITE | CHANGE } else { READ };
            self.own.push((names.of_name(read), how));
        }
        let escaped = scan.escapes.iter().filter(|name| !scan.mutates.contains(name));
        let changed = scan.mutates.iter().chain(escaped);
        let mut changed: Vec<&str> = changed.filter(|name| !scan.reads.contains(name)).collect();
        changed.sort_unstable();
        for changed in changed {
            self.own.push((names.of_name(changed), READ | WRITE | CHANGE));
        }
        self.own.extend(scan.builtin_reads.iter().map(|read| (names.of_name(read), READ)));
        for write in &scan.writes {
            let sure = scan.sure_writes.contains(write);
            let how = if sure { WRITE | SURE } else { WRITE };
            self.own.push((names.of_name(write), how));
        }
        self.own.extend(scan.deletes.iter().map(|gone| (names.of_name(gone), WRITE)));
        for (bound, shared) in scan.aliases.iter() {
            let bound = names.of_name(bound);
            self.links.extend(shared.iter().map(|shared| (bound, names.of_name(shared))));
        }
    }

    fn body(&mut self, names: &mut Names, scan: &Scan) {
        let none = scan.summaries.is_empty()
            && scan.deferred_reads.is_empty()
            && scan.deferred_writes.is_empty()
            && scan.rebinds.is_empty()
            && scan.deferred_mutates.is_empty();
        if none {
            return;
        }
        for (name, loads) in scan.summaries.iter() {
            let loads = loads.iter().map(|load| names.of_name(load)).collect();
            self.bodies.push(Body { name: names.of_name(name), loads });
        }
        let named = |load: &str| scan.summaries.values().any(|loads| loads.contains(load));
        let unnamed: Vec<&str> = scan.deferred_reads.iter().filter(|load| !named(load)).collect();
        // A lambda or a generator: any other name bound here may hold it.
        if !unnamed.is_empty() || scan.summaries.is_empty() {
            let loads: Vec<Name> = unnamed.iter().map(|load| names.of_name(load)).collect();
            let others = scan.writes.iter().filter(|name| !scan.summaries.contains_key(name));
            for name in others {
                self.bodies.push(Body { name: names.of_name(name), loads: loads.clone() });
            }
        }
        self.bodies.sort_unstable_by_key(|body| body.name);
        self.own.extend(self.bodies.iter().map(|body| (body.name, WRITE | BODY)));
        let bound = scan.deferred_writes.iter().chain(&scan.rebinds);
        let bound = bound.map(|name| (names.of_name(name), AFAR));
        self.late_writes = bound.collect();
        let changed = scan.deferred_mutates.iter();
        self.late_writes.extend(changed.map(|name| (names.of_name(name), ALIAS | AFAR)));
    }
}
