//! Bodies: the effects of running one on its caller.
//!
//! A body is walked once, without knowing its surroundings. Its summary is applied wherever it
//! runs. A body counts as run once it is loaded again, passed, decorated or called.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::effects::{Code, Frame, Summary};
use super::flow::Flow;
use super::scope::{ScopeId, SymId};
use super::state::{BOUND, IN, Path, Slot, UNBOUND, as_global, either, global};
use super::value::{EMPTY, Reach, Tag, Val, number, origin, reach, tag};

/// How deep calls of calls are followed for their results.
const DEPTH: usize = 48;

impl<'a> Flow<'a> {
    fn now(&self) -> u64 {
        self.state.version + self.version + u64::from(self.values.stores)
    }

    /// Runs every body that `val` may be or hold.
    pub(super) fn run(&mut self, val: Val) {
        if val == EMPTY || self.state.dead || self.coarse.on {
            return;
        }
        let mut open = self.values.list(val);
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        while let Some(one) = open.pop() {
            if tag(one) == Tag::Body {
                if !self.visited.contains(number(one)) {
                    self.pending.push(number(one));
                }
                continue;
            }
            let held = self.values.held(one);
            if held != EMPTY && seen.insert(one) {
                open.extend(self.values.list(held));
            }
        }
        if self.draining || self.pending.is_empty() {
            return;
        }
        self.draining = true;
        while let Some(scope) = self.pending.pop() {
            if self.spent() {
                self.pending.clear();
                break;
            }
            if !self.visited.insert(scope) {
                continue;
            }
            let now = self.now();
            if self.bodies.get(scope as usize).is_none_or(|body| body.ran == now) {
                continue;
            }
            self.execute(scope);
            let now = self.now();
            if let Some(body) = self.bodies.get_mut(scope as usize) {
                body.ran = now;
            }
        }
        self.visited.clear();
        self.draining = false;
    }

    /// Runs a body whose arguments are unknown except for what it was given so far.
    fn execute(&mut self, scope: ScopeId) {
        let summary = self.summary(scope);
        self.apply(scope, &summary, &[], false);
        // Functions that it returns ran too: they are loaded to be called.
        let answers = self.values.list(summary.frame.answers.0);
        for one in answers.into_iter().filter(|one| tag(*one) != Tag::Result) {
            let val = self.resolve_one(one, &[]);
            self.run(val);
        }
    }

    /// The effects of a body for any caller.
    pub(super) fn summary(&mut self, scope: ScopeId) -> Rc<Summary> {
        let Some(body) = self.bodies.get_mut(scope as usize) else {
            return Rc::default();
        };
        if let Some(known) = &body.summary {
            return Rc::clone(known);
        }
        // A recursive body adds nothing to itself.
        body.summary = Some(Rc::default());
        let Some(code) = body.code.clone() else {
            return Rc::default();
        };
        let parameters = body.symbols();
        let aside = self.state.aside();
        let frame = Frame { scope, mark: self.state.mark(), ..Frame::default() };
        let frame = std::mem::replace(&mut self.frame, frame);
        let loops = std::mem::take(&mut self.loops);
        let classes = std::mem::take(&mut self.class_here);
        let pending = std::mem::take(&mut self.pending);
        let visited = std::mem::take(&mut self.visited);
        let draining = std::mem::take(&mut self.draining);
        for symbol in parameters {
            self.store(symbol, Val::one(Tag::Param, symbol));
        }
        self.walk(scope, &code);
        self.leave();
        let paths = std::mem::take(&mut self.frame.returns);
        self.state.dead = false;
        let mark = self.frame.mark;
        self.state.take(mark);
        let path = self.state.joined(&paths, &mut self.values);
        let exit = exits(&path);
        let inner = std::mem::replace(&mut self.frame, frame);
        self.loops = loops;
        self.class_here = classes;
        self.pending = pending;
        self.visited = visited;
        self.draining = draining;
        self.state.back(aside);
        let summary = Rc::new(Summary { frame: inner, exit });
        if let Some(body) = self.bodies.get_mut(scope as usize) {
            body.summary = Some(Rc::clone(&summary));
        }
        summary
    }

    fn walk(&mut self, scope: ScopeId, code: &Code<'a>) {
        match code {
            Code::Function(node) => self.body(&node.body),
            Code::Lambda(node) => {
                let val = self.eval(&node.body);
                self.answer(val);
            }
            Code::Generator(node) => {
                let first = self.scopes.symbols_of(scope).first().copied();
                let elements = first.map_or(EMPTY, |symbol| Val::one(Tag::Param, symbol));
                let mark = self.state.mark();
                self.clauses(&node.generators, elements);
                let val = self.eval(&node.elt);
                self.answer(val);
                let path = self.state.take(mark);
                self.state.join(&[path, Path::default()], &mut self.values);
            }
            Code::Lazy(values) => {
                for value in values {
                    self.eval(value);
                }
            }
        }
    }

