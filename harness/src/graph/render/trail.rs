//! The paths that are marked on a drawing.

use std::collections::{HashMap, HashSet};

use crate::graph::wiring::Edge;

use super::{Spot, Wiring, destinations};

/// The steps and edges of the marked paths.
#[derive(Clone, Debug, Default)]
pub(in crate::graph) struct Trail {
    /// The number of visits by step.
    visits: HashMap<usize, usize>,
    edges: HashSet<(Spot, Spot)>,
}

impl Trail {
    pub(super) fn visits(&self, step: usize) -> usize {
        self.visits.get(&step).copied().unwrap_or_default()
    }

    pub(super) fn took(&self, from: Spot, to: Spot) -> bool {
        self.edges.contains(&(from, to))
    }

    pub(in crate::graph) fn follow(
        &mut self,
        wiring: &Wiring,
        path: impl IntoIterator<Item = impl AsRef<str>>,
    ) {
        let nodes = wiring.nodes.iter().enumerate();
        let direct: HashSet<(usize, Spot)> = nodes
            .clone()
            .flat_map(|(step, node)| destinations(step, node).map(move |to| (step, to)))
            .collect();
        // In reverse, so that the first of several steps with one name wins.
        let known: HashMap<&str, usize> =
            nodes.rev().map(|(step, node)| (&*node.name, step)).collect();
        let steps = path.into_iter().filter_map(|name| known.get(name.as_ref()).copied());
        let mut before = None;
        for step in steps {
            *self.visits.entry(step).or_default() += 1;
            let here = Spot::Step(step);
            match before {
                None if step == wiring.start => {
                    self.edges.insert((Spot::Start, here));
                }
                Some(before) if direct.contains(&(before, here)) => {
                    self.edges.insert((Spot::Step(before), here));
                }
                // Another attempt at the same step, or the same step in the next turn.
                Some(before) if before != step => self.arrive(wiring, before, step),
                _ => {}
            }
            before = Some(step);
        }
    }

    /// Marks how the path reached a step without an edge from the step before it.
    fn arrive(&mut self, wiring: &Wiring, before: usize, step: usize) {
        let (before, here) = (Spot::Step(before), Spot::Step(step));
        let leads_here = |edge: Option<Edge>| edge.is_some_and(|edge| edge.to == step);
        if leads_here(wiring.on_error) {
            self.edges.insert((Spot::Failed, here));
        }
        if leads_here(wiring.finally) {
            self.edges.extend([(before, Spot::Finish), (Spot::Finish, here)]);
        }
        if step == wiring.start {
            self.edges.extend([(before, Spot::Finish), (Spot::Start, here)]);
        }
    }
}
