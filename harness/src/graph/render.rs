//! Drawings of a graph: one walk over its steps and edges, one [`Pen`] per format.
//!
//! The walk decides what is drawn, in which order, and what is marked. A pen only writes its
//! format. All output is appended to one string.

mod dot;
mod mermaid;
#[cfg(test)]
mod tests;
mod trail;

use std::borrow::Cow;
use std::fmt;

use super::wiring::{Branch, Dest, Exit, Kind, Node, Wiring};
use crate::text::shown;

#[cfg(feature = "report")]
pub(crate) use mermaid::label as mermaid_label;
pub(super) use trail::Trail;

/// Shown in place of an empty name.
const NAMELESS: &str = "(no name)";

/// A source or target of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spot {
    Start,
    Step(usize),
    Finish,
    /// The source of the loop's error route.
    Failed,
}

/// An edge to draw.
struct Line<'a> {
    from: Spot,
    to: Spot,
    words: Option<Cow<'a, str>>,
    dotted: bool,
    /// Whether a marked path took it.
    taken: bool,
}

/// A step to draw.
struct Box<'a> {
    step: usize,
    kind: &'a Kind,
    /// Its name within its loop.
    name: &'a str,
    /// How often the marked paths name it. 0 if they do not.
    visits: usize,
    /// How many nested loops it is inside.
    depth: usize,
}

