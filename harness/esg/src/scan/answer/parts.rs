//! Scans a large source in parts, with two threads.
//!
//! The parts begin at unindented words that cannot continue an earlier statement. Only the grammar
//! shows whether a cut went through a string or a bracket: such a part does not parse. So the parts
//! are used only if none has an error. They then equal the whole, because each ends with a complete
//! line, and before such a line no construct is open that an unindented line could continue.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::scope;

use super::walked;
use crate::scan::Scan;
use crate::scan::beside::{beside, roomy};
use crate::scan::declare::declare;
use crate::scan::identity::Identity;
use crate::scan::parse::{self, MAX_BYTES, Tree};

/// Unindented words that begin most definitions and many other statements.
const STARTS: &[&str] = &["def ", "class ", "async ", "@", "import ", "from "];

/// Words that continue the previous statement.
const CONTINUES: &[&str] = &["elif", "else", "except", "finally"];

/// The approximate size of a part in bytes. The tree of a part fits into the cache, and its lists
/// are too small for the allocator to return their memory to the system when they are dropped.
const PART: usize = 16 << 10;

/// The approximate least number of parts.
const PARTS: usize = 4;

/// How often parts are merged that were cut within a statement, each time twice as many.
const MENDS: u32 = 4;

/// The result of scanning in parts.
pub(super) enum Parts {
    /// The scan.
    Read(Box<Scan>),
    /// The whole tree, without errors, which needs a large stack.
    Deep(Tree),
    /// The source cannot be scanned in parts.
    No,
}

/// A part of a source.
struct Part {
    range: Range<usize>,
    made: OnceLock<Made>,
}

/// The tree of a part.
struct Made {
    tree: Tree,
    /// Whether the second thread made it, and owns its memory.
    beside: bool,
}

impl Part {
    fn new(range: Range<usize>) -> Self {
        Self { range, made: OnceLock::new() }
    }

    fn tree(&self) -> Option<&Tree> {
        self.made.get().map(|made| &made.tree)
    }

    fn make(&self, source: &str, beside: bool) {
        self.made
            .get_or_init(|| Made { tree: parse::parse_part(source, self.range.clone()), beside });
    }
}

/// Scans a source in parts.
pub(super) fn read(source: &str) -> Parts {
    read_at(source, &cuts(source))
}

/// Scans a source in the parts that begin at these offsets, and the one before them.
fn read_at(source: &str, cuts: &[usize]) -> Parts {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([source.len()]);
    let mut parts: Vec<Part> = starts.zip(ends).map(|(from, to)| Part::new(from..to)).collect();
    let mut mends = 0;
    // A single part is the whole, which is scanned directly.
    while parts.len() > 1 {
        let unfit = match together(source, &parts) {
            Ok(scan) => {
                let_go(parts);
                return Parts::Read(Box::new(scan));
            }
            Err(unfit) => unfit,
        };
        if parts.get(unfit).and_then(Part::tree).is_some_and(|tree| tree.faults.is_empty()) {
            return whole(source, parts);
        }
        // The parts before it have no error, so it begins with a statement, and may end within one.
        let last = (unfit + (1 << mends)).min(parts.len() - 1);
        if mends == MENDS || last <= unfit {
            break;
        }
        mend(&mut parts, unfit..=last);
        mends += 1;
    }
    parts.into_iter().for_each(discard);
    Parts::No
}

/// Merges several parts.
fn mend(parts: &mut Vec<Part>, range: RangeInclusive<usize>) {
    let end = parts.get(*range.end()).map(|part| part.range.end);
    let start = parts.get(*range.start()).map(|part| part.range.start);
    if let Some((start, end)) = start.zip(end) {
        let part = Part::new(start..end);
        parts.splice(range, [part]).for_each(discard);
    }
}

