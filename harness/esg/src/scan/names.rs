//! Interned names, and Python's own names.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::index::index;
use super::sets::{NameMap, NameSet, Texts};

/// A name of this step, interned.
pub(super) type Name = u32;

/// The size of the cache of recent names.
const MET: usize = 1 << 11;
/// The number of names up to which the cache is not used.
const SMALL: usize = 64;

/// The names of one step.
#[derive(Default)]
pub(super) struct Names<'a> {
    ids: FxHashMap<Cow<'a, str>, Name>,
    texts: Vec<Cow<'a, str>>,
    kinds: Vec<Known>,
    /// The rank of each name in text order, once computed.
    ranks: Vec<u32>,
    /// All texts in that order.
    ordered: Arc<Texts>,
    /// Cache of recent names by length and first and last bytes. It avoids most table lookups.
    met: Vec<Name>,
}

/// What an unbound name means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: a step must bind it.
    No,
    /// A builtin.
    Builtin,
    /// Bound in every module, like `__name__`.
    Implicit,
}

/// The approximate bytes of a large source for each new name.
const BYTES: usize = 48;

impl<'a> Names<'a> {
    /// An empty table with capacity for a source of this size.
    pub(super) fn within(bytes: usize) -> Self {
        let count = bytes / BYTES;
        Self {
            ids: FxHashMap::with_capacity_and_hasher(count, FxBuildHasher),
            texts: Vec::with_capacity(count),
            kinds: Vec::with_capacity(count),
            ..Self::default()
        }
    }

    pub(super) fn of(&mut self, text: Cow<'a, str>) -> Name {
        let place = place(&text) % MET;
        if let Some(&id) = self.met.get(place)
            && self.texts.get(id as usize).is_some_and(|known| *known == text)
        {
            return id;
        }
        if self.met.is_empty() && self.texts.len() > SMALL {
            self.met.resize(MET, u32::MAX);
        }
        let id = self.enter(text);
        if let Some(met) = self.met.get_mut(place) {
            *met = id;
        }
        id
    }

    fn enter(&mut self, text: Cow<'a, str>) -> Name {
        if let Some(&id) = self.ids.get(text.as_ref()) {
            return id;
        }
        let id = index(self.texts.len());
        self.kinds.push(known(&text));
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.texts.get(name as usize).map_or("", AsRef::as_ref)
    }

    /// Ranks all names once, so that sets need not compare texts.
    pub(super) fn rank(&mut self) {
        let beginnings = self.texts.iter().map(|text| beginning(text));
        let mut order: Vec<(u128, Name)> = beginnings.zip(0..).collect();
        order.sort_unstable_by(|(a, first), (b, second)| {
            a.cmp(b).then_with(|| self.text(*first).cmp(self.text(*second)))
        });
        self.ranks = vec![0; order.len()];
        for (rank, &(_, name)) in order.iter().enumerate() {
            self.ranks[name as usize] = index(rank);
        }
        let ordered = order.iter().map(|(_, name)| self.text(*name));
        self.ordered = Arc::new(Texts::of(ordered));
    }

    /// The rank of a name. Names added after the ranking have none.
    fn rank_of(&self, name: Name) -> Option<u32> {
        self.ranks.get(name as usize).copied()
    }

    /// A set of these names.
    pub(super) fn set(&self, names: impl Iterator<Item = Name> + Clone) -> NameSet {
        let places: Option<Vec<u32>> = names.clone().map(|name| self.rank_of(name)).collect();
        let Some(mut places) = places else {
            return names.map(|name| self.text(name)).collect();
        };
        places.sort_unstable();
        places.dedup();
        NameSet::at(&self.ordered, places)
    }

    /// A map from these names to their sets.
    pub(super) fn map(&self, sets: Vec<(Name, NameSet)>) -> NameMap {
        if sets.iter().any(|(name, _)| self.rank_of(*name).is_none()) {
            return sets.into_iter().map(|(name, set)| (self.text(name), set)).collect();
        }
        let ranked = sets.into_iter();
        let ranked = ranked.filter_map(|(name, set)| Some((self.rank_of(name)?, set)));
        let mut entries: Vec<_> = ranked.collect();
        entries.sort_by_key(|(place, _)| *place);
        NameMap::at(&self.ordered, entries)
    }

    pub(super) fn known(&self, name: Name) -> Known {
        self.kinds.get(name as usize).copied().unwrap_or(Known::No)
    }
}

/// The cache slot of a name.
fn place(text: &str) -> usize {
    let at = |at: usize| usize::from(text.as_bytes().get(at).copied().unwrap_or(0));
    let len = text.len();
    let ends = at(0) + 31 * at(1) + 7 * at(len.wrapping_sub(1)) + 131 * at(len.wrapping_sub(2));
    ends + 17 * at(len / 2) + 257 * len
}

/// The first bytes of a text, as a number in text order. No name has a zero byte.
fn beginning(text: &str) -> u128 {
    let mut bytes = [0; 16];
    let len = text.len().min(bytes.len());
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    u128::from_be_bytes(bytes)
}

/// The mangled form of a private name: `__x` in `A` is `_A__x`.
pub(super) fn mangled<'a>(name: &'a str, class: Option<&str>) -> Cow<'a, str> {
    if !name.starts_with("__") || name.ends_with("__") {
        return Cow::Borrowed(name);
    }
    match class.map(|class| class.trim_start_matches('_')) {
        Some(class) if !class.is_empty() => Cow::Owned(format!("_{class}{name}")),
        _ => Cow::Borrowed(name),
    }
}

fn known(text: &str) -> Known {
    if text.len() > 2 && text.starts_with("__") && IMPLICIT.contains(&text) {
        Known::Implicit
    } else if may_be_builtin(text) && BUILTINS.binary_search(&text).is_ok() {
        Known::Builtin
    } else {
        Known::No
    }
}

/// Whether a builtin has the same first byte and length.
fn may_be_builtin(text: &str) -> bool {
    let first = text.as_bytes().first().copied().unwrap_or_default();
    let lengths = LENGTHS.get(usize::from(first)).copied().unwrap_or(0);
    text.len() < 64 && lengths & 1 << text.len() != 0
}

/// By first byte: a bit for each length of a builtin that begins with it.
const LENGTHS: [u64; 128] = {
    let mut lengths = [0; 128];
    let mut at = 0;
    while at < BUILTINS.len() {
        let builtin = BUILTINS[at].as_bytes();
        lengths[builtin[0] as usize] |= 1 << builtin.len();
        at += 1;
    }
    lengths
};

const IMPLICIT: &[&str] = &[
    "__annotations__",
    "__builtins__",
    "__cached__",
    "__class__",
    "__debug__",
    "__dict__",
    "__doc__",
    "__file__",
    "__loader__",
    "__module__",
    "__name__",
    "__package__",
    "__path__",
    "__qualname__",
    "__spec__",
    "__type_params__",
    "__classdict__",
    "__classcell__",
];

/// The builtins of CPython 3.11 to 3.13, sorted.
pub(super) const BUILTINS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "False",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "None",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "PythonFinalizationError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "True",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "_IncompleteInputError",
    "__build_class__",
    "__import__",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "copyright",
    "credits",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "license",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];
