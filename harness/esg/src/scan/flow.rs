//! The second walk: what runs, in which order, and which bindings are possible there.

mod coarse;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::Scan;
use super::constants::truth;
use super::effects::{Body, Code, Frame};
use super::marks::Marks;
use super::names::{Known, Name, Names};
use super::parse::{Expr, Stmt, ast, numbered};
use super::scope::{CAPTURED, Scopes, SymId, Target};
use super::state::{BOUND, IN, Path, Slot, State, UNBOUND, Var, global, local};
use super::value::{EMPTY, Tag, Val, Values};

/// The longest `and` or `or` whose outcomes are kept apart by the deciding operand.
const PARTS: usize = 64;

/// How often a loop body is walked to reach a fixed point.
const PASSES: usize = 12;

/// An enclosing loop.
#[derive(Default)]
pub(super) struct Loop {
    mark: usize,
    pub(super) breaks: Vec<Path>,
    pub(super) ends: Vec<Path>,
}

/// The second walk.
pub(super) struct Flow<'a> {
    pub(super) names: Names<'a>,
    pub(super) scopes: Scopes,
    pub(super) future: bool,
    pub(super) state: State,
    pub(super) values: Values,
    pub(super) frame: Frame,
    pub(super) bodies: Vec<Body<'a>>,
    /// The values that parameters were given so far.
    pub(super) given: FxHashMap<SymId, Val>,
    pub(super) defaults: FxHashMap<SymId, Val>,
    /// The values of variables that inner bodies refer to.
    pub(super) cells: FxHashMap<SymId, Val>,
    /// The attributes of the classes that the step makes, by site.
    pub(super) classes: FxHashMap<u32, Vec<(&'a str, Val)>>,
    pub(super) sites: u32,
    pub(super) loops: Vec<Loop>,
    /// The classes whose code runs.
    pub(super) class_here: Vec<&'a str>,
    /// The full names of the imports and functions that variables are bound to.
    pub(super) library: FxHashMap<Var, String>,
    /// Channels besides names that what it calls may change.
    pub(super) channels: BTreeSet<&'static str>,
    /// The functions and classes that the step binds to globals.
    pub(super) definitions: Vec<(Name, u32)>,
    pub(super) opaque: bool,
    pub(super) pending: Vec<u32>,
    pub(super) draining: bool,
    pub(super) visited: Marks,
    /// Grows with every change that could affect a body.
    pub(super) version: u64,
    pub(super) nested: usize,
    /// The functions whose results are being determined.
    pub(super) asked: Vec<Name>,
    /// The variables whose values are being determined.
    pub(super) resolving: Vec<u32>,
    /// Whether a limit was exceeded, which makes the result invalid.
    pub(super) lost: bool,
    pub(super) coarse: coarse::Coarse,
    /// Scans code in strings.
    pub(super) scan: fn(&str) -> Scan,
}

impl<'a> Flow<'a> {
    pub(super) fn new(
        names: Names<'a>,
        scopes: Scopes,
        future: bool,
        budget: usize,
        scan: fn(&str) -> Scan,
    ) -> Self {
        let count = scopes.scopes.len();
        Self {
            names,
            future,
            state: State::default(),
            values: Values::within(budget),
            frame: Frame::default(),
            bodies: vec![Body::default(); count],
            given: FxHashMap::default(),
            defaults: FxHashMap::default(),
            cells: FxHashMap::default(),
            classes: FxHashMap::default(),
            // Comprehensions and classes are numbered by their scopes.
            sites: super::index::index(count),
            loops: Vec::new(),
            class_here: Vec::new(),
            library: FxHashMap::default(),
            channels: BTreeSet::new(),
            definitions: Vec::new(),
            opaque: false,
            pending: Vec::new(),
            draining: false,
            visited: Marks::default(),
            version: 1,
            nested: 0,
            asked: Vec::new(),
            resolving: Vec::new(),
            lost: false,
            coarse: coarse::Coarse::default(),
            scan,
            scopes,
        }
    }

    pub(super) fn union(&mut self, a: Val, b: Val) -> Val {
        self.values.union(a, b)
    }

    /// The object that an expression makes, the same at each evaluation.
    pub(super) fn site(&mut self, node: &ast::AtomicNodeIndex) -> Val {
        let id = numbered(node).unwrap_or_else(|| {
            let id = self.sites;
            self.sites += 1;
            node.set(ast::NodeIndex::from(id & 0x03ff_ffff));
            id
        });
        Val::one(Tag::Site, id)
    }

    /// Whether a variable belongs to the running code, not to an enclosing function.
    pub(super) fn is_here(&self, variable: SymId) -> bool {
        self.scopes.symbol(variable).scope >= self.frame.scope
    }

    /// The value of a global before the frame changes it.
    pub(super) fn incoming(&self, name: Name) -> Val {
        if self.names.known(name) != Known::No {
            EMPTY
        } else if self.frame.scope == 0 {
            Val::one(Tag::Incoming, name)
        } else {
            Val::one(Tag::Global, name)
        }
    }

