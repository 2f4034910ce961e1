//! Loops built at run time: `Harness::dynamic(name).start("think").step("think", |define| ..)`.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::context::{Context, FixedSlots};
use crate::graph::{Budget, BuildError, Edge, Rule, Violation, Wiring, violations_with};
use crate::state::State;
use crate::text::{near, shown};

use super::builder::{Given, Provided, Unprovided, finish};
use super::draft::{At, Link};
use super::{About, Define, Harness, StepDef, StepName};

/// Above this many name comparisons, unknown steps are reported without a suggestion.
const MAX_COMPARED: usize = 200_000;

/// A loop built at run time: see [`Harness::dynamic`].
#[must_use = "a builder does nothing until `.build()`"]
pub struct Dynamic<C: Context, S: State, P> {
    name: String,
    fixed: P,
    start: Option<Link<StepName>>,
    on_error: Option<Link<StepName>>,
    finally: Option<Link<StepName>>,
    budget: Budget,
    at: At,
    steps: Vec<Declared<C, S>>,
    context: About<C>,
}

struct Declared<C: Context, S: State> {
    name: Arc<str>,
    at: At,
    def: StepDef<C, S, StepName>,
}

impl<C: Context, S: State> Dynamic<C, S, Unprovided> {
    pub(super) fn new(name: String, at: At) -> Self {
        Self {
            name,
            fixed: Unprovided(()),
            start: None,
            on_error: None,
            finally: None,
            budget: Budget::default(),
            at,
            steps: Vec::new(),
            context: PhantomData,
        }
    }

    /// Provides the fixed slots, which all agents of this harness share.
    pub fn provide(self, fixed: impl FixedSlots<C>) -> Dynamic<C, S, Given<C>> {
        Dynamic {
            name: self.name,
            fixed: Given(fixed.filled()),
            start: self.start,
            on_error: self.on_error,
            finally: self.finally,
            budget: self.budget,
            at: self.at,
            steps: self.steps,
            context: PhantomData,
        }
    }
}

impl<C: Context, S: State, P> Dynamic<C, S, P> {
    /// Sets the step that a turn starts with.
    #[track_caller]
    pub fn start(mut self, step: impl Into<StepName>) -> Self {
        self.start = Some(Link { to: step.into(), at: Location::caller() });
        self
    }

    /// The step to run when a step fails and has no `.on_error(..)` of its own.
    #[track_caller]
    pub fn on_error(mut self, step: impl Into<StepName>) -> Self {
        self.on_error = Some(Link { to: step.into(), at: Location::caller() });
        self
    }

    /// The step to run before the run settles as ended, failed or exhausted.
    #[track_caller]
    pub fn finally(mut self, step: impl Into<StepName>) -> Self {
        self.finally = Some(Link { to: step.into(), at: Location::caller() });
        self
    }

    /// The budget of one turn. The default is 1,000 steps.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Declares a step.
    #[track_caller]
    pub fn step(
        mut self,
        name: impl Into<StepName>,
        declare: impl FnOnce(Define<C, S, StepName>) -> StepDef<C, S, StepName>,
    ) -> Self {
        let at = Location::caller();
        let def = declare(Define::new());
        self.steps.push(Declared { name: name.into().0, at, def });
        self
    }