    /// Applies the effects of a body. `definite` means that it runs to its end.
    pub(super) fn apply(
        &mut self,
        scope: ScopeId,
        summary: &Summary,
        args: &[(SymId, Val)],
        definite: bool,
    ) {
        let inner = &summary.frame;
        if self.spent() {
            return;
        }
        let stores = inner.stores.len() + inner.mutates.len() + inner.escapes.len();
        self.charge(inner.created.list().len() + inner.executed.list().len() + stores);
        self.charge(inner.reads.list().len() + inner.writes.list().len() + summary.exit.len());
        self.frame.executed.insert(scope);
        for &made in inner.created.list() {
            self.frame.created.insert(made);
        }
        for &ran in inner.executed.list() {
            self.frame.executed.insert(ran);
        }
        for &name in inner.reads.list() {
            self.state.watched.insert(name);
            self.load_global(name, true);
            // A body may catch a failing load, or not reach it.
            self.state.dead = false;
        }
        for &name in inner.builtins.list() {
            self.frame.builtins.insert(name);
        }
        for &name in inner.late.list() {
            self.frame.late.insert(name);
        }
        for &cell in inner.cells.list() {
            if self.is_here(cell) {
                let held = self.resolve(Val::one(Tag::Cell, cell), args);
                self.run(held);
            } else {
                self.frame.cells.insert(cell);
            }
        }
        for &one in &inner.mutates {
            let val = self.resolve_one(one, args);
            self.mutate(val);
        }
        for &one in &inner.escapes {
            let val = self.resolve_one(one, args);
            self.escape(val);
        }
        for &(target, val) in &inner.stores {
            let target = self.resolve(target, args);
            let val = self.resolve(val, args);
            self.put(target, val);
        }
        for &name in inner.writes.list() {
            self.frame.writes.insert(name);
        }
        for &name in inner.deletes.list() {
            self.frame.deletes.insert(name);
        }
        for &(name, slot) in &summary.exit {
            let val = self.resolve(slot.val, args);
            let after = Slot { val, bits: slot.bits };
            let before = self.state.get(global(name));
            let slot = if definite && slot.bits & IN == 0 {
                after
            } else {
                let after = Slot { val, bits: slot.bits & (BOUND | UNBOUND) };
                either(before, after, &mut self.values)
            };
            if slot != before {
                self.state.set(global(name), slot);
            }
        }
    }

    /// What a body returns.
    pub(super) fn answers(&mut self, scope: ScopeId, args: &[(SymId, Val)]) -> Val {
        let summary = self.summary(scope);
        self.resolve(summary.frame.answers.0, args)
    }

    /// Records the value of a parameter.
    pub(super) fn give(&mut self, symbol: SymId, val: Val) {
        if val == EMPTY || self.coarse.on {
            return;
        }
        let before = self.given.get(&symbol).copied().unwrap_or(EMPTY);
        let after = self.union(before, val);
        if after != before {
            self.given.insert(symbol, after);
            let owner = self.scopes.symbol(symbol).scope as usize;
            if let Some(body) = self.bodies.get_mut(owner) {
                body.ran = 0;
            }
        }
    }

    /// A value of another body, in terms of this frame.
    pub(super) fn resolve(&mut self, val: Val, args: &[(SymId, Val)]) -> Val {
        let mut all = EMPTY;
        for one in self.values.list(val) {
            let one = self.resolve_one(one, args);
            all = self.union(all, one);
        }
        all
    }

    fn resolve_one(&mut self, one: u32, args: &[(SymId, Val)]) -> Val {
        let id = number(one);
        let seen = match tag(one) {
            Tag::Param => {
                if let Some((_, val)) = args.iter().find(|(symbol, _)| *symbol == id) {
                    *val
                } else if self.scopes.symbol(id).scope == self.frame.scope && self.frame.scope != 0
                {
                    Val::one(Tag::Param, id)
                } else {
                    let given = self.given.get(&id).copied().unwrap_or(EMPTY);
                    self.deeper(one, given, args)
                }
            }
            Tag::Global => {
                if self.names.known(id) == super::names::Known::Implicit {
                    EMPTY
                } else {
                    self.peek_global(id)
                }
            }
            Tag::Result => self.result_of(id),
            Tag::Cell if self.is_here(id) => {
                let held = self.cells.get(&id).copied().unwrap_or(EMPTY);
                self.deeper(one, held, args)
            }
            _ => return self.values.of(vec![one]),
        };
        self.values.through(seen, reach(one))
    }

