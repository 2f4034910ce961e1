//! The rules that rustc cannot check, one function per rule. Each names the steps that violate it.
//!
//! The roots of the loop are the start, the error routes and `finally`. *Onward* edges are those
//! taken when nothing fails, including the edges of `.at_most(..)`.
//!
//! Each rule takes time linear in steps and edges, so large generated loops validate quickly. Only
//! the suggestions for unreachable steps compare names pairwise; a loop with very many unreachable
//! steps gets no suggestions.

use std::collections::HashMap;
use std::panic::Location;

use crate::text::{listed, near, prose, shown};

use super::components::components;
use super::wiring::{Dest, Edge, Kind, Wiring};
use super::{Rule, Violation};

/// Steps by the position of the step whose name they repeat.
type Twins = HashMap<usize, Vec<usize>>;

/// Above this many name comparisons, unreachable steps are reported without a suggestion.
const MAX_COMPARED: usize = 1_000_000;

pub(crate) fn violations(wiring: &Wiring) -> Vec<Violation> {
    violations_with(wiring, &[])
}

/// The same for a loop whose last nodes repeat names: each repeats the step at its position in
/// `repeats`. Edges lead to the first step of a name, but may mean the other one. So a repeated
/// step is reachable if the first one is.
pub(crate) fn violations_with(wiring: &Wiring, repeats: &[usize]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut twins = Twins::new();
    let first = wiring.nodes.len() - repeats.len();
    for (step, repeated) in repeats.iter().enumerate() {
        twins.entry(*repeated).or_default().push(first + step);
    }
    // A loop built at run time may lack a start. What it reaches is then unknown.
    let started = wiring.start < wiring.nodes.len();
    let endless = started && no_exit(wiring, &mut found);
    if started {
        unreachable(wiring, &twins, first, &mut found);
    }
    endless_cycles(wiring, endless, &mut found);
    error_cycles(wiring, &mut found);
    ask_in_finally(wiring, &twins, &mut found);
    off(wiring, &mut found);
    aliases(wiring, &mut found);
    found
}

fn violation(
    wiring: &Wiring,
    rule: Rule,
    steps: &[usize],
    at: &'static Location<'static>,
    message: String,
) -> Violation {
    Violation {
        rule,
        steps: steps.iter().map(|step| wiring.nodes[*step].name.to_string()).collect(),
        declared: at.into(),
        first: None,
        near: None,
        message,
    }
}

/// The steps reachable from `roots` over onward edges, and over error edges if `failing`. Each
/// comes with its `twins`.
fn reach(
    wiring: &Wiring,
    twins: &Twins,
    roots: impl IntoIterator<Item = usize>,
    failing: bool,
) -> Vec<bool> {
    let mut seen = vec![false; wiring.nodes.len()];
    let mut open: Vec<usize> = roots.into_iter().collect();
    while let Some(step) = open.pop() {
        if std::mem::replace(&mut seen[step], true) {
            continue;
        }
        let node = &wiring.nodes[step];
        open.extend(twins.get(&step).into_iter().flatten());
        open.extend(node.onward().filter_map(step_of));
        if failing {
            open.extend(node.on_error.map(|edge| edge.to));
        }
    }
    seen
}

fn step_of(dest: Dest) -> Option<usize> {
    match dest {
        Dest::Step(edge) => Some(edge.to),
        Dest::End => None,
    }
}

fn roots(wiring: &Wiring) -> impl Iterator<Item = usize> {
    let to = |edge: Option<Edge>| edge.map(|edge| edge.to);
    [Some(wiring.start), to(wiring.on_error), to(wiring.finally)].into_iter().flatten()
}