    /// The possible values of a global here.
    pub(super) fn peek_global(&mut self, name: Name) -> Val {
        let slot = self.state.get(global(name));
        if slot.bits & IN == 0 {
            return slot.val;
        }
        let incoming = self.incoming(name);
        self.union(slot.val, incoming)
    }

    /// Loads a global. With `run`, a body it holds runs.
    pub(super) fn load_global(&mut self, name: Name, run: bool) -> Val {
        if self.state.dead {
            return EMPTY;
        }
        let bits = self.state.get(global(name)).bits;
        let builtin = self.names.known(name) == Known::Builtin;
        if self.coarse.on {
            self.loaded(name);
        }
        if bits & IN != 0 {
            self.frame.reads.insert(name);
        } else if bits & UNBOUND != 0 && builtin {
            self.frame.builtins.insert(name);
        } else if bits == UNBOUND && !self.coarse.on {
            // It surely raises.
            self.state.dead = true;
            return EMPTY;
        }
        let val = self.peek_global(name);
        if run {
            self.run(val);
        }
        val
    }

    pub(super) fn load(&mut self, symbol: SymId, run: bool) -> Val {
        if self.state.dead {
            return EMPTY;
        }
        let val = match self.scopes.symbol(symbol).target {
            Target::Global(name) => return self.load_global(name, run),
            Target::Local(variable) => self.state.get(local(variable)).val,
            Target::Free(variable) if self.is_here(variable) => self.state.get(local(variable)).val,
            Target::Free(variable) => {
                self.frame.cells.insert(variable);
                Val::one(Tag::Cell, variable)
            }
            Target::Class(variable, name) => {
                if self.coarse.on {
                    // A class may call what it has made so far.
                    self.free(0);
                }
                let slot = self.state.get(local(variable));
                if slot.bits & (IN | UNBOUND) == 0 {
                    slot.val
                } else {
                    let outer = self.load_global(name, run);
                    // The class may have bound it although the module has not.
                    self.state.dead &= slot.bits & BOUND == 0;
                    self.union(slot.val, outer)
                }
            }
        };
        if run {
            self.run(val);
        }
        val
    }

    pub(super) fn store(&mut self, symbol: SymId, val: Val) {
        if self.state.dead {
            return;
        }
        let slot = Slot { val, bits: BOUND };
        match self.scopes.symbol(symbol).target {
            Target::Global(name) => {
                self.frame.writes.insert(name);
                self.state.set(global(name), slot);
                if self.coarse.on {
                    self.valued(name, val);
                }
            }
            Target::Local(variable) | Target::Class(variable, _) => {
                self.state.set(local(variable), slot);
                self.capture(variable, val);
            }
            Target::Free(variable) => {
                if self.is_here(variable) {
                    self.state.set(local(variable), slot);
                }
                self.capture(variable, val);
            }
        }
    }

    fn capture(&mut self, variable: SymId, val: Val) {
        if self.scopes.symbol(variable).flags & CAPTURED != 0 {
            let before = self.cells.get(&variable).copied().unwrap_or(EMPTY);
            let after = self.union(before, val);
            if after != before {
                self.cells.insert(variable, after);
                self.version += 1;
            }
        }
    }

    /// Unbinds a name. `del` reads it, because it must be bound.
    pub(super) fn unbind(&mut self, symbol: SymId, read: bool) {
        if self.state.dead {
            return;
        }
        let slot = Slot { val: EMPTY, bits: UNBOUND };
        match self.scopes.symbol(symbol).target {
            Target::Global(name) => self.unbind_global(name, read),
            Target::Local(variable) | Target::Class(variable, _) | Target::Free(variable) => {
                self.state.set(local(variable), slot);
            }
        }
    }

    pub(super) fn unbind_global(&mut self, name: Name, read: bool) {
        let bits = self.state.get(global(name)).bits;
        self.unbound(name);
        if read && bits == UNBOUND && !self.coarse.on {
            self.state.dead = true;
            return;
        }
        if read && bits & IN != 0 {
            self.frame.reads.insert(name);
        }
        self.frame.deletes.insert(name);
        self.state.set(global(name), Slot { val: EMPTY, bits: UNBOUND });
    }

