//! Steps of loops built at run time. Targets are names, and routes are pairs of a signal and a
//! target. What rustc checks for a loop of an enum is recorded here as a fault, which `build()`
//! reports.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::context::Context;
use crate::graph::{Kind, Rule, Target, To};
use crate::signal::Signal;
use crate::state::State;
use crate::step::{Action, LoopEnd, Route};
use crate::text::{prose, shown};

use super::draft::{At, Fault, Link, Way};
use super::registry::Lookup;
use super::step::OfGate;
use super::step::indexed;
use super::{Define, NeedsThenEndOrRoute, OfStep, Registry, StepDef, StepName};

/// The targets of `signals`, in their order. Adds the faults of the pairs to `faults`.
fn branches<N: AsRef<str>, T: Into<StepName>>(
    signals: &'static str,
    all: &[&'static str],
    pairs: impl IntoIterator<Item = (N, Target<T>)>,
    at: At,
    faults: &mut Vec<Fault>,
) -> Vec<(&'static str, Target<StepName, usize>)> {
    let mut known: Vec<Option<Target<StepName, usize>>> = all.iter().map(|_| None).collect();
    // Kept to validate their targets too. Such a loop is drawn but not run.
    let mut lost = Vec::new();
    for (signal, target) in pairs {
        let target = target.map(Into::into, LoopEnd::number);
        let signal = signal.as_ref();
        match all.iter().position(|name| *name == signal) {
            Some(place) if known[place].is_none() => known[place] = Some(target),
            Some(_) => {
                faults.push(Fault {
                    rule: Rule::DuplicateSignal,
                    at: target.at,
                    near: None,
                    does: format!("routes signal `{}` twice (remove one of them)", shown(signal)),
                });
                lost.push(("?", target));
            }
            None => {
                let does = format!("routes signal `{}`, unknown to `{signals}`", shown(signal));
                let names = all.iter().copied();
                faults.push(Fault::unknown(Rule::UnknownSignal, target.at, does, signal, names));
                lost.push(("?", target));
            }
        }
    }
    let mut found = Vec::with_capacity(all.len());
    for (name, target) in all.iter().zip(known) {
        if target.is_none() {
            faults.push(Fault {
                rule: Rule::UnhandledSignal,
                at,
                near: None,
                does: format!(
                    "has no target for signal `{name}` of `{signals}` (add \
                     `(\"{name}\", to(step))`, or `end()`)"
                ),
            });
        }
        found.push((*name, target.unwrap_or(Target { to: To::End(0), at })));
    }
    found.append(&mut lost);
    found
}

impl<C: Context, S: State> NeedsThenEndOrRoute<C, S, StepName, OfGate> {
    /// How long the question waits. If it expires without an answer, the loop continues at `step`.
    #[track_caller]
    pub fn expires(
        self,
        after: Duration,
        step: impl Into<StepName>,
    ) -> NeedsThenEndOrRoute<C, S, StepName, OfStep> {
        self.expiring(after, Some(Link { to: step.into(), at: Location::caller() }))
    }
}

impl<C: Context, S: State, By> NeedsThenEndOrRoute<C, S, StepName, By> {
    /// A former name of the step. Sessions saved at that name resume at this step. Can be called
    /// more than once.
    pub fn alias(mut self, old: impl Into<String>) -> Self {
        self.work.aliases.push(old.into().into());
        self
    }

    /// The step to run when this step fails and its retries are used up. It takes precedence over
    /// the `.on_error(..)` of the loop.
    #[track_caller]
    pub fn on_error(mut self, step: impl Into<StepName>) -> Self {
        self.work.on_error = Some(Link { to: step.into(), at: Location::caller() });
        self
    }

    /// Allows at most `times` entries into this step in one turn. Further entries go to `instead`.
    #[track_caller]
    pub fn at_most(mut self, times: u32, instead: impl Into<StepName>) -> Self {
        self.work.at_most = Some((times, Link { to: instead.into(), at: Location::caller() }));
        self
    }

    /// Continues at `step`.
    #[track_caller]
    pub fn then(self, step: impl Into<StepName>) -> StepDef<C, S, StepName> {
        self.exit(Way::Then(Link { to: step.into(), at: Location::caller() }), None)
    }

    /// `route` reads the updated state and returns a signal. `pairs` map each signal name to a
    /// target: `[("CallTools", to("act")), ("Answer", end())]`. If every signal ends the turn,
    /// write `end::<&str>()`.
    #[track_caller]
    pub fn route<Sig: Signal, N: AsRef<str>, T: Into<StepName>>(
        self,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
        pairs: impl IntoIterator<Item = (N, Target<T>)>,
    ) -> StepDef<C, S, StepName> {
        let all: Vec<&'static str> = Sig::ALL.iter().map(|signal| signal.name()).collect();
        self.paired(Sig::NAME, &all, indexed(route), pairs, Location::caller())
    }

    /// The same with a route from the registry.
    #[track_caller]
    pub fn route_named<N: AsRef<str>, T: Into<StepName>>(
        mut self,
        registry: &Registry<C, S>,
        route: &str,
        pairs: impl IntoIterator<Item = (N, Target<T>)>,
    ) -> StepDef<C, S, StepName> {
        let at = Location::caller();
        if let Some(found) = registry.routes.get(route) {
            let code = Arc::clone(&found.route);
            let code: Route<S> = Box::new(move |state| code(state));
            return self.paired(found.signals, &found.all, code, pairs, at);
        }
        let does = format!("routes by `{}`, unknown to the registry", shown(route));
        let known = registry.routes.keys().map(String::as_str);
        self.work.faults.push(Fault::unknown(Rule::UnknownRoute, at, does, route, known));
        // The targets are validated anyway.
        let mut unknown = Vec::new();
        let branches = branches("", &[], pairs, at, &mut unknown);
        self.exit(Way::Route { signals: "", branches }, None)
    }

    fn paired<N: AsRef<str>, T: Into<StepName>>(
        mut self,
        signals: &'static str,
        all: &[&'static str],
        route: Route<S>,
        pairs: impl IntoIterator<Item = (N, Target<T>)>,
        at: At,
    ) -> StepDef<C, S, StepName> {
        let branches = branches(signals, all, pairs, at, &mut self.work.faults);
        self.exit(Way::Route { signals, branches }, Some(route))
    }
}

impl<C: Context, S: State> Define<C, S, StepName> {
    /// A decision: see [`NeedsThenEndOrRoute::route`].
    #[track_caller]
    pub fn decide<Sig: Signal, N: AsRef<str>, T: Into<StepName>>(
        self,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
        pairs: impl IntoIterator<Item = (N, Target<T>)>,
    ) -> StepDef<C, S, StepName> {
        NeedsThenEndOrRoute::<C, S, StepName, _>::new(
            Kind::Decide,
            Action::Decide,
            Location::caller(),
        )
        .route(route, pairs)
    }

    /// A decision, with a route from the registry.
    #[track_caller]
    pub fn decide_named<N: AsRef<str>, T: Into<StepName>>(
        self,
        registry: &Registry<C, S>,
        route: &str,
        pairs: impl IntoIterator<Item = (N, Target<T>)>,
    ) -> StepDef<C, S, StepName> {
        NeedsThenEndOrRoute::<C, S, StepName, _>::new(
            Kind::Decide,
            Action::Decide,
            Location::caller(),
        )
        .route_named(registry, route, pairs)
    }

    /// A step with a body from the registry.
    #[track_caller]
    pub fn named(
        self,
        registry: &Registry<C, S>,
        body: &str,
    ) -> NeedsThenEndOrRoute<C, S, StepName, OfStep> {
        self.named_with(registry, body, &Value::Null)
    }

    /// The same with parameters for the body: see [`Registry::make`].
    #[track_caller]
    pub fn named_with(
        self,
        registry: &Registry<C, S>,
        body: &str,
        parameters: &Value,
    ) -> NeedsThenEndOrRoute<C, S, StepName, OfStep> {
        let at = Location::caller();
        let fault = match registry.body(body, parameters) {
            Lookup::Found(found) => {
                return NeedsThenEndOrRoute::new(
                    Kind::Run,
                    Action::run(move |s, cx| found(s, cx)),
                    at,
                );
            }
            Lookup::Unknown => {
                let does = format!("runs `{}`, unknown to the registry", shown(body));
                let known = registry.bodies.keys().map(String::as_str);
                Fault::unknown(Rule::UnknownBody, at, does, body, known)
            }
            Lookup::Refused(why) => {
                let does = format!(
                    "passes invalid parameters to `{}`: {} (correct them)",
                    shown(body),
                    prose(&why)
                );
                Fault { rule: Rule::Parameters, at, near: None, does }
            }
        };
        let mut step = NeedsThenEndOrRoute::new(Kind::Run, Action::Decide, at);
        step.work.faults.push(fault);
        step
    }
}
