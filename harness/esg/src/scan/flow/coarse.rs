//! The coarse walk, used if tracking values takes too long.
//!
//! It tracks no values. A body counts as run once a name that may refer to it is loaded. Everything
//! the step loads counts as mutated and passed on, and everything it binds as the same object. The
//! walk takes time proportional to the source.

use rustc_hash::FxHashMap;

use super::Flow;
use crate::scan::Scan;
use crate::scan::marks::Marks;
use crate::scan::names::{Known, Name};
use crate::scan::parse::Stmt;
use crate::scan::scope::{LOADED, ScopeId, SymId, Target};
use crate::scan::state::{IN, global};
use crate::scan::value::{Tag, Val, tag_of};

/// The state of the coarse walk.
#[derive(Default)]
pub(in crate::scan) struct Coarse {
    /// Whether the coarse walk is active.
    pub(in crate::scan) on: bool,
    /// Globals that were surely bound before the running top-level statement.
    settled: Marks,
    /// Globals that were loaded, by the module or by bodies that ran.
    loaded: Marks,
    /// Globals that may be unbound again.
    unbound: Marks,
    /// Globals that were imported.
    imported: Marks,
    /// Globals bound to more than a body or a module.
    valued: Marks,
    /// The index in `bodies` of the last body that only this name refers to.
    held: FxHashMap<Name, usize>,
    /// Bodies that one name refers to, each with the index of the previous one.
    bodies: Vec<(ScopeId, Option<usize>)>,
    /// Bodies made by the running top-level statement, which no name refers to yet.
    fresh: Vec<ScopeId>,
}

impl Coarse {
    /// Removes the bodies that only this name referred to, in the order of their creation.
    fn let_go(&mut self, name: Name, to: &mut Vec<ScopeId>) {
        let from = to.len();
        let mut last = self.held.remove(&name);
        while let Some(&(scope, before)) = last.and_then(|last| self.bodies.get(last)) {
            to.push(scope);
            last = before;
        }
        to[from..].reverse();
    }
}

impl<'a> Flow<'a> {
    /// Walks the whole module.
    pub(in crate::scan) fn coarsely(&mut self, body: &'a [Stmt]) {
        self.coarse.on = true;
        self.values.none = true;
        for statement in body {
            if self.state.dead {
                return;
            }
            let mark = self.state.mark();
            self.statement(statement);
            self.free(0);
            for at in mark..self.state.mark() {
                if let Some(name) = self.state.touched(at)
                    && self.state.get(global(name)).bits & IN == 0
                {
                    self.coarse.settled.insert(name);
                }
            }
        }
    }

    /// Records that the module loads a name, and runs what it may refer to.
    pub(in crate::scan) fn loaded(&mut self, name: Name) {
        if self.frame.scope == 0 && self.coarse.loaded.insert(name) {
            let mut open = Vec::new();
            self.coarse.let_go(name, &mut open);
            self.release(open);
        }
    }

    /// Records a body that the module makes.
    pub(in crate::scan) fn made(&mut self, scope: ScopeId) {
        if self.coarse.on && self.frame.scope == 0 {
            self.coarse.fresh.push(scope);
        }
    }

    /// The number of bodies that no name refers to yet.
    pub(in crate::scan) fn mark_made(&self) -> usize {
        self.coarse.fresh.len()
    }

    /// Runs the bodies made since a mark: any code may hold them.
    pub(in crate::scan) fn free(&mut self, since: usize) {
        if self.frame.scope != 0 {
            return;
        }
        if since < self.coarse.fresh.len() {
            let free = self.coarse.fresh.split_off(since);
            self.release(free);
        }
    }

    /// Records that only this name refers to the bodies made since a mark.
    pub(in crate::scan) fn lead(&mut self, symbol: SymId, since: usize) {
        if !self.coarse.on || self.frame.scope != 0 {
            return;
        }
        let Target::Global(name) = self.scopes.symbol(symbol).target else {
            return;
        };
        if self.coarse.loaded.contains(name) {
            return self.free(since);
        }
        let Coarse { held, bodies, fresh, .. } = &mut self.coarse;
        for scope in fresh.drain(since.min(fresh.len())..) {
            let before = held.insert(name, bodies.len());
            bodies.push((scope, before));
        }
    }

