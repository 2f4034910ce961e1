//! Scopes, their names, and the binding that each name refers to.

use super::names::Name;

/// A scope, numbered in source order: inner scopes follow up to its `end`.
pub(super) type ScopeId = u32;
/// One name in one scope. Names of functions double as their variables.
pub(super) type SymId = u32;

/// The kind of a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Module,
    Class,
    Function,
    Lambda,
    /// A list, set or dict comprehension.
    Comp,
    /// A generator expression.
    Generator,
    /// The type parameters of a class, function or alias.
    Type,
    /// A lazily evaluated value: of an alias, a bound, a default.
    Lazy,
}

/// One scope.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) kind: Kind,
    pub(super) parent: ScopeId,
    pub(super) end: ScopeId,
    pub(super) is_async: bool,
    pub(super) yields: bool,
    /// The newest symbol, while the scope is open.
    newest: SymId,
    /// The index of its first symbol, after resolution.
    first: u32,
}

/// A name in a scope.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: Name,
    pub(super) scope: ScopeId,
    pub(super) flags: u16,
    pub(super) target: Target,
    /// The symbol of this name in the next enclosing scope that has one.
    shadowed: SymId,
    /// The previous symbol of its scope.
    before: SymId,
}

/// What a name refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A global, or else a builtin.
    Global(Name),
    /// A variable of this function.
    Local(SymId),
    /// A variable of an enclosing function.
    Free(SymId),
    /// A name that a class body binds; the global if it has not.
    Class(SymId, Name),
}

pub(super) const LOADED: u16 = 1;
pub(super) const STORED: u16 = 2;
pub(super) const PARAM: u16 = 4;
pub(super) const GLOBAL: u16 = 8;
pub(super) const NONLOCAL: u16 = 16;
pub(super) const ANNOTATED: u16 = 32;
pub(super) const CAPTURED: u16 = 64;
/// Bound or unbound explicitly. Together with a global declaration this changes the global.
pub(super) const ASSIGNED: u16 = STORED;
const LOCAL: u16 = STORED | PARAM | ANNOTATED;

/// No symbol.
const NONE: SymId = SymId::MAX;

/// All scopes of a step.
#[derive(Default, Debug)]
pub(super) struct Scopes {
    pub(super) scopes: Vec<Scope>,
    pub(super) symbols: Vec<Symbol>,
    /// By name: its symbol in the innermost open scope that has one.
    innermost: Vec<SymId>,
    /// The symbols in the order of their scopes.
    order: Vec<SymId>,
}

/// The approximate bytes of a large source for each symbol and each scope.
const BYTES: (usize, usize) = (32, 128);

impl Scopes {
    /// Empty scopes with capacity for a source of this size.
    pub(super) fn within(bytes: usize) -> Self {
        Self {
            scopes: Vec::with_capacity(bytes / BYTES.1 + 1),
            symbols: Vec::with_capacity(bytes / BYTES.0 + 4),
            ..Self::default()
        }
    }

    pub(super) fn open(&mut self, kind: Kind, parent: ScopeId, is_async: bool) -> ScopeId {
        let id = super::index::index(self.scopes.len());
        self.scopes.push(Scope {
            kind,
            parent,
            end: id + 1,
            is_async,
            yields: false,
            newest: NONE,
            first: 0,
        });
        id
    }

