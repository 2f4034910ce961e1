//! Functions of the standard library that change what they are given.

use super::effects::Args;
use super::flow::Flow;
use super::value::{Tag, Val, tag};

/// By name: the positions of the arguments that the function changes.
const CHANGES: &[(&str, &[usize])] = &[
    ("MethodType", &[1]),
    ("copyfileobj", &[0, 1]),
    ("delitem", &[0]),
    ("heapify", &[0]),
    ("heappop", &[0]),
    ("heappush", &[0]),
    ("heappushpop", &[0]),
    ("heapreplace", &[0]),
    ("iadd", &[0]),
    ("iand", &[0]),
    ("iconcat", &[0]),
    ("ifloordiv", &[0]),
    ("ilshift", &[0]),
    ("imatmul", &[0]),
    ("imod", &[0]),
    ("imul", &[0]),
    ("insort", &[0]),
    ("insort_left", &[0]),
    ("insort_right", &[0]),
    ("ior", &[0]),
    ("ipow", &[0]),
    ("irshift", &[0]),
    ("isub", &[0]),
    ("itruediv", &[0]),
    ("ixor", &[0]),
    ("pack_into", &[1]),
    ("setitem", &[0]),
    ("shuffle", &[0]),
];

/// Parameters that are written to.
const WRITTEN: &[&str] = &["file", "fileobj", "fp", "stream"];

/// Methods of containers that change them, called through the class: `deque.append(xs, 4)`.
const THROUGH_CLASS: &[&str] =
    &["appendleft", "extendleft", "move_to_end", "popitem", "popleft", "rotate", "subtract"];

impl<'a> Flow<'a> {
    /// Marks what a function of that name changes, judged by the name alone: the module may have
    /// been imported by another step.
    pub(super) fn changes_given(&mut self, name: &str, object: Option<Val>, args: &Args<'a>) {
        let mut changed: Vec<Val> = Vec::new();
        if let Ok(at) = CHANGES.binary_search_by_key(&name, |(known, _)| known) {
            let positions = CHANGES[at].1.iter();
            changed.extend(positions.filter_map(|&at| args.positional.get(at)));
        }
        if let Some(object) = object {
            let imported = self.values.list(object).iter().all(|one| tag(*one) == Tag::Imported);
            let first = args.positional.first();
            if THROUGH_CLASS.contains(&name) || imported && name == "append" {
                changed.extend(first);
            }
            if name == "dump" {
                changed.extend(args.positional.get(1));
            }
        }
        let written = args.keyword.iter().filter(|(name, _)| WRITTEN.contains(name));
        changed.extend(written.map(|(_, val)| *val));
        for val in changed {
            self.mutate(val);
        }
    }
}