    /// Validates the loop.
    ///
    /// # Errors
    /// [`BuildError`] lists every violation.
    pub fn build(self) -> Result<Harness<C, S>, BuildError>
    where
        P: Provided<C>,
    {
        let (mut names, firsts) = Names::of(&self.steps);
        let mut nodes = Vec::with_capacity(self.steps.len());
        let mut steps = Vec::with_capacity(self.steps.len());
        // Steps with a repeated name are validated after the others. They are not part of the loop.
        let mut repeats = Vec::new();
        let mut repeated = Vec::new();
        for (Declared { name, def, .. }, first) in self.steps.into_iter().zip(firsts) {
            let mut draft = def.draft;
            let from = format!("step `{}`", shown(&name));
            for fault in std::mem::take(&mut draft.work.faults) {
                names.found.push(Violation {
                    rule: fault.rule,
                    steps: vec![name.to_string()],
                    declared: fault.at.into(),
                    first: None,
                    near: fault.near,
                    message: format!("{from} {}", fault.does),
                });
            }
            // A step's own name always resolves to that step, even if another step has the same
            // name.
            let own = first.map(|_| names.places.len() + repeats.len());
            let (node, executable) = draft.into_parts(Arc::clone(&name), |link| match own {
                Some(own) if link.to.0 == name => Some(own),
                _ => names.resolve(&from, Some(&name), link),
            });
            match first {
                Some(first) => {
                    repeats.push(first);
                    repeated.push(node);
                }
                None => {
                    nodes.push(node);
                    steps.push(executable);
                }
            }
        }
        let mut edge = |words: &str, link: Option<Link<StepName>>| {
            let link = link?;
            Some(Edge { to: names.resolve(words, None, &link)?, at: link.at })
        };
        let start = edge("the start", self.start.clone());
        let on_error = edge("`on_error` of the loop", self.on_error);
        let finally = edge("`finally` of the loop", self.finally);
        let mut found = names.found;
        let missing = |rule, message: &str| Violation {
            rule,
            steps: Vec::new(),
            declared: self.at.into(),
            first: None,
            near: None,
            message: message.to_owned(),
        };
        if self.start.is_none() {
            let message = "the loop has no start (call `.start(step)`)";
            found.push(missing(Rule::MissingStart, message));
        }
        if nodes.is_empty() {
            let message = "the loop has no steps (add one with `.step(name, ..)`)";
            found.push(missing(Rule::Empty, message));
        }
        let declared = nodes.len();
        nodes.append(&mut repeated);
        let mut wiring = Wiring {
            name: self.name.into(),
            nodes,
            start: start.map_or(usize::MAX, |edge| edge.to),
            on_error,
            finally,
            budget: self.budget,
            at: self.at,
        };
        found.append(&mut violations_with(&wiring, &repeats));
        wiring.nodes.truncate(declared);
        finish(wiring, steps, found, self.fixed.take())
    }
}

/// The positions of the steps, and the violations found.
struct Names {
    places: HashMap<Arc<str>, usize>,
    compared: usize,
    found: Vec<Violation>,
}

impl Names {
    /// The names of `steps`, and for each step that repeats a name the position of the first one.
    fn of<C: Context, S: State>(steps: &[Declared<C, S>]) -> (Self, Vec<Option<usize>>) {
        let mut first: HashMap<&str, At> = HashMap::with_capacity(steps.len());
        let mut places = HashMap::with_capacity(steps.len());
        let mut found = Vec::new();
        let mut firsts = Vec::with_capacity(steps.len());
        for (nth, step) in (1_usize..).zip(steps) {
            let mut broken = |rule, first, message| {
                found.push(Violation {
                    rule,
                    steps: vec![step.name.to_string()],
                    declared: step.at.into(),
                    first,
                    near: None,
                    message,
                });
            };
            let nameless = step.name.trim().is_empty();
            if nameless {
                let message = format!("step {nth} of the loop has no name (give it one)");
                broken(Rule::Empty, None, message);
            }
            let Some(at) = first.get(&*step.name) else {
                firsts.push(None);
                first.insert(&step.name, step.at);
                places.insert(Arc::clone(&step.name), places.len());
                continue;
            };
            firsts.push(places.get(&step.name).copied());
            if !nameless {
                let message =
                    format!("step `{}` is declared twice (rename one of them)", shown(&step.name));
                broken(Rule::DuplicateStep, Some((*at).into()), message);
            }
        }
        (Self { places, compared: 0, found }, firsts)
    }

    /// The position of a target. An unknown name is a violation. It then resolves to its near
    /// match, so one typing error is reported once.
    fn resolve(&mut self, from: &str, step: Option<&str>, link: &Link<StepName>) -> Option<usize> {
        let name = &*link.to.0;
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        self.compared = self.compared.saturating_add(self.places.len());
        // A map has no order. Of several near names, the first in sorted order is reported.
        let mut known: Vec<&str> = Vec::new();
        if self.compared <= MAX_COMPARED {
            known.extend(self.places.keys().map(|name| &**name));
            known.sort_unstable();
        }
        let near = near(name, known);
        let hint = match near {
            Some(near) => format!("(did you mean `{}`?)", shown(near)),
            None => "(declare it with `.step(name, ..)`, or change the target)".to_owned(),
        };
        let place = near.and_then(|near| self.places.get(near)).copied();
        self.found.push(Violation {
            rule: Rule::UnknownStep,
            steps: step.map(str::to_owned).into_iter().collect(),
            declared: link.at.into(),
            first: None,
            near: near.map(str::to_owned),
            message: format!("{from} leads to `{}`, which is not a step {hint}", shown(name)),
        });
        place
    }
}

impl<C: Context, S: State, P> fmt::Debug for Dynamic<C, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dynamic")
            .field("name", &self.name)
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}
