//! Shrinks a failing case.
use crate::case::{Case, Edit};

/// The smallest case found that still `fails`, within a number of tries.
pub(crate) fn shrink(case: &Case, mut tries: usize, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    loop {
        let mut better = false;
        for smaller in candidates(&best) {
            if tries == 0 {
                return best;
            }
            tries -= 1;
            if fails(&smaller) {
                best = smaller;
                better = true;
                break;
            }
        }
        if !better {
            return best;
        }
    }
}

/// Cases with something left out, the most first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for at in (0..case.edits.len()).rev() {
        let mut one = case.clone();
        one.edits.remove(at);
        all.push(one);
    }
    for at in (0..case.steps.len()).rev() {
        let mut one = case.clone();
        one.steps.remove(at);
        all.push(one);
    }
    for (at, (_, source)) in case.steps.iter().enumerate() {
        for shorter in shorter(source) {
            let mut one = case.clone();
            one.steps[at].1 = shorter;
            all.push(one);
        }
    }
    for (at, edit) in case.edits.iter().enumerate() {
        if let Edit::Replace(_, source) | Edit::Insert(_, _, source) = edit {
            for shorter in shorter(source) {
                let mut one = case.clone();
                if let Edit::Replace(_, source) | Edit::Insert(_, _, source) = &mut one.edits[at] {
                    *source = shorter;
                }
                all.push(one);
            }
        }
    }
    all
}

/// The source without one of its statements.
fn shorter(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| {
            let continuing = ["except", "else", "finally", "@"];
            let decorated = at > 0 && lines[at - 1].starts_with('@');
            let next = lines[at].starts_with(' ')
                || continuing[..3].iter().any(|w| lines[at].starts_with(w));
            !next && !decorated
        })
        .collect();
    if starts.len() < 2 {
        return Vec::new();
    }
    let end = |at: usize| starts.get(at + 1).copied().unwrap_or(lines.len());
    (0..starts.len())
        .map(|at| [&lines[..starts[at]], &lines[end(at)..]].concat().join("\n"))
        .collect()
}
