//! What names share after the step: names that hold the same object, and objects that its bodies
//! mutate when they run.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scan;
use super::flow::Flow;
use super::names::{Known, Name};
use super::state::global;
use super::value::{EMPTY, Origin, Reach, Tag, Val, number, origin, tag};

impl Flow<'_> {
    /// Fills in which names share objects, and what bodies mutate later.
    pub(super) fn share(&mut self, scan: &mut Scan) {
        let mut shared: Vec<(Name, Name)> = Vec::new();
        let mut holders: FxHashMap<Origin, Name> = FxHashMap::default();
        for name in self.frame.writes.list().to_vec() {
            let val = self.state.get(global(name)).val;
            for one in self.reachable(val) {
                let first = match tag(one) {
                    Tag::Incoming | Tag::Imported => number(one),
                    Tag::Site => *holders.entry(one).or_insert(name),
                    _ => continue,
                };
                if first != name {
                    shared.push((name, first));
                }
            }
        }
        shared.sort_unstable();
        let of_one = shared.chunk_by(|(a, _), (b, _)| a == b).filter_map(|all| {
            Some((all.first()?.0, self.names.set(all.iter().map(|(_, other)| *other))))
        });
        scan.aliases = self.names.map(of_one.collect());
        let mut later: Vec<Name> = Vec::new();
        for one in self.changed_later() {
            let name = match tag(one) {
                Tag::Incoming | Tag::Imported | Tag::Global => Some(number(one)),
                Tag::Site => holders.get(&one).copied(),
                _ => None,
            };
            if let Some(name) = name
                && self.names.known(name) == Known::No
            {
                later.push(name);
            }
        }
        scan.deferred_mutates = self.names.set(later.into_iter());
    }

    /// The objects that a value may be, hold or be a part of. A class counts by what it holds: its
    /// instances share that, but not its methods.
    fn reachable(&mut self, val: Val) -> Vec<Origin> {
        let mut open = self.values.list(val);
        let mut seen: FxHashSet<Origin> = FxHashSet::default();
        let mut found = Vec::new();
        while let Some(one) = open.pop() {
            let one = origin(tag(one), Reach::Is, number(one));
            if !seen.insert(one) || self.spent() {
                continue;
            }
            let mut held = match tag(one) {
                Tag::Body => self.kept(number(one)),
                _ => self.values.held(one),
            };
            if self.classes.contains_key(&number(one)) && tag(one) == Tag::Site {
                let parts = self.values.list(held);
                let data = parts.into_iter().filter(|part| tag(*part) != Tag::Body).collect();
                held = self.values.of(data);
            } else {
                found.push(one);
            }
            open.extend(self.values.list(held));
        }
        found
    }

    /// What a body keeps alive: its defaults and enclosing variables.
    fn kept(&mut self, scope: u32) -> Val {
        let Some(body) = self.bodies.get(scope as usize) else {
            return EMPTY;
        };
        let named = body.named();
        let mut kept: Vec<Val> =
            named.filter_map(|(symbol, ..)| self.defaults.get(&symbol).copied()).collect();
        if let Some(summary) = &body.summary {
            let cells = summary.frame.cells.list().iter();
            kept.extend(cells.filter_map(|cell| self.cells.get(cell).copied()));
        }
        let mut all = EMPTY;
        for val in kept {
            let val = self.resolve(val, &[]);
            all = self.union(all, val);
        }
        all
    }

    /// What the bodies that the step makes, including inner ones, mutate or pass on.
    fn changed_later(&mut self) -> Vec<Origin> {
        let mut open = self.frame.created.list().to_vec();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut found = Vec::new();
        while let Some(scope) = open.pop() {
            if !seen.insert(scope) || self.spent() {
                continue;
            }
            let summary = self.summary(scope);
            open.extend(summary.frame.created.list());
            for &one in summary.frame.mutates.iter().chain(&summary.frame.escapes) {
                if tag(one) == Tag::Global {
                    found.push(one);
                    continue;
                }
                let val = self.resolve(Val::of_origin(one), &[]);
                found.extend(
                    self.values
                        .list(val)
                        .into_iter()
                        .map(|one| origin(tag(one), Reach::Is, number(one))),
                );
            }
        }
        found
    }
}
