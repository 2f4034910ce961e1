//! Drawings of a graph: one walk over its steps and edges, one [`Pen`] a format.
//!
//! The walk decides what is drawn, in which order and what of it is marked; a pen only knows how its
//! format writes that. Everything is written once, to the end of one string.

mod dot;
mod mermaid;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use super::drawing::Trail;
use super::wiring::{Branch, Dest, Exit, Node, Wiring};
use crate::text::bounded;

/// The most bytes of a name in a label.
const MAX_LABEL: usize = 200;

/// Something that edges lead to or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spot {
    Start,
    Step(usize),
    Finish,
    /// Where the error route of the whole loop comes from.
    Failed,
}

/// An edge, as it is drawn.
struct Line<'a> {
    from: Spot,
    to: Spot,
    words: Option<Cow<'a, str>>,
    dotted: bool,
    /// Whether the marked path took it.
    taken: bool,
}

/// How a format writes what the walk meets.
trait Pen {
    fn begin(&mut self, name: &str) -> fmt::Result;
    /// `visits` is 0 for a step that is not on the marked path.
    fn step(&mut self, step: usize, node: &Node, visits: usize) -> fmt::Result;
    fn edge(&mut self, line: &Line<'_>) -> fmt::Result;
    fn finish(&mut self) -> fmt::Result;
    fn failed(&mut self) -> fmt::Result;
    fn close(self) -> Result<String, fmt::Error>;
}

pub(super) fn mermaid(wiring: &Wiring, trail: Option<&Trail>) -> String {
    draw(wiring, trail, mermaid::Mermaid::new(trail.map(|_| MAX_LABEL)))
}

pub(super) fn dot(wiring: &Wiring, trail: Option<&Trail>) -> String {
    draw(wiring, trail, dot::Dot::default())
}

fn draw(wiring: &Wiring, trail: Option<&Trail>, pen: impl Pen) -> String {
    // Writing to a String cannot fail.
    walk(wiring, trail, pen).unwrap_or_default()
}

fn walk(wiring: &Wiring, trail: Option<&Trail>, mut pen: impl Pen) -> Result<String, fmt::Error> {
    pen.begin(&wiring.name)?;
    pen.edge(&Line::plain(Spot::Start, Spot::Step(wiring.start)).marked(trail))?;
    for (step, node) in wiring.nodes.iter().enumerate() {
        pen.step(step, node, trail.map_or(0, |trail| trail.visits(step)))?;
        for line in lines(step, node) {
            pen.edge(&line.marked(trail))?;
        }
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

/// The edges that leave a step.
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
    let on_error =
        node.on_error.map(|edge| Line::plain(from, Spot::Step(edge.to)).dotted().saying("error"));
    let single = single.map(|to| Line::plain(from, to));
    single.into_iter().chain(branches).chain(instead).chain(on_error)
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

/// A step's name as its label says it: bounded, with how often it was visited.
fn named(name: &str, visits: usize, most: Option<usize>) -> Cow<'_, str> {
    let name = match most {
        Some(most) if name.len() > most => Cow::Owned(bounded(name.to_owned(), most)),
        _ => Cow::Borrowed(name),
    };
    match visits {
        0 => name,
        visits => Cow::Owned(format!("{name} ×{visits}")),
    }
}
