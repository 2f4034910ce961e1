//! The possible values of names at a point of the step, along every path to it.
//!
//! One table is changed in place, and every change is logged. Undoing a branch and joining two
//! branches take time proportional to their changes, not to the number of names.

use super::marks::Marks;
use super::names::Name;
use super::scope::SymId;
use super::value::{EMPTY, Val, Values};

/// The incoming value may still be visible.
pub(super) const IN: u8 = 1;
/// The step may have bound it.
pub(super) const BOUND: u8 = 2;
/// The step may have unbound it.
pub(super) const UNBOUND: u8 = 4;

/// The state of a name at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub(super) val: Val,
    pub(super) bits: u8,
}

/// The initial state.
pub(super) const FRESH: Slot = Slot { val: EMPTY, bits: IN };

/// A global or a variable of a body.
pub(super) type Var = u32;

const LOCAL: u32 = 1 << 31;

pub(super) fn global(name: Name) -> Var {
    name
}

pub(super) fn local(symbol: SymId) -> Var {
    symbol | LOCAL
}

/// The global that a variable is.
pub(super) fn as_global(var: Var) -> Option<Name> {
    (var & LOCAL == 0).then_some(var)
}

/// The changes of a path since a mark.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    changed: Vec<(Var, Slot)>,
    /// Whether the path ends: it raises, returns or leaves a loop.
    pub(super) dead: bool,
}

impl Path {
    /// A path that ends.
    pub(super) fn dead() -> Self {
        Self { changed: Vec::new(), dead: true }
    }

    /// The same changes on a path that continues.
    pub(super) fn alive(&self) -> Self {
        Self { changed: self.changed.clone(), dead: false }
    }

    pub(super) fn changes(&self) -> &[(Var, Slot)] {
        &self.changed
    }
}

#[derive(Clone, Copy)]
struct Entry {
    slot: Slot,
    /// The frame of the entry. Entries of other frames count as fresh.
    stamp: u32,
}

/// The table.
#[derive(Default)]
pub(super) struct State {
    globals: Vec<Entry>,
    locals: Vec<Entry>,
    stamp: u32,
    stamps: u32,
    trail: Vec<(Var, Entry)>,
    /// Every slot during a watch, because an exception may leave from there.
    history: Vec<(Var, Slot)>,
    watchers: u32,
    /// The globals read by bodies that ran.
    pub(super) watched: Marks,
    /// Grows with every change of a watched name.
    pub(super) version: u64,
    /// Whether no path reaches this point.
    pub(super) dead: bool,
}

/// The suspended state of a frame.
pub(super) struct Aside {
    stamp: u32,
    history: Vec<(Var, Slot)>,
    watchers: u32,
    dead: bool,
    mark: usize,
}

impl State {
    fn entry(&mut self, var: Var) -> &mut Entry {
        let none = Entry { slot: FRESH, stamp: u32::MAX };
        let (table, at) = if var & LOCAL == 0 {
            (&mut self.globals, var as usize)
        } else {
            (&mut self.locals, (var & !LOCAL) as usize)
        };
        if at >= table.len() {
            table.resize(at + 16, none);
        }
        &mut table[at]
    }

    pub(super) fn get(&mut self, var: Var) -> Slot {
        let stamp = self.stamp;
        let entry = self.entry(var);
        if entry.stamp == stamp { entry.slot } else { FRESH }
    }

    pub(super) fn set(&mut self, var: Var, slot: Slot) {
        let stamp = self.stamp;
        let entry = self.entry(var);
        let before = *entry;
        *entry = Entry { slot, stamp };
        self.trail.push((var, before));
        self.changed(var);
        if self.watchers > 0 {
            self.history.push((var, slot));
        }
    }

