//! Scopes, the names in them, and where each name leads.

use std::collections::HashMap;

use super::names::Name;

/// A scope, numbered in the order of the source: those inside it follow it up to its `end`.
pub(super) type ScopeId = u32;
/// One name in one scope. Names of functions double as their variables.
pub(super) type SymId = u32;

/// What a scope belongs to.
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
    /// A value that is computed when asked for: of an alias, of a bound, of a default.
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
    pub(super) symbols: Vec<SymId>,
}

/// A name in a scope.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: Name,
    pub(super) scope: ScopeId,
    pub(super) flags: u16,
    pub(super) target: Target,
}

/// Where a name leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The module's, else the builtin.
    Global(Name),
    /// A variable of this very function.
    Local(SymId),
    /// A variable of a function around.
    Free(SymId),
    /// A name that a class body binds: where it has not, the module's.
    Class(SymId, Name),
}

pub(super) const LOADED: u16 = 1;
pub(super) const STORED: u16 = 2;
pub(super) const PARAM: u16 = 4;
pub(super) const GLOBAL: u16 = 8;
pub(super) const NONLOCAL: u16 = 16;
pub(super) const ANNOTATED: u16 = 32;
pub(super) const CAPTURED: u16 = 64;
/// Bound, or unbound, in so many words: what makes a name that is declared global a change of it.
pub(super) const ASSIGNED: u16 = STORED;
const LOCAL: u16 = STORED | PARAM | ANNOTATED;

/// All scopes of a step.
#[derive(Default, Debug)]
pub(super) struct Scopes {
    pub(super) scopes: Vec<Scope>,
    pub(super) symbols: Vec<Symbol>,
    ids: HashMap<(ScopeId, Name), SymId>,
    /// By name, the scope in which it was met last: most names are met again in the same one.
    last: Vec<(ScopeId, SymId)>,
}

impl Scopes {
    pub(super) fn open(&mut self, kind: Kind, parent: ScopeId, is_async: bool) -> ScopeId {
        let id = super::names::index(self.scopes.len());
        self.scopes.push(Scope {
            kind,
            parent,
            end: id + 1,
            is_async,
            yields: false,
            symbols: Vec::new(),
        });
        id
    }

    pub(super) fn close(&mut self, id: ScopeId) {
        let end = super::names::index(self.scopes.len());
        if let Some(scope) = self.scopes.get_mut(id as usize) {
            scope.end = end;
        }
    }

    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id as usize]
    }

    pub(super) fn symbol(&self, id: SymId) -> &Symbol {
        &self.symbols[id as usize]
    }

    /// The symbol of a name in a scope, made where there is none.
    pub(super) fn enter(&mut self, scope: ScopeId, name: Name, flags: u16) -> SymId {
        let at = name as usize;
        if at >= self.last.len() {
            self.last.resize(at + 64, (u32::MAX, 0));
        }
        let (last, known) = self.last[at];
        let id = if last == scope {
            known
        } else {
            let fresh = super::names::index(self.symbols.len());
            let id = *self.ids.entry((scope, name)).or_insert(fresh);
            if id == fresh {
                let target = Target::Global(name);
                self.symbols.push(Symbol { name, scope, flags: 0, target });
                self.scopes[scope as usize].symbols.push(id);
            }
            self.last[at] = (scope, id);
            id
        };
        self.symbols[id as usize].flags |= flags;
        id
    }

    /// Leads every name to its variable. Answers the symbols of `nonlocal` that lead nowhere.
    pub(super) fn resolve(&mut self) -> Vec<SymId> {
        let mut lost = Vec::new();
        for id in 0..self.symbols.len() {
            let Symbol { name, scope, flags, .. } = self.symbols[id];
            let kind = self.scope(scope).kind;
            let id = super::names::index(id);
            let target = if kind == Kind::Module || flags & GLOBAL != 0 {
                Target::Global(name)
            } else if flags & NONLOCAL == 0 && flags & LOCAL != 0 {
                if kind == Kind::Class { Target::Class(id, name) } else { Target::Local(id) }
            } else {
                self.around(scope, name)
            };
            if flags & NONLOCAL != 0 && !matches!(target, Target::Free(_)) {
                lost.push(id);
            }
            if let Target::Free(variable) = target {
                self.symbols[variable as usize].flags |= CAPTURED;
            }
            self.symbols[id as usize].target = target;
        }
        lost
    }

    /// Where a name leads that its own scope does not bind. Classes are not looked into.
    fn around(&self, scope: ScopeId, name: Name) -> Target {
        let mut scope = scope;
        loop {
            if scope == 0 {
                return Target::Global(name);
            }
            scope = self.scope(scope).parent;
            if matches!(self.scope(scope).kind, Kind::Module | Kind::Class) {
                continue;
            }
            if let Some(&id) = self.ids.get(&(scope, name)) {
                let flags = self.symbol(id).flags;
                if flags & GLOBAL != 0 {
                    return Target::Global(name);
                }
                if flags & NONLOCAL == 0 && flags & LOCAL != 0 {
                    return Target::Free(id);
                }
            }
        }
    }

    /// The global names that a scope and those inside it have with these flags.
    pub(super) fn globals(&self, scope: ScopeId, flags: u16) -> impl Iterator<Item = Name> + '_ {
        let range = scope as usize..self.scope(scope).end as usize;
        self.scopes[range].iter().flat_map(|scope| &scope.symbols).filter_map(move |&id| {
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