    pub(super) fn body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            if self.state.dead || self.spent() {
                return;
            }
            self.statement(statement);
        }
    }

    /// Leaves the frame through every enclosing `finally`.
    pub(super) fn leave(&mut self) {
        if !self.coarse.on {
            let path = self.state.peek(self.frame.mark);
            self.charge(path.changes().len());
            self.frame.returns.push(path);
        }
        self.state.dead = true;
    }

    /// Leaves the innermost loop, or continues it.
    pub(super) fn jump(&mut self, out: bool) {
        if let Some(mark) = self.loops.last().map(|around| around.mark) {
            let path = self.state.peek(mark);
            self.charge(path.changes().len());
            if let Some(around) = self.loops.last_mut() {
                let paths = if out { &mut around.breaks } else { &mut around.ends };
                paths.push(path);
            }
        }
        self.state.dead = true;
    }

    /// Walks `turn` until a fixed point. `turn` returns the path on which the loop ends, relative
    /// to its start.
    fn turns(&mut self, mut turn: impl FnMut(&mut Self) -> Path, orelse: &'a [Stmt]) {
        for pass in 0.. {
            let mark = self.state.mark();
            self.loops.push(Loop { mark, ..Loop::default() });
            let over = turn(self);
            let end = self.state.take(mark);
            let Loop { breaks, mut ends, .. } = self.loops.pop().unwrap_or_default();
            ends.push(end);
            let stores = self.values.stores;
            let changed = self.state.widen(&ends, &mut self.values);
            let more = changed || stores != self.values.stores;
            if more && !self.coarse.on && !self.spent() {
                if pass + 1 < PASSES {
                    continue;
                }
                self.lost = true;
            }
            let mark = self.state.mark();
            self.state.follow(&over);
            self.body(orelse);
            let mut paths = breaks;
            paths.push(self.state.take(mark));
            self.state.join(&paths, &mut self.values);
            return;
        }
    }

    /// Whether this walk gave up. Its result is invalid then.
    pub(super) fn spent(&self) -> bool {
        !self.coarse.on && (self.lost || self.values.spent())
    }

    /// Charges the budget.
    pub(super) fn charge(&self, work: usize) {
        self.values.work.set(self.values.work.get() + work);
    }

    pub(super) fn for_statement(&mut self, node: &'a ast::StmtFor) {
        let iterable = self.iterate(&node.iter);
        if self.state.dead {
            return;
        }
        self.turns(
            |flow| {
                flow.bind(&node.target, iterable);
                flow.body(&node.body);
                Path::default()
            },
            &node.orelse,
        );
    }

    pub(super) fn while_statement(&mut self, node: &'a ast::StmtWhile) {
        self.turns(
            |flow| {
                let mark = flow.state.mark();
                let (on, over) = flow.condition(&node.test, mark);
                flow.state.follow(&on);
                flow.body(&node.body);
                over
            },
            &node.orelse,
        );
    }

    pub(super) fn if_statement(&mut self, node: &'a ast::StmtIf) {
        let start = self.state.mark();
        let mut paths = Vec::new();
        let mark = self.state.mark();
        let (yes, no) = self.condition(&node.test, mark);
        self.state.follow(&yes);
        self.body(&node.body);
        paths.push(self.state.take(mark));
        let mut otherwise = no;
        for clause in &node.elif_else_clauses {
            self.state.follow(&otherwise);
            let yes = match &clause.test {
                Some(test) if !self.state.dead => {
                    let (yes, no) = self.condition(test, start);
                    otherwise = no;
                    yes
                }
                _ => {
                    let yes = self.state.take(start);
                    otherwise = Path::dead();
                    yes
                }
            };
            self.state.follow(&yes);
            self.body(&clause.body);
            paths.push(self.state.take(start));
        }
        paths.push(otherwise);
        self.state.join(&paths, &mut self.values);
    }

    /// Evaluates a condition. Returns the paths on which it is true and false, both relative to
    /// `mark`, and resets the state to `mark`.
    pub(super) fn condition(&mut self, test: &'a Expr, mark: usize) -> (Path, Path) {
        match test {
            Expr::UnaryOp(node) if node.op == ast::UnaryOp::Not => {
                let (yes, no) = self.condition(&node.operand, mark);
                (no, yes)
            }
            Expr::BoolOp(node) if node.values.len() <= PARTS => {
                let all = node.op == ast::BoolOp::And;
                let mut decided = Vec::new();
                let mut going: Option<Path> = None;
                for value in &node.values {
                    if let Some(going) = &going {
                        self.state.follow(going);
                    }
                    let (yes, no) = self.condition(value, mark);
                    let (continues, is_decided) = if all { (yes, no) } else { (no, yes) };
                    decided.push(is_decided);
                    going = Some(continues);
                }
                let decided = self.state.joined(&decided, &mut self.values);
                let going = going.unwrap_or_default();
                if all { (going, decided) } else { (decided, going) }
            }
            _ => {
                self.eval(test);
                let path = self.state.take(mark);
                match truth(test) {
                    Some(true) => (path, Path::dead()),
                    Some(false) => (Path::dead(), path),
                    None => (path.clone(), path),
                }
            }
        }
    }

    pub(super) fn code(&mut self, scope: u32, code: Code<'a>) {
        if let Some(body) = self.bodies.get_mut(scope as usize) {
            body.code = Some(code);
        }
        self.frame.created.insert(scope);
        self.made(scope);
    }
}
