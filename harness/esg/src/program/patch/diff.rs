//! Writes unified diffs.
use std::fmt::Write as _;

use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};

/// The lines around a change.
const CONTEXT: usize = 3;

/// The unified diff of two sources of a step; empty if they are equal. A
/// [patch](crate::Patch::unified) of it makes the first into the second.
///
/// ```
/// use harness_esg::unified;
///
/// let diff = unified("load", "xs = [1]\n", "xs = [2]\n");
/// assert_eq!(diff, "--- load\n+++ load\n@@ -1 +1 @@\n-xs = [1]\n+xs = [2]\n");
/// ```
#[must_use]
pub fn unified(step: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (before, after) = (lines(old), lines(new));
    let mut out = format!("--- {step}\n+++ {step}\n");
    let ops = capture_diff_slices(Algorithm::Myers, &before, &after);
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let removed = first.old_range().start..last.old_range().end;
        let added = first.new_range().start..last.new_range().end;
        let _ = writeln!(out, "@@ -{} +{} @@", range(&removed), range(&added));
        for op in &group {
            if op.tag() == DiffTag::Equal {
                put(&mut out, ' ', &before[op.old_range()]);
            } else {
                put(&mut out, '-', &before[op.old_range()]);
                put(&mut out, '+', &after[op.new_range()]);
            }
        }
    }
    out
}

fn lines(source: &str) -> Vec<&str> {
    source.split_inclusive('\n').collect()
}

/// The first line, and the number of lines if it is not 1. An empty range is after its line.
fn range(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn put(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}