    /// The global changed at a log position, if it is one.
    pub(super) fn touched(&self, mark: usize) -> Option<Name> {
        self.trail.get(mark).and_then(|(var, _)| as_global(*var))
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// The changes since a mark. They stay applied.
    pub(super) fn peek(&mut self, mark: usize) -> Path {
        let mut vars: Vec<Var> = self.trail[mark..].iter().map(|(var, _)| *var).collect();
        vars.sort_unstable();
        vars.dedup();
        let changed = vars.into_iter().map(|var| (var, self.get(var))).collect();
        Path { changed, dead: self.dead }
    }

    /// The changes since a mark. They are undone, and the path is alive again.
    pub(super) fn take(&mut self, mark: usize) -> Path {
        let path = self.peek(mark);
        self.undo(mark);
        self.dead = false;
        path
    }

    fn changed(&mut self, var: Var) {
        if as_global(var).is_some_and(|name| self.watched.contains(name)) {
            self.version += 1;
        }
    }

    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((var, before)) = self.trail.pop() {
                *self.entry(var) = before;
                self.changed(var);
            }
        }
    }

    /// Applies a path that was taken from here.
    pub(super) fn follow(&mut self, path: &Path) {
        for &(var, slot) in &path.changed {
            self.set(var, slot);
        }
        self.dead = path.dead;
    }

    /// Merges paths that were taken from here.
    pub(super) fn joined(&mut self, paths: &[Path], values: &mut Values) -> Path {
        let live: Vec<&Path> = paths.iter().filter(|path| !path.dead).collect();
        match live.as_slice() {
            [] => return Path::dead(),
            [one] => return (*one).clone(),
            _ => {}
        }
        let mut all: Vec<(Var, Slot)> =
            live.iter().flat_map(|path| path.changed.iter().copied()).collect();
        all.sort_by_key(|(var, _)| *var);
        let mut changed: Vec<(Var, Slot)> = Vec::with_capacity(all.len());
        for of_one in all.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(var, mut slot)) = of_one.first() else { continue };
            for &(_, other) in &of_one[1..] {
                slot = either(slot, other, values);
            }
            if of_one.len() < live.len() {
                slot = either(slot, self.get(var), values);
            }
            changed.push((var, slot));
        }
        Path { changed, dead: false }
    }

    /// Applies the merge of paths that were taken from here.
    pub(super) fn join(&mut self, paths: &[Path], values: &mut Values) {
        let path = self.joined(paths, values);
        self.follow(&path);
    }

    /// Merges these paths into the current state. Returns whether that changed anything.
    pub(super) fn widen(&mut self, paths: &[Path], values: &mut Values) -> bool {
        let mut changed = false;
        for path in paths.iter().filter(|path| !path.dead) {
            for &(var, slot) in &path.changed {
                let before = self.get(var);
                let after = either(before, slot, values);
                if after != before {
                    self.set(var, after);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Starts to record every slot. Returns the argument of [`State::raised`] and
    /// [`State::unwatch`].
    pub(super) fn watch(&mut self) -> usize {
        self.watchers += 1;
        self.history.len()
    }

    pub(super) fn unwatch(&mut self) {
        self.watchers -= 1;
        if self.watchers == 0 {
            self.history.clear();
        }
    }

    /// The state in which an exception may leave the code since [`State::watch`], relative to the
    /// current table, which must be back at the start of the watch.
    pub(super) fn raised(&mut self, since: usize, values: &mut Values) -> Path {
        let mut seen: Vec<(Var, Slot)> = self.history[since..].to_vec();
        seen.sort_unstable_by_key(|(var, slot)| (*var, slot.val, slot.bits));
        seen.dedup();
        let mut changed: Vec<(Var, Slot)> = Vec::new();
        for (var, slot) in seen {
            match changed.last_mut() {
                Some((last, all)) if *last == var => *all = either(*all, slot, values),
                _ => {
                    let base = self.get(var);
                    changed.push((var, either(base, slot, values)));
                }
            }
        }
        Path { changed, dead: false }
    }

    /// Suspends the state of this frame and starts an empty one.
    pub(super) fn aside(&mut self) -> Aside {
        let aside = Aside {
            stamp: self.stamp,
            history: std::mem::take(&mut self.history),
            watchers: std::mem::take(&mut self.watchers),
            dead: std::mem::take(&mut self.dead),
            mark: self.mark(),
        };
        self.stamps += 1;
        self.version += 1;
        self.stamp = self.stamps;
        aside
    }

    /// Resumes a suspended frame.
    pub(super) fn back(&mut self, aside: Aside) {
        self.undo(aside.mark);
        self.stamp = aside.stamp;
        self.version += 1;
        self.history = aside.history;
        self.watchers = aside.watchers;
        self.dead = aside.dead;
    }
}

/// The merge of two states of a name.
pub(super) fn either(a: Slot, b: Slot, values: &mut Values) -> Slot {
    Slot { val: values.union(a.val, b.val), bits: a.bits | b.bits }
}