    /// Records what a global is bound to.
    pub(in crate::scan) fn valued(&mut self, name: Name, val: Val) {
        match tag_of(val) {
            Some((Tag::Imported, _)) => {
                self.coarse.imported.insert(name);
            }
            Some((Tag::Body, scope)) if !self.has_defaults(scope) => {}
            _ => {
                self.coarse.valued.insert(name);
            }
        }
    }

    fn has_defaults(&self, scope: ScopeId) -> bool {
        self.bodies.get(scope as usize).is_some_and(|body| {
            body.named().any(|(symbol, ..)| self.defaults.contains_key(&symbol))
        })
    }

    /// Records that a global may be unbound.
    pub(in crate::scan) fn unbound(&mut self, name: Name) {
        self.coarse.unbound.insert(name);
    }

    /// Runs bodies and everything they lead to. A surely bound name stays so: a body reads all
    /// incoming names at its first run.
    fn release(&mut self, bodies: Vec<ScopeId>) {
        let mut open = bodies;
        while let Some(scope) = open.pop() {
            if !self.frame.executed.insert(scope) {
                continue;
            }
            let summary = self.summary(scope);
            let inner = &summary.frame;
            for &name in inner.reads.list() {
                if !self.coarse.settled.contains(name) {
                    self.frame.reads.insert(name);
                }
                if self.coarse.loaded.insert(name) {
                    self.coarse.let_go(name, &mut open);
                }
            }
            for (from, to) in [
                (&inner.builtins, &mut self.frame.builtins),
                (&inner.writes, &mut self.frame.writes),
                (&inner.deletes, &mut self.frame.deletes),
                (&inner.late, &mut self.frame.late),
                (&inner.created, &mut self.frame.created),
            ] {
                for &name in from.list() {
                    to.insert(name);
                }
            }
            open.extend(inner.created.list());
        }
    }

    /// Whether a global that seems bound may be unbound at the end of the step.
    pub(in crate::scan) fn may_be_unbound(&self, name: Name) -> bool {
        self.coarse.unbound.contains(name)
    }

    /// Assumes that everything loaded is mutated, and that everything bound is the same object.
    pub(in crate::scan) fn presume(&mut self, scan: &mut Scan) {
        self.changes_channels();
        let Coarse { loaded, unbound, imported, valued, .. } = std::mem::take(&mut self.coarse);
        let gone = loaded
            .list()
            .iter()
            .copied()
            .filter(|&name| unbound.contains(name) && self.names.known(name) == Known::Builtin);
        scan.builtin_reads.extend(gone.map(|name| self.names.text(name)));
        let modules = imported.list().iter().copied().filter(|&name| loaded.contains(name));
        let reads = self.frame.reads.list().iter().copied();
        let reads = reads.filter(|&name| self.names.known(name) == Known::No);
        let came: Vec<Name> = reads.chain(modules).collect();
        let bound = valued.list().iter().copied();
        let bound: Vec<Name> = bound.filter(|&name| self.frame.writes.contains(name)).collect();
        if let Some(&first) = bound.first() {
            // All are linked to one, and that one to everything incoming.
            let others = self.names.set(came.iter().copied().filter(|&name| name != first));
            let one = self.names.set(std::iter::once(first));
            let ties = bound.iter().map(|&name| {
                let others = if name == first { others.clone() } else { one.clone() };
                (name, others)
            });
            scan.aliases = self.names.map(ties.filter(|(_, others)| !others.is_empty()).collect());
        }
        let came = self.names.set(came.into_iter());
        let bodies = self.frame.created.list().iter();
        let mut later: Vec<Name> =
            bodies.flat_map(|&scope| self.scopes.globals(scope, LOADED)).collect();
        later.sort_unstable();
        later.dedup();
        later.retain(|&name| self.names.known(name) == Known::No);
        scan.deferred_mutates = self.names.set(later.into_iter());
        scan.mutates = came.clone();
        scan.escapes = came;
    }
}