/// Scans a source with two threads. Each parses the next free part. This thread walks the parsed
/// parts in order meanwhile; the other computes their identity during the second walk. On failure
/// returns the first part that cannot be walked here, or not as a part of the whole.
fn together(source: &str, parts: &[Part]) -> Result<Scan, usize> {
    let free = AtomicUsize::new(0);
    let next = || parts.get(free.fetch_add(1, Ordering::Relaxed));
    // Each thread notifies the other of every parsed tree. A thread that panics closes its channel,
    // so the other does not wait.
    let (notify_here, heard_here) = channel();
    let (notify_there, heard_there) = channel();
    let ends = Mutex::new(Some((notify_here, heard_there)));
    let work = || {
        let (notify, heard) = ends.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        while let Some(part) = next() {
            part.make(source, true);
            // The other thread may have ended.
            let _ = notify.send(());
        }
        for part in parts {
            while part.tree().is_none() {
                heard.recv().ok()?;
            }
        }
        identified(source, parts)
    };
    scope(|scope| {
        let identity = beside(scope, &work);
        let mut unfit = None;
        let trees = parts.iter().enumerate().map_while(|(at, part)| {
            while part.tree().is_none() {
                match next() {
                    Some(part) => {
                        part.make(source, false);
                        let _ = notify_there.send(());
                    }
                    None if heard_here.recv().is_ok() => {}
                    None => break,
                }
            }
            let tree = part.tree().filter(|tree| plain(tree));
            unfit = tree.is_none().then_some(at);
            tree
        });
        let declared = declare(trees.flat_map(|tree| &tree.module.body), source, |_| ());
        drop(notify_there);
        if let Some(unfit) = unfit {
            free.store(parts.len(), Ordering::Relaxed);
            return Err(unfit);
        }
        let module = parts.iter().filter_map(Part::tree).map(|tree| tree.module.body.as_slice());
        let module: Vec<_> = module.collect();
        let identity = || identity().or_else(|| identified(source, parts)).unwrap_or_default();
        Ok(walked(source, declared, std::iter::empty(), &module, identity))
    })
}

/// The identity of the whole. `None` if a part is not plain.
fn identified(source: &str, parts: &[Part]) -> Option<([u8; 32], Vec<[u8; 32]>)> {
    let mut identity = Identity::new(source);
    for part in parts {
        let tree = part.tree().filter(|tree| plain(tree))?;
        tree.module.body.iter().for_each(|one| identity.add(one));
    }
    Some(identity.done())
}

/// Whether a tree can be walked here as a part of the whole.
fn plain(tree: &Tree) -> bool {
    tree.faults.is_empty() && !tree.deep
}

/// Merges the trees of all parts.
fn whole(source: &str, parts: Vec<Part>) -> Parts {
    parts.iter().for_each(|part| part.make(source, false));
    if parts.iter().filter_map(Part::tree).any(|tree| !tree.faults.is_empty()) {
        parts.into_iter().for_each(discard);
        return Parts::No;
    }
    let trees = parts.into_iter().filter_map(|part| part.made.into_inner()).map(|made| made.tree);
    let tree = trees.reduce(|mut tree, mut more| {
        tree.module.body.append(&mut more.module.body);
        tree.module.range = tree.module.range.cover(more.module.range);
        tree.deep |= more.deep;
        tree
    });
    tree.map_or(Parts::No, Parts::Deep)
}

/// Drops trees that are not deep. Each thread drops its own, in parallel.
fn let_go(parts: Vec<Part>) {
    let made = parts.into_iter().filter_map(|part| part.made.into_inner());
    let (there, here): (Vec<Made>, Vec<Made>) = made.partition(|made| made.beside);
    let there = Mutex::new(there);
    let drop_there =
        || drop(std::mem::take(&mut *there.lock().unwrap_or_else(PoisonError::into_inner)));
    scope(|scope| {
        let dropped = beside(scope, &drop_there);
        drop(here);
        dropped();
    });
}

/// Drops a part whose tree may be deep.
fn discard(part: Part) {
    if let Some(Made { mut tree, .. }) = part.made.into_inner()
        && tree.deep
    {
        roomy(move || parse::cut_chains(&mut tree.module));
    }
}

/// The offsets at which the parts after the first begin.
fn cuts(source: &str) -> Vec<usize> {
    if source.len() > MAX_BYTES {
        return Vec::new();
    }
    let size = PART.min(source.len() / PARTS).max(1);
    let mut cuts = Vec::with_capacity(source.len() / size);
    let mut from = size;
    while from < source.len() {
        let near = from..source.len().min(from + size);
        let likely = |at: &usize| begins(source, *at, STARTS);
        let at = margins(source, near.clone()).find(likely);
        let at = at.or_else(|| margins(source, near).next());
        cuts.extend(at);
        from = at.unwrap_or(from) + size;
    }
    cuts
}

/// The offsets of unindented lines in this range that begin with a word or a decorator and cannot
/// continue an earlier statement.
fn margins(source: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = source.as_bytes();
    let within = bytes.get(range.clone()).unwrap_or_default();
    let ends = within.iter().zip(range).filter(|(byte, _)| **byte == b'\n');
    ends.map(|(_, end)| end + 1).filter(move |&at| {
        let line = bytes.get(..at - 1).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let next = bytes.get(at).copied().unwrap_or_default();
        let word = next.is_ascii_alphabetic() || next == b'_' || next == b'@';
        word && !line.ends_with(b"\\") && !begins(source, at, CONTINUES)
    })
}

/// Whether one of these words stands there.
fn begins(source: &str, at: usize, words: &[&str]) -> bool {
    let rest = source.get(at..).unwrap_or_default();
    words.iter().any(|word| rest.starts_with(word))
}

#[cfg(test)]
mod tests;
