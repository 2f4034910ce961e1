//! The origins of objects, as far as the source determines them.
//!
//! A value is a set of origins. An origin is an object that the step did not make (what a global
//! held before, an import), one it made (a container, a body), or, inside a body, one that only a
//! call determines (a parameter, the current value of a global).

use std::cell::Cell;

use rustc_hash::FxHashMap;

/// One origin: three bits of [`Tag`], two of [`Reach`], 26 of a number.
pub(super) type Origin = u32;

/// The kind of an origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    /// The value of a global before the step.
    Incoming = 0,
    /// An import: shared by the whole process, although bound here.
    Imported = 1,
    /// The object that an expression makes, by the number of the expression.
    Site = 2,
    /// A body: a function, a lambda, a generator expression, by its scope.
    Body = 3,
    /// A parameter, by its symbol.
    Param = 4,
    /// A variable of an enclosing function, by its symbol.
    Cell = 5,
    /// The value of a global when the body runs.
    Global = 6,
    /// The result of the function that a global then holds.
    Result = 7,
}

/// The relation of a value to its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// It may be the object itself.
    Is = 0,
    /// It may be reachable from it over several objects.
    Deep = 1,
    /// It is another object that holds it.
    Holds = 2,
    /// It is an element or an attribute of it.
    Part = 3,
}

const NUMBER: u32 = (1 << 26) - 1;

pub(super) fn origin(tag: Tag, reach: Reach, number: u32) -> Origin {
    (tag as u32) << 28 | (reach as u32) << 26 | (number & NUMBER)
}

pub(super) fn tag(origin: Origin) -> Tag {
    match origin >> 28 & 7 {
        0 => Tag::Incoming,
        1 => Tag::Imported,
        2 => Tag::Site,
        3 => Tag::Body,
        4 => Tag::Param,
        5 => Tag::Cell,
        6 => Tag::Global,
        _ => Tag::Result,
    }
}

pub(super) fn reach(origin: Origin) -> Reach {
    match origin >> 26 & 3 {
        0 => Reach::Is,
        1 => Reach::Deep,
        2 => Reach::Holds,
        _ => Reach::Part,
    }
}

pub(super) fn number(origin: Origin) -> u32 {
    origin & NUMBER
}

/// The kind and number of a value with one origin.
pub(super) fn tag_of(val: Val) -> Option<(Tag, u32)> {
    (val.0 & MANY == 0).then(|| (tag(val.0), number(val.0)))
}

fn with(origin: Origin, reach: Reach) -> Origin {
    origin & !(3 << 26) | (reach as u32) << 26
}

/// A set of origins: one of them, or the index of a set in [`Values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Val(u32);

const MANY: u32 = 1 << 31;

/// No known origin.
pub(super) const EMPTY: Val = Val(MANY);

impl Val {
    pub(super) fn of_origin(origin: Origin) -> Self {
        Self(origin)
    }

    pub(super) fn one(tag: Tag, number: u32) -> Self {
        Self(origin(tag, Reach::Is, number))
    }
}

/// The interned sets of several origins, and the content of containers.
#[derive(Default)]
pub(super) struct Values {
    sets: Vec<Box<[Origin]>>,
    ids: FxHashMap<Box<[Origin]>, u32>,
    joined: FxHashMap<(Val, Val), Val>,
    heap: FxHashMap<Origin, Val>,
    /// The number of origins visited.
    pub(super) work: Cell<usize>,
    /// The limit of `work`. Beyond it, values are not tracked any more.
    limit: usize,
    /// Whether a value had more origins than [`WIDE`].
    pub(super) wide: bool,
    /// Whether values are not tracked: every one is empty.
    pub(super) none: bool,
    /// Grows with every change of a container.
    pub(super) stores: u32,
}

/// The most origins of a value. Beyond it, values are not tracked any more.
const WIDE: usize = 128;