/// Only steps before `end`: a repeated step is not reported again.
fn unreachable(wiring: &Wiring, twins: &Twins, end: usize, found: &mut Vec<Violation>) {
    let mut seen = reach(wiring, twins, roots(wiring), true);
    seen.truncate(end);
    let start = shown(&wiring.nodes[wiring.start].name);
    let others: Vec<&str> = wiring.nodes[..end]
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != wiring.start && seen[*other])
        .map(|(_, node)| &*node.name)
        .collect();
    let compare = (seen.len() - others.len()).saturating_mul(others.len()) <= MAX_COMPARED;
    let nodes = wiring.nodes[..end].iter().enumerate();
    for (step, node) in nodes.filter(|(step, _)| !seen[*step]) {
        if matches!(node.kind, Kind::Off(_)) {
            continue;
        }
        let known = others.iter().copied().filter(|_| compare);
        let near = near(&node.name, known).map(str::to_owned);
        let hint = match &near {
            Some(near) => format!(
                "(did an edge to `{}` mean `{}`? otherwise route to it, or remove it)",
                shown(near),
                shown(&node.name)
            ),
            None => "(route to it, or remove it)".to_owned(),
        };
        let message =
            format!("step `{}` cannot be reached from `{start}` {hint}", shown(&node.name));
        let mut violation = violation(wiring, Rule::Unreachable, &[step], node.at, message);
        violation.near = near;
        found.push(violation);
    }
}

/// Whether no reachable step ends the loop.
fn no_exit(wiring: &Wiring, found: &mut Vec<Violation>) -> bool {
    let seen = reach(wiring, &Twins::new(), [wiring.start], false);
    let ends = |step: usize| wiring.nodes[step].onward().any(|dest| matches!(dest, Dest::End));
    let endless = !(0..wiring.nodes.len()).any(|step| seen[step] && ends(step));
    if endless {
        let start = &wiring.nodes[wiring.start];
        let message = format!(
            "no path from step `{}` ends the loop (add `.end()` to a step, or map a signal to \
             `end()`)",
            shown(&start.name)
        );
        found.push(violation(wiring, Rule::NoExit, &[wiring.start], start.at, message));
    }
    endless
}

/// A set of steps that reach each other and nothing else never ends: a strongly connected component
/// with a cycle, without an end, and without an edge to another component. If the loop is
/// `endless`, the component of the start is omitted, because `NoExit` reports it.
fn endless_cycles(wiring: &Wiring, endless: bool, found: &mut Vec<Violation>) {
    let onward: Vec<Vec<usize>> =
        wiring.nodes.iter().map(|node| node.onward().filter_map(step_of).collect()).collect();
    let (component, count) = components(&onward);
    let mut members = vec![Vec::new(); count];
    let mut cyclic = vec![false; count];
    let mut leaves = vec![false; count];
    for (step, next) in onward.iter().enumerate() {
        let own = component[step];
        members[own].push(step);
        cyclic[own] |= members[own].len() > 1 || next.contains(&step);
        leaves[own] |= wiring.nodes[step].onward().any(|dest| matches!(dest, Dest::End))
            || next.iter().any(|next| component[*next] != own);
    }
    let reported = endless.then(|| component[wiring.start]);
    let mut cycles: Vec<&Vec<usize>> = (0..count)
        .filter(|at| cyclic[*at] && !leaves[*at] && reported != Some(*at))
        .map(|at| &members[at])
        .collect();
    cycles.sort_by_key(|cycle| cycle.first());
    for cycle in cycles {
        let names: Vec<String> = cycle
            .iter()
            .map(|inside| format!("`{}`", shown(&wiring.nodes[*inside].name)))
            .collect();
        let message = format!(
            "no edge leaves the cycle of {} (end it, route out of it, or bound a step of it with \
             `.at_most(n, step)`)",
            listed(&names, ", ")
        );
        let at = wiring.nodes[cycle[0]].at;
        found.push(violation(wiring, Rule::EndlessCycle, cycle, at, message));
    }
}

