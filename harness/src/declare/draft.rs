//! Declared steps, with targets as the user wrote them. `build()` resolves the targets to positions
//! in the graph. Loops of an enum and loops of names differ only in that.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::graph::{
    AtMost, Branch, Dest, Edge, Executable, Exit, Expiry, Kind, Node, Rule, Target, To,
};
use crate::state::State;
use crate::step::{Action, Lens, Policy, QuestionType, Route};
use crate::text::{listed, near, shown};

/// A line in the user's source.
pub(super) type At = &'static Location<'static>;

/// A target and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Link<St> {
    pub(super) to: St,
    pub(super) at: At,
}

impl<St> Link<St> {
    fn map<T>(self, wrap: &impl Fn(St) -> T) -> Link<T> {
        Link { to: wrap(self.to), at: self.at }
    }
}

/// A violation of a step whose name is not known yet.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) rule: Rule,
    pub(super) at: At,
    pub(super) near: Option<String>,
    /// The message after the step's name: `runs ..`.
    pub(super) does: String,
}

impl Fault {
    pub(super) fn unknown<'a>(
        rule: Rule,
        at: At,
        does: String,
        given: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let near = near(given, known.clone()).map(str::to_owned);
        let hint = match &near {
            Some(near) => format!("(did you mean `{}`?)", shown(near)),
            None => {
                let known: Vec<String> = known.map(|name| format!("`{}`", shown(name))).collect();
                match known.is_empty() {
                    true => "(it has none)".to_owned(),
                    false => format!("(it has {})", listed(&known, ", ")),
                }
            }
        };
        Self { rule, at, near, does: format!("{does} {hint}") }
    }
}

/// What a step does, and its policies.
pub(super) struct Work<C: Context, S: State, St> {
    pub(super) kind: Kind,
    pub(super) action: Action<C, S>,
    pub(super) policy: Policy,
    pub(super) on_error: Option<Link<St>>,
    pub(super) at_most: Option<(u32, Link<St>)>,
    pub(super) question: Option<QuestionType>,
    /// How long a gate waits, and the step it leads to when it expires.
    pub(super) expires: Option<(Duration, Option<Link<St>>)>,
    /// Former names of the step.
    pub(super) aliases: Vec<Arc<str>>,
    pub(super) at: At,
    /// Faults of the step that are known without its loop.
    pub(super) faults: Vec<Fault>,
}

/// The exit of a step.
pub(super) enum Way<St> {
    Then(Link<St>),
    /// With the number of the signal that the loop ends with.
    End(usize),
    Route {
        signals: &'static str,
        branches: Vec<(&'static str, Target<St, usize>)>,
    },
}

/// A completely declared step.
pub(super) struct Draft<C: Context, S: State, St> {
    pub(super) work: Work<C, S, St>,
    pub(super) way: Way<St>,
    pub(super) route: Option<Route<S>>,
}

impl<C: Context, S: State, St> Draft<C, S, St> {
    /// The same step as part of another loop, which continues at `after` the signal that this one
    /// ends with.
    pub(super) fn nested<T>(
        self,
        wrap: &impl Fn(St) -> T,
        mut after: impl FnMut(usize) -> Target<T, usize>,
    ) -> Draft<C, S, T> {
        let Work { kind, action, policy, at, faults, question, aliases, .. } = self.work;
        let Work { on_error, at_most, expires, .. } = self.work;
        // A step that is off has no edges.
        let off = matches!(kind, Kind::Off(_));
        let way = match self.way {
            Way::Then(link) => Way::Then(link.map(wrap)),
            Way::End(with) if off => Way::End(with),
            Way::End(with) => match after(with) {
                Target { to: To::Step(to), at } => Way::Then(Link { to, at }),
                Target { to: To::End(with), .. } => Way::End(with),
            },
            Way::Route { signals, branches } => {
                let branches = branches
                    .into_iter()
                    .map(|(signal, Target { to, at })| match to {
                        To::Step(step) => (signal, Target { to: To::Step(wrap(step)), at }),
                        To::End(with) => (signal, after(with)),
                    })
                    .collect();
                Way::Route { signals, branches }
            }
        };
        let work = Work {
            kind,
            action,
            policy,
            on_error: on_error.map(|link| link.map(wrap)),
            at_most: at_most.map(|(times, link)| (times, link.map(wrap))),
            question,
            expires: expires.map(|(after, link)| (after, link.map(|link| link.map(wrap)))),
            aliases,
            at,
            faults,
        };
        Draft { work, way, route: self.route }
    }

    /// The same step on the state of which its own is a part.
    pub(super) fn on_whole<W: State>(self, lens: &Lens<W, S>) -> Draft<C, W, St> {
        let Work { kind, action, policy, on_error, at_most, question, .. } = self.work;
        let Work { expires, aliases, at, faults, .. } = self.work;
        let action = lens.action(action);
        let work = Work {
            kind,
            action,
            policy,
            on_error,
            at_most,
            question,
            expires,
            aliases,
            at,
            faults,
        };
        Draft { work, way: self.way, route: self.route.map(|route| lens.route(route)) }
    }

    /// The node of the step and its code. An edge whose target `resolve` does not find ends the
    /// loop. Such a graph is drawn but not run.
    pub(super) fn into_parts(
        self,
        name: Arc<str>,
        mut resolve: impl FnMut(&Link<St>) -> Option<usize>,
    ) -> (Node, Executable<C, S>) {
        let mut edge = |link: Link<St>| Some(Edge { to: resolve(&link)?, at: link.at });
        let mut dest =
            |link: Option<Link<St>>| link.and_then(&mut edge).map_or(Dest::End, Dest::Step);
        let exit = match self.way {
            Way::End(_) => Exit::End,
            Way::Then(link) => match dest(Some(link)) {
                Dest::Step(edge) => Exit::Then(edge),
                Dest::End => Exit::End,
            },
            Way::Route { signals, branches } => {
                let branch = |(signal, Target { to, at }): (_, Target<St, usize>)| {
                    let link = match to {
                        To::Step(to) => Some(Link { to, at }),
                        To::End(_) => None,
                    };
                    Branch { signal, dest: dest(link) }
                };
                Exit::Route { signals, branches: branches.into_iter().map(branch).collect() }
            }
        };
        let Work { kind, action, policy, at, question, aliases, .. } = self.work;
        let Work { on_error, at_most, expires, .. } = self.work;
        let node = Node {
            name,
            aliases,
            kind,
            question,
            expires: expires.map(|(after, link)| Expiry { after, to: link.and_then(&mut edge) }),
            exit,
            policy,
            on_error: on_error.and_then(&mut edge),
            at_most: at_most.and_then(|(times, link)| Some(AtMost { times, instead: edge(link)? })),
            at,
        };
        (node, Executable { action, route: self.route })
    }
}
