//! A large source read in two halves at the same time.
//!
//! The halves are cut where a line begins at the margin with a word that goes on with nothing that
//! stands before it. Nothing tells whether the cut went through a text or a bracket but the
//! grammar: a half cut out of one is refused. So the halves count only where neither has a fault,
//! and then they are what the whole is: the first ends with a line that is complete, and before
//! such a line nothing is open that a line at the margin could be a part of.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::beside::{both, roomy};
use super::identity::Identity;
use super::parse::{self, MAX_BYTES, Tree};

/// Words at the margin with which most definitions and many other statements begin.
const STARTS: &[&str] = &["def ", "class ", "async ", "@", "import ", "from "];

/// Words that go on with the statement before.
const GOES_ON: &[&str] = &["elif", "else", "except", "finally"];

/// Reads a source in halves. Answers the whole tree and the identity of all its statements, but for
/// a deep tree: that is not walked here. None if the source can not be read so, which says nothing
/// of it.
pub(super) fn read(source: &str) -> Option<(Tree, Option<Identity<'_>>)> {
    read_at(source, cut(source)?)
}

/// Reads a source in two parts, of which the second begins at a margin.
fn read_at(source: &str, at: usize) -> Option<(Tree, Option<Identity<'_>>)> {
    let before = source.get(..at)?;
    let ((mut tree, identity), (mut rest, more)) = both(
        || identified(source, parse::parse(before)),
        || identified(source, parse::parse_from(source, at)),
    );
    if !tree.faults.is_empty() || !rest.faults.is_empty() {
        discard(tree);
        discard(rest);
        return None;
    }
    tree.first = tree.module.body.len();
    tree.module.range = tree.module.range.cover(rest.module.range);
    tree.module.body.append(&mut rest.module.body);
    tree.deep |= rest.deep;
    let identity = identity.zip(more).map(|(mut identity, more)| {
        identity.append(more);
        identity
    });
    Some((tree, identity))
}

/// A tree, and the identity of its statements while they are at hand.
fn identified(source: &str, tree: Tree) -> (Tree, Option<Identity<'_>>) {
    let counts = tree.faults.is_empty() && !tree.deep;
    let identity = counts.then(|| {
        let mut identity = Identity::new(source);
        tree.module.body.iter().for_each(|statement| identity.add(statement));
        identity
    });
    (tree, identity)
}

/// Drops a tree that is not deep, each half on a thread.
pub(super) fn let_go(tree: Tree) {
    let mut body = tree.module.body;
    if tree.first >= body.len() {
        return;
    }
    let rest = Mutex::new(body.split_off(tree.first));
    let take = || std::mem::take(&mut *rest.lock().unwrap_or_else(PoisonError::into_inner));
    both(|| drop(body), || drop(take()));
}

/// Drops a tree that may be deep.
fn discard(tree: Tree) {
    if tree.deep {
        roomy(|| parse::cut_chains(&mut { tree }.module));
    }
}

/// Where the second half begins: past the middle of the source, and before its last quarter.
fn cut(source: &str) -> Option<usize> {
    if source.len() > MAX_BYTES {
        return None;
    }
    let middle = source.len() / 2..source.len() / 4 * 3;
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