    /// Resolves what a variable was found to hold.
    fn deeper(&mut self, one: u32, val: Val, args: &[(SymId, Val)]) -> Val {
        let plain = origin(tag(one), Reach::Is, number(one));
        if self.resolving.contains(&plain) {
            // What a variable holds through itself is not new, unless it is a part of that.
            self.lost |= matches!(reach(one), Reach::Part | Reach::Deep);
            return EMPTY;
        }
        if self.nested >= DEPTH || self.spent() {
            self.lost = true;
            return EMPTY;
        }
        self.nested += 1;
        self.resolving.push(plain);
        let val = self.resolve(val, args);
        self.resolving.pop();
        self.nested -= 1;
        val
    }

    /// What the function that a global holds returns.
    fn result_of(&mut self, name: u32) -> Val {
        let callee = self.peek_global(name);
        let mut all = EMPTY;
        // Each is queried once per query.
        if self.asked.contains(&name) {
            return all;
        }
        if self.nested >= DEPTH || self.spent() {
            self.lost = true;
            return all;
        }
        self.nested += 1;
        let first = self.asked.is_empty();
        self.asked.push(name);
        for one in self.values.list(callee) {
            let val = match tag(one) {
                Tag::Body => self.answers(number(one), &[]),
                Tag::Global => Val::one(Tag::Result, number(one)),
                _ => EMPTY,
            };
            all = self.union(all, val);
        }
        self.nested -= 1;
        if first {
            self.asked.clear();
        }
        all
    }

    /// Changes in place what `val` may be.
    pub(super) fn mutate(&mut self, val: Val) {
        if self.coarse.on || self.spent() {
            return;
        }
        for one in self.values.list(val) {
            if reach(one) == Reach::Holds {
                continue;
            }
            let plain = origin(tag(one), Reach::Is, number(one));
            match tag(one) {
                Tag::Incoming | Tag::Imported => {
                    self.frame.mutates.insert(plain);
                }
                Tag::Site | Tag::Body => {}
                Tag::Param | Tag::Cell | Tag::Global | Tag::Result => {
                    let seen = self.resolve_one(one, &[]);
                    self.lost |= self.nested >= DEPTH;
                    if self.lost || self.values.list(seen).contains(&one) {
                        self.frame.mutates.insert(one);
                    } else {
                        self.nested += 1;
                        self.mutate(seen);
                        self.nested -= 1;
                    }
                }
            }
        }
    }

    /// Passes `val` to an unknown callable.
    pub(super) fn escape(&mut self, val: Val) {
        if self.coarse.on || self.spent() {
            return;
        }
        let mut open = self.values.list(val);
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        while let Some(one) = open.pop() {
            if !seen.insert(one) {
                continue;
            }
            let plain = origin(tag(one), Reach::Is, number(one));
            match tag(one) {
                Tag::Incoming | Tag::Imported => {
                    self.frame.escapes.insert(plain);
                }
                Tag::Site => {
                    let held = self.values.held(one);
                    open.extend(self.values.list(held));
                }
                Tag::Body => {}
                Tag::Param | Tag::Cell | Tag::Global | Tag::Result => {
                    let resolved = self.resolve_one(plain, &[]);
                    let resolved = self.values.list(resolved);
                    if resolved.contains(&plain) {
                        self.frame.escapes.insert(plain);
                    }
                    open.extend(resolved);
                }
            }
        }
    }

    /// Puts `val` into the objects that `target` may be.
    pub(super) fn put(&mut self, target: Val, val: Val) {
        if val == EMPTY || self.state.dead || self.coarse.on || self.spent() {
            return;
        }
        self.charge(self.frame.stores.len());
        let targets = self.values.list(target);
        if targets.is_empty() {
            // It is stored in an unknown object.
            return self.run(val);
        }
        if targets
            .iter()
            .any(|one| matches!(tag(*one), Tag::Param | Tag::Cell | Tag::Global | Tag::Result))
            && !self.frame.stores.contains(&(target, val))
        {
            self.frame.stores.push((target, val));
        }
        self.values.store(target, val);
    }
}

/// How a path leaves the globals.
fn exits(path: &Path) -> Vec<(u32, Slot)> {
    let changes = path.changes().iter();
    changes.filter_map(|&(var, slot)| as_global(var).map(|name| (name, slot))).collect()
}