    /// Closes the innermost open scope.
    pub(super) fn close(&mut self, id: ScopeId) {
        let end = super::index::index(self.scopes.len());
        let scope = &mut self.scopes[id as usize];
        scope.end = end;
        let mut symbol = scope.newest;
        while symbol != NONE {
            let Symbol { name, shadowed, before, .. } = self.symbols[symbol as usize];
            self.innermost[name as usize] = shadowed;
            symbol = before;
        }
    }

    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id as usize]
    }

    pub(super) fn symbol(&self, id: SymId) -> &Symbol {
        &self.symbols[id as usize]
    }

    /// The symbol of a name in an open scope. Creates it if necessary.
    pub(super) fn enter(&mut self, scope: ScopeId, name: Name, flags: u16) -> SymId {
        let at = name as usize;
        if at >= self.innermost.len() {
            self.innermost.resize(at + 64, NONE);
        }
        // Open scopes are numbered from the outermost to the innermost.
        let mut inside = NONE;
        let mut found = self.innermost[at];
        while let Some(symbol) = self.symbols.get_mut(found as usize) {
            if symbol.scope == scope {
                symbol.flags |= flags;
                return found;
            }
            if symbol.scope < scope {
                break;
            }
            inside = found;
            found = symbol.shadowed;
        }
        let id = super::index::index(self.symbols.len());
        let before = std::mem::replace(&mut self.scopes[scope as usize].newest, id);
        let target = Target::Global(name);
        self.symbols.push(Symbol { name, scope, flags, target, shadowed: found, before });
        match self.symbols.get_mut(inside as usize) {
            Some(inside) => inside.shadowed = id,
            None => self.innermost[at] = id,
        }
        id
    }

    /// Resolves every name. Returns the `nonlocal` symbols without a binding.
    pub(super) fn resolve(&mut self) -> Vec<SymId> {
        self.arrange();
        let mut lost = Vec::new();
        let mut open: Vec<ScopeId> = Vec::new();
        self.innermost.fill(NONE);
        for scope in 0..super::index::index(self.scopes.len()) {
            while let Some(&last) = open.last()
                && self.scope(last).end <= scope
            {
                for at in self.places(last, last + 1) {
                    let Symbol { name, shadowed, .. } = self.symbols[self.order[at] as usize];
                    self.innermost[name as usize] = shadowed;
                }
                open.pop();
            }
            for at in self.places(scope, scope + 1) {
                let id = self.order[at];
                let symbol = &mut self.symbols[id as usize];
                let around = &mut self.innermost[symbol.name as usize];
                symbol.shadowed = std::mem::replace(around, id);
                if self.lead(id) {
                    lost.push(id);
                }
            }
            open.push(scope);
        }
        lost.sort_unstable();
        lost
    }

    /// Sorts the symbols by scope, and by first use within a scope.
    fn arrange(&mut self) {
        let mut next = vec![0; self.scopes.len()];
        for symbol in &self.symbols {
            next[symbol.scope as usize] += 1;
        }
        let mut first = 0;
        for (scope, next) in self.scopes.iter_mut().zip(&mut next) {
            scope.first = first;
            first += std::mem::replace(next, first);
        }
        self.order = vec![NONE; self.symbols.len()];
        for (id, symbol) in self.symbols.iter().enumerate() {
            let next = &mut next[symbol.scope as usize];
            self.order[*next as usize] = super::index::index(id);
            *next += 1;
        }
    }

    /// The range of the symbols of these scopes.
    fn places(&self, from: ScopeId, to: ScopeId) -> std::ops::Range<usize> {
        let first = |scope: ScopeId| {
            let scope = self.scopes.get(scope as usize);
            scope.map_or(self.order.len(), |scope| scope.first as usize)
        };
        first(from)..first(to)
    }

    /// Resolves a name. Returns whether a `nonlocal` has no binding.
    fn lead(&mut self, id: SymId) -> bool {
        let Symbol { name, scope, flags, .. } = self.symbols[id as usize];
        let kind = self.scope(scope).kind;
        let target = if kind == Kind::Module || flags & GLOBAL != 0 {
            Target::Global(name)
        } else if flags & NONLOCAL == 0 && flags & LOCAL != 0 {
            if kind == Kind::Class { Target::Class(id, name) } else { Target::Local(id) }
        } else {
            self.around(id)
        };
        if let Target::Free(variable) = target {
            self.symbols[variable as usize].flags |= CAPTURED;
        }
        self.symbols[id as usize].target = target;
        flags & NONLOCAL != 0 && !matches!(target, Target::Free(_))
    }

    /// What a name refers to that its own scope does not bind. Skips classes.
    fn around(&self, id: SymId) -> Target {
        let Symbol { name, shadowed, .. } = self.symbols[id as usize];
        let mut found = shadowed;
        while let Some(symbol) = self.symbols.get(found as usize) {
            let Symbol { scope, flags, shadowed, .. } = *symbol;
            if !matches!(self.scope(scope).kind, Kind::Module | Kind::Class) {
                if flags & GLOBAL != 0 {
                    break;
                }
                if flags & NONLOCAL == 0 && flags & LOCAL != 0 {
                    return Target::Free(found);
                }
            }
            found = shadowed;
        }
        Target::Global(name)
    }

    /// The symbols of a scope, in order of first use.
    pub(super) fn symbols_of(&self, scope: ScopeId) -> &[SymId] {
        self.order.get(self.places(scope, scope + 1)).unwrap_or_default()
    }

    /// The globals that a scope and its inner scopes use with these flags.
    pub(super) fn globals(&self, scope: ScopeId, flags: u16) -> impl Iterator<Item = Name> + '_ {
        let places = self.places(scope, self.scope(scope).end);
        self.order.get(places).unwrap_or_default().iter().filter_map(move |&id| {
            let symbol = self.symbol(id);
            if symbol.flags & flags == 0 {
                return None;
            }
            match symbol.target {
                Target::Global(name) => Some(name),
                Target::Class(_, name) if flags == LOADED => Some(name),
                _ => None,
            }
        })
    }
}