/// How a format writes each element of the walk.
trait Pen {
    fn begin(&mut self, name: &str) -> fmt::Result;
    /// The loop has no start.
    fn no_start(&mut self) -> fmt::Result;
    /// A nested loop, the `nth` of all, at `depth`.
    fn open(&mut self, nth: usize, depth: usize, name: &str) -> fmt::Result;
    fn shut(&mut self, depth: usize) -> fmt::Result;
    fn step(&mut self, step: &Box<'_>) -> fmt::Result;
    /// The step is switched off.
    fn off(&mut self, step: usize) -> fmt::Result;
    fn edge(&mut self, line: &Line<'_>) -> fmt::Result;
    fn finish(&mut self) -> fmt::Result;
    fn failed(&mut self) -> fmt::Result;
    fn close(self) -> Result<String, fmt::Error>;
}

pub(super) fn mermaid(wiring: &Wiring, trail: Option<&Trail>) -> String {
    draw(wiring, trail, mermaid::Mermaid::default())
}

pub(super) fn dot(wiring: &Wiring, trail: Option<&Trail>) -> String {
    draw(wiring, trail, dot::Dot::default())
}

fn draw(wiring: &Wiring, trail: Option<&Trail>, pen: impl Pen) -> String {
    // Writing to a `String` cannot fail.
    walk(wiring, trail, pen).unwrap_or_default()
}

fn walk(wiring: &Wiring, trail: Option<&Trail>, mut pen: impl Pen) -> Result<String, fmt::Error> {
    pen.begin(&wiring.name)?;
    match wiring.start {
        usize::MAX => pen.no_start()?,
        start => pen.edge(&Line::plain(Spot::Start, Spot::Step(start)).marked(trail))?,
    }
    // The open groups, and the edges to draw after them. Mermaid draws every step named inside a
    // group in that group, so the edges of its steps follow it.
    let mut open: Vec<&str> = Vec::new();
    let mut deferred: Vec<(usize, &Node)> = Vec::new();
    let mut opened = 0;
    for (step, node) in wiring.nodes.iter().enumerate() {
        let groups = groups(&node.name);
        let shared = open.iter().zip(&groups).take_while(|(one, other)| one == other).count();
        for depth in (shared..open.len()).rev() {
            pen.shut(depth)?;
        }
        open.truncate(shared);
        if open.is_empty() {
            for (step, node) in deferred.drain(..) {
                leave(&mut pen, trail, step, node)?;
            }
        }
        for group in &groups[shared..] {
            pen.open(opened, open.len(), group)?;
            open.push(group);
            opened += 1;
        }
        let name = match open.is_empty() {
            true => &*node.name,
            false => node.name.rsplit('/').next().unwrap_or_default(),
        };
        let visits = trail.map_or(0, |trail| trail.visits(step));
        pen.step(&Box { step, kind: &node.kind, name, visits, depth: open.len() })?;
        if open.is_empty() {
            leave(&mut pen, trail, step, node)?;
        } else {
            deferred.push((step, node));
        }
    }
    for depth in (0..open.len()).rev() {
        pen.shut(depth)?;
    }
    for (step, node) in deferred {
        leave(&mut pen, trail, step, node)?;
    }
    pen.finish()?;
    if let Some(edge) = wiring.on_error {
        pen.failed()?;
        let line = Line::plain(Spot::Failed, Spot::Step(edge.to)).dotted();
        pen.edge(&line.marked(trail))?;
    }
    if let Some(edge) = wiring.finally {
        let line = Line::plain(Spot::Finish, Spot::Step(edge.to)).dotted().saying("finally");
        pen.edge(&line.marked(trail))?;
    }
    pen.close()
}

/// Draws the edges that leave a step.
fn leave(pen: &mut impl Pen, trail: Option<&Trail>, step: usize, node: &Node) -> fmt::Result {
    if matches!(node.kind, Kind::Off(_)) {
        return pen.off(step);
    }
    lines(step, node).try_for_each(|line| pen.edge(&line.marked(trail)))
}

/// The nested loops that a step belongs to: `Review/Approve` is in `Review`. A name with very many
/// parts is not split.
fn groups(name: &str) -> Vec<&str> {
    const DEEPEST: usize = 8;
    let mut parts: Vec<&str> = name.split('/').take(DEEPEST + 2).collect();
    if parts.len() > DEEPEST + 1 || parts.iter().any(|part| part.trim().is_empty()) {
        return Vec::new();
    }
    parts.pop();
    parts
}

fn indent(depth: usize) -> String {
    "    ".repeat(depth + 1)
}

/// The edges of a loop by the names of their steps, and whether they are taken on a failure. Without a
/// name an edge begins where a turn does, or leads to where it ends.
#[cfg(feature = "report")]
pub(super) fn edges(wiring: &Wiring) -> Vec<(Option<&str>, Option<&str>, bool)> {
    let name = |step: usize| wiring.nodes.get(step).map(|node| &*node.name);
    let on = wiring.nodes.iter().enumerate().filter(|(_, node)| !matches!(node.kind, Kind::Off(_)));
    let leaving = on.flat_map(|(step, node)| {
        lines(step, node).map(move |line| match line.to {
            Spot::Step(to) => (name(step), name(to), line.dotted),
            _ => (name(step), None, line.dotted),
        })
    });
    std::iter::once((None, name(wiring.start), false)).chain(leaving).collect()
}

/// The targets of the edges that leave a step.
pub(super) fn destinations(step: usize, node: &Node) -> impl Iterator<Item = Spot> + '_ {
    lines(step, node).map(|line| line.to)
}

fn lines(step: usize, node: &Node) -> impl Iterator<Item = Line<'_>> {
    let from = Spot::Step(step);
    let (single, branches): (Option<Spot>, &[Branch]) = match &node.exit {
        Exit::Then(edge) => (Some(Spot::Step(edge.to)), &[]),
        Exit::End => (Some(Spot::Finish), &[]),
        Exit::Route { branches, .. } => (None, branches),
    };
    let branches = branches.iter().map(move |Branch { signal, dest }| {
        let to = match dest {
            Dest::Step(edge) => Spot::Step(edge.to),
            Dest::End => Spot::Finish,
        };
        Line::plain(from, to).saying(*signal)
    });
    let instead = node.at_most.map(|limit| {
        Line::plain(from, Spot::Step(limit.instead.to)).saying(format!("after {}", limit.times))
    });
    let expired = node.expires.and_then(|expiry| {
        let words = format!("expires after {:?}", expiry.after);
        Some(Line::plain(from, Spot::Step(expiry.to?.to)).saying(words))
    });
    let on_error =
        node.on_error.map(|edge| Line::plain(from, Spot::Step(edge.to)).dotted().saying("error"));
    let single = single.map(|to| Line::plain(from, to));
    single.into_iter().chain(branches).chain(instead).chain(expired).chain(on_error)
}

impl<'a> Line<'a> {
    fn plain(from: Spot, to: Spot) -> Self {
        Self { from, to, words: None, dotted: false, taken: false }
    }

    fn dotted(self) -> Self {
        Self { dotted: true, ..self }
    }

    fn saying(self, words: impl Into<Cow<'a, str>>) -> Self {
        Self { words: Some(words.into()), ..self }
    }

    fn marked(self, trail: Option<&Trail>) -> Self {
        Self { taken: trail.is_some_and(|trail| trail.took(self.from, self.to)), ..self }
    }
}

/// A step's name for its label: on one line, bounded, with the number of visits. An empty name is
/// replaced, because it would be invisible and Mermaid rejects empty labels.
fn named(name: &str, visits: usize) -> String {
    let name = match name.trim() {
        "" => NAMELESS.to_owned(),
        _ => name.replace(['\n', '\r'], " "),
    };
    match visits {
        0 => shown(&name).into_owned(),
        visits => format!("{} ×{visits}", shown(&name)),
    }
}
