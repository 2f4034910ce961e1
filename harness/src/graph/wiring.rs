use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::step::{Policy, QuestionType};

use super::Budget;

/// The plain data of a graph, which `transition` and `validate` read.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    pub(crate) name: Arc<str>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) start: usize,
    pub(crate) on_error: Option<Edge>,
    pub(crate) finally: Option<Edge>,
    pub(crate) budget: Budget,
    /// Where the loop was declared.
    pub(crate) at: &'static Location<'static>,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    /// Former names of the step. A session saved at one of them resumes at this step.
    pub(crate) aliases: Vec<Arc<str>>,
    pub(crate) kind: Kind,
    /// The question of a gate.
    pub(crate) question: Option<QuestionType>,
    /// How long the question of a gate waits. `None` waits indefinitely.
    pub(crate) expires: Option<Expiry>,
    pub(crate) exit: Exit,
    pub(crate) policy: Policy,
    pub(crate) on_error: Option<Edge>,
    pub(crate) at_most: Option<AtMost>,
    pub(crate) at: &'static Location<'static>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Decide,
    Gate,
    Each,
    /// Switched off, with the reason. No edge may lead here.
    Off(Arc<str>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: usize,
    pub(crate) at: &'static Location<'static>,
}

/// How often a step may be entered in one turn, and the target of further entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtMost {
    pub(crate) times: u32,
    pub(crate) instead: Edge,
}

/// How long a gate waits, and the target if no answer arrives by then. Without a target, the gate
/// fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    pub(crate) after: Duration,
    pub(crate) to: Option<Edge>,
}

#[derive(Clone, Debug)]
pub(crate) enum Exit {
    Then(Edge),
    End,
    Route { signals: &'static str, branches: Vec<Branch> },
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) signal: &'static str,
    pub(crate) dest: Dest,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Dest {
    Step(Edge),
    End,
}

impl Exit {
    /// The enum and the signal of a branch.
    pub(crate) fn signal(&self, branch: Option<usize>) -> Option<(&'static str, &'static str)> {
        match (self, branch) {
            (Self::Route { signals, branches }, Some(branch)) => {
                branches.get(branch).map(|branch| (*signals, branch.signal))
            }
            _ => None,
        }
    }
}

impl Node {
    /// The targets when nothing fails.
    pub(crate) fn onward(&self) -> impl Iterator<Item = Dest> + '_ {
        let (single, branches): (Option<Dest>, &[Branch]) = match &self.exit {
            Exit::Then(edge) => (Some(Dest::Step(*edge)), &[]),
            Exit::End => (Some(Dest::End), &[]),
            Exit::Route { branches, .. } => (None, branches),
        };
        let instead = self.at_most.map(|limit| Dest::Step(limit.instead));
        let expired = self.expires.and_then(|expiry| expiry.to).map(Dest::Step);
        let branches = branches.iter().map(|branch| branch.dest);
        single.into_iter().chain(branches).chain(instead).chain(expired)
    }
}

impl Wiring {
    /// Every step that is a target.
    pub(crate) fn targets(&self) -> impl Iterator<Item = usize> + '_ {
        let edges = self.nodes.iter().flat_map(|node| {
            let onward = node.onward().filter_map(|dest| match dest {
                Dest::Step(edge) => Some(edge.to),
                Dest::End => None,
            });
            onward.chain(node.on_error.map(|edge| edge.to))
        });
        let loops = [self.on_error, self.finally].into_iter().flatten().map(|edge| edge.to);
        edges.chain(loops).chain([self.start])
    }

    /// The target of a failure of `step`: its own error step, otherwise the loop's. Steps on the
    /// loop's error route have only their own, so a failing error step never leads to itself.
    pub(crate) fn error_route(&self, step: usize) -> Option<Edge> {
        let own = self.nodes[step].on_error.filter(|edge| edge.to != step);
        own.or_else(|| self.on_error.filter(|_| !self.handles_errors(step)))
    }

    /// Whether `step` is the loop's error step or follows it on the error route.
    fn handles_errors(&self, step: usize) -> bool {
        let first = self.on_error.map(|edge| edge.to);
        let next = |at: &usize| self.nodes[*at].on_error.map(|edge| edge.to);
        std::iter::successors(first, next).take(self.nodes.len()).any(|at| at == step)
    }
}