/// Error routes must end: following them never visits a step twice. Each step has at most one error
/// route, so each step is walked once.
fn error_cycles(wiring: &Wiring, found: &mut Vec<Violation>) {
    // The walk that first visited each step, and the step's index in that walk.
    let mut met: Vec<Option<(usize, usize)>> = vec![None; wiring.nodes.len()];
    for walk in 0..wiring.nodes.len() {
        let mut path = Vec::new();
        let mut at = walk;
        while met[at].is_none() {
            met[at] = Some((walk, path.len()));
            path.push(at);
            let Some(edge) = wiring.nodes[at].on_error else {
                break;
            };
            at = edge.to;
            let Some((_, start)) = met[at].filter(|(first, _)| *first == walk) else {
                continue;
            };
            let cycle = &path[start..];
            let names: Vec<_> =
                cycle.iter().chain([&at]).map(|step| shown(&wiring.nodes[*step].name)).collect();
            let message = format!(
                "the error route `{}` is a cycle (route the failures of an error step to \
                 another step, or let them fail the run)",
                listed(&names, "` -> `")
            );
            found.push(violation(wiring, Rule::ErrorCycle, cycle, edge.at, message));
        }
    }
}

fn ask_in_finally(wiring: &Wiring, twins: &Twins, found: &mut Vec<Violation>) {
    let Some(finally) = wiring.finally else {
        return;
    };
    let seen = reach(wiring, twins, [finally.to], true);
    for (step, node) in wiring.nodes.iter().enumerate() {
        if seen[step] && node.kind == Kind::Gate {
            let message = format!(
                "`finally` leads to step `{}`, which asks a question, but a run that is ending does \
                 not wait (ask before the end)",
                shown(&node.name)
            );
            found.push(violation(wiring, Rule::AskInFinally, &[step], node.at, message));
        }
    }
}

/// Nothing leads to a step that is off: no edge, and no root of the loop.
fn off(wiring: &Wiring, found: &mut Vec<Violation>) {
    let mut check = |from: &str, steps: &[usize], to: usize, at: &'static Location<'static>| {
        let node = &wiring.nodes[to];
        if let Kind::Off(why) = &node.kind {
            let message = format!(
                "{from} leads to step `{}`, which is off: {} (change the target, or switch the \
                 step on)",
                shown(&node.name),
                prose(why)
            );
            found.push(violation(wiring, Rule::Off, steps, at, message));
        }
    };
    if wiring.start < wiring.nodes.len() {
        check("the start", &[wiring.start], wiring.start, wiring.at);
    }
    for (step, node) in wiring.nodes.iter().enumerate() {
        let edges = node.onward().filter_map(|dest| match dest {
            Dest::Step(edge) => Some(edge),
            Dest::End => None,
        });
        for edge in edges.chain(node.on_error) {
            check(&format!("step `{}`", shown(&node.name)), &[step], edge.to, edge.at);
        }
    }
    for (words, edge) in [("`on_error`", wiring.on_error), ("`finally`", wiring.finally)] {
        if let Some(edge) = edge {
            check(&format!("{words} of the loop"), &[edge.to], edge.to, edge.at);
        }
    }
}

/// A stored step name must resolve to one step.
fn aliases(wiring: &Wiring, found: &mut Vec<Violation>) {
    if wiring.nodes.iter().all(|node| node.aliases.is_empty()) {
        return;
    }
    let mut taken: HashMap<&str, (usize, &str)> = HashMap::with_capacity(wiring.nodes.len());
    for (step, node) in wiring.nodes.iter().enumerate() {
        taken.entry(&*node.name).or_insert((step, "the name"));
    }
    for (step, node) in wiring.nodes.iter().enumerate() {
        for alias in &node.aliases {
            let Some((other, what)) = taken.get(&**alias).copied() else {
                taken.insert(alias, (step, "an alias"));
                continue;
            };
            let whose = match other == step {
                true => "that step".to_owned(),
                false => format!("step `{}`", shown(&wiring.nodes[other].name)),
            };
            let message = format!(
                "the alias `{}` of step `{}` is already {what} of {whose} (remove one of them)",
                shown(alias),
                shown(&node.name)
            );
            found.push(violation(wiring, Rule::Alias, &[step], node.at, message));
        }
    }
}

#[cfg(test)]
mod tests;
