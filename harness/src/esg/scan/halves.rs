//! A large source read in two halves at the same time.
//!
//! The halves are cut where a line begins at the margin with a word that goes on with nothing that
//! stands before it. Nothing tells whether the cut went through a text or a bracket but the
//! grammar: a half cut out of one is refused. So the halves count only where neither has a fault,
//! and then they are what the whole is: the first ends with a line that is complete, and before
//! such a line nothing is open that a line at the margin could be a part of.

use std::iter::once_with;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::scope;

use super::Scan;
use super::answer::walked;
use super::beside::{beside, roomy};
use super::declare::declare;
use super::identity::Identity;
use super::parse::{self, MAX_BYTES, Tree};

/// Words at the margin with which most definitions and many other statements begin.
const STARTS: &[&str] = &["def ", "class ", "async ", "@", "import ", "from "];

/// Words that go on with the statement before.
const GOES_ON: &[&str] = &["elif", "else", "except", "finally"];

/// What reading in halves has come to.
pub(super) enum Halves {
    /// The answer.
    Read(Box<Scan>),
    /// The whole tree, without a fault, which has to be walked where there is room.
    Deep(Tree),
    /// The source can not be read in halves. That says nothing of it.
    No,
}

/// Reads a source in halves.
pub(super) fn read(source: &str) -> Halves {
    cut(source).map_or(Halves::No, |at| read_at(source, at))
}

/// Reads a source in two parts, of which the second begins at a margin.
fn read_at(source: &str, at: usize) -> Halves {
    let (first, second) = (OnceLock::new(), OnceLock::new());
    let parse_second = || parse::parse_from(source, at);
    let identify = || {
        let mut identity = Identity::new(source);
        let trees = [&first, &second].into_iter().filter_map(OnceLock::get);
        trees.flat_map(|tree: &Tree| &tree.module.body).for_each(|one| identity.add(one));
        identity.done()
    };
    let scan = scope(|scope| {
        let parsed = beside(scope, &parse_second);
        let first = first.get_or_init(|| parse::parse(source.get(..at).unwrap_or_default()));
        if !plain(first) {
            second.get_or_init(parsed);
            return None;
        }
        // The first part is walked while the second is parsed, and the second while it is
        // identified.
        let mut identity = None;
        let rest = once_with(|| {
            let second = second.get_or_init(parsed);
            let walked = if plain(second) { second.module.body.as_slice() } else { &[] };
            identity = plain(second).then(|| beside(scope, &identify));
            walked
        });
        let statements = first.module.body.iter().chain(rest.flatten());
        let declared = declare(statements, source, |_| ());
        let module = [first, second.get()?].map(|tree| tree.module.body.as_slice());
        Some(walked(source, declared, std::iter::empty(), &module, identity?))
    });
    match (first.into_inner(), second.into_inner(), scan) {
        (Some(first), Some(second), Some(scan)) => {
            let_go(first, second);
            Halves::Read(Box::new(scan))
        }
        (Some(first), Some(second), None) => whole(first, second),
        _ => Halves::No,
    }
}

/// Whether a tree may be walked here, and as a part of the whole.
fn plain(tree: &Tree) -> bool {
    tree.faults.is_empty() && !tree.deep
}

/// The tree of two parts, if they are parts of one.
fn whole(first: Tree, second: Tree) -> Halves {
    if !first.faults.is_empty() || !second.faults.is_empty() {
        discard(first);
        discard(second);
        return Halves::No;
    }
    let (mut tree, mut second) = (first, second);
    tree.module.body.append(&mut second.module.body);
    tree.module.range = tree.module.range.cover(second.module.range);
    tree.deep |= second.deep;
    Halves::Deep(tree)
}

/// Drops two trees that are not deep at the same time: they were made on two threads, so that their
/// memory is apart.
fn let_go(first: Tree, second: Tree) {
    let second = Mutex::new(Some(second));
    let drop_second = || drop(second.lock().unwrap_or_else(PoisonError::into_inner).take());
    scope(|scope| {
        let dropped = beside(scope, &drop_second);
        drop(first);
        dropped();
    });
}

/// Drops a tree that may be deep.
fn discard(tree: Tree) {
    if tree.deep {
        roomy(|| parse::cut_chains(&mut { tree }.module));
    }
}

/// Where the second half begins. It is the smaller one: what a thread of its own allocates costs
/// more, as its memory is not kept for the next.
fn cut(source: &str) -> Option<usize> {
    if source.len() > MAX_BYTES {
        return None;
    }
    let middle = source.len() / 16 * 9..source.len() / 16 * 13;
    let likely = |at: &usize| begins(source, *at, STARTS);
    margins(source, middle.clone()).find(likely).or_else(|| margins(source, middle).next())
}

/// The margins after the ends of lines in this range: places where a line begins with a word or a
/// decorator, and goes on with nothing that stands before it.
fn margins(source: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = source.as_bytes();
    let within = bytes.get(range.clone()).unwrap_or_default();
    let ends = within.iter().zip(range).filter(|(byte, _)| **byte == b'\n');
    ends.map(|(_, end)| end + 1).filter(move |&at| {
        let line = bytes.get(..at - 1).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let next = bytes.get(at).copied().unwrap_or_default();
        let word = next.is_ascii_alphabetic() || next == b'_' || next == b'@';
        word && !line.ends_with(b"\\") && !begins(source, at, GOES_ON)
    })
}

/// Whether one of these words stands there.
fn begins(source: &str, at: usize, words: &[&str]) -> bool {
    let rest = source.get(at..).unwrap_or_default();
    words.iter().any(|word| rest.starts_with(word))
}

#[cfg(test)]
mod tests;