impl Values {
    /// No values, with a limit of origins to visit.
    pub(super) fn within(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The origins of a value.
    pub(super) fn list(&self, val: Val) -> Vec<Origin> {
        match val {
            EMPTY => Vec::new(),
            Val(one) if one & MANY == 0 => {
                self.work.set(self.work.get() + 1);
                vec![one]
            }
            Val(many) => {
                let set = self.sets.get((many & !MANY) as usize - 1);
                let set = set.map_or_else(Vec::new, |set| set.to_vec());
                self.work.set(self.work.get() + set.len());
                set
            }
        }
    }

    /// A value of these origins.
    pub(super) fn of(&mut self, mut origins: Vec<Origin>) -> Val {
        origins.sort_unstable();
        origins.dedup();
        if origins.len() > WIDE {
            self.wide = true;
            origins.truncate(WIDE);
        }
        match origins.as_slice() {
            [] => EMPTY,
            _ if self.none || self.spent() => EMPTY,
            [one] => Val(*one),
            _ => {
                self.work.set(self.work.get() + origins.len());
                let set = origins.into_boxed_slice();
                let fresh = super::index::index(self.sets.len()) + 1;
                let id = *self.ids.entry(set.clone()).or_insert(fresh);
                if id == fresh {
                    self.sets.push(set);
                }
                Val(id | MANY)
            }
        }
    }

    /// Whether a limit was exceeded.
    pub(super) fn spent(&self) -> bool {
        self.wide || self.work.get() > self.limit
    }

    pub(super) fn union(&mut self, a: Val, b: Val) -> Val {
        if a == b || b == EMPTY || self.none {
            return if self.none { EMPTY } else { a };
        }
        if a == EMPTY {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.joined.get(&key) {
            return known;
        }
        let mut all = self.list(a);
        all.extend(self.list(b));
        let joined = self.of(all);
        self.joined.insert(key, joined);
        joined
    }

    /// A new object that holds what `val` may be.
    pub(super) fn holding(&mut self, val: Val) -> Val {
        let all = self.list(val).into_iter().map(|one| with(one, Reach::Holds)).collect();
        self.of(all)
    }

    /// What `val` holds directly: its elements, its attributes.
    pub(super) fn inside(&mut self, val: Val) -> Val {
        if val == EMPTY {
            return EMPTY;
        }
        let mut all = Vec::new();
        for one in self.list(val) {
            match (tag(one), reach(one)) {
                (Tag::Body, _) => all.push(one),
                (Tag::Site, Reach::Is) => {}
                (Tag::Site, _) => all.push(with(one, Reach::Is)),
                (_, Reach::Holds) => {
                    all.push(with(one, Reach::Is));
                    all.push(with(one, Reach::Deep));
                }
                (_, Reach::Is) => all.push(with(one, Reach::Part)),
                _ => all.push(with(one, Reach::Deep)),
            }
            if let Some(&held) = self.heap.get(&with(one, Reach::Is)) {
                all.extend(self.list(held));
            }
        }
        self.of(all)
    }

    /// The recorded content of a container.
    pub(super) fn held(&self, one: Origin) -> Val {
        self.heap.get(&with(one, Reach::Is)).copied().unwrap_or(EMPTY)
    }

    /// Stores `val` into every object that `target` may be.
    pub(super) fn store(&mut self, target: Val, val: Val) {
        if val == EMPTY || self.none {
            return;
        }
        let targets = self.list(target);
        for one in targets {
            let key = with(one, Reach::Is);
            let before = self.heap.get(&key).copied();
            let after = self.union(before.unwrap_or(EMPTY), val);
            if before != Some(after) {
                self.heap.insert(key, after);
                // The first content of a new container does not affect earlier results.
                self.stores += u32::from(before.is_some());
            }
        }
    }

    /// `val` seen through an origin of that relation.
    pub(super) fn through(&mut self, val: Val, how: Reach) -> Val {
        match how {
            Reach::Is => val,
            Reach::Holds => self.holding(val),
            Reach::Part => self.inside(val),
            Reach::Deep => {
                let once = self.inside(val);
                let twice = self.inside(once);
                self.union(once, twice)
            }
        }
    }
}
