//! One step of a description.

use harness::graph::Rule;
use harness::prelude::*;
use harness::{
    Define,
    declare::{Registry, StepDef, StepName},
};

use super::fields::{Fields, ProblemList};
use super::parameters::Known;
use super::problems::Findings;
use super::steps::{Ctx, Text};
use super::tree::{Tree, shown};

/// A step as a file describes it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its index in the list.
    pub(super) place: usize,
    pub(super) name: String,
    /// Why the step is switched off, if it is.
    off: Option<String>,
    /// What the step runs; a step that runs nothing only routes.
    run: Option<String>,
    /// The parameters of what it runs.
    with: serde_json::Value,
    retry: Option<u32>,
    on_error: Option<String>,
    /// The exits, of which there must be one: the next step, the end, or a route.
    then: Option<String>,
    end: bool,
    route: Option<String>,
    /// Where the signals of the route lead, if that can be read.
    to: Vec<(String, Option<String>)>,
    /// The signals of the route that end the run.
    ends: Vec<String>,
    /// The keys that are given but cannot be used.
    pub(super) wrong: Vec<&'static str>,
}

impl Step {
    const KEYS: &'static [&'static str] =
        &["name", "off", "run", "with", "retry", "on_error", "then", "end", "route", "to", "ends"];

    /// The step at an index of the list, as far as it can be read; `None` if it is no table.
    pub(super) fn of(
        place: usize,
        tree: Tree,
        known: &Known,
        findings: &mut Findings,
    ) -> Option<Self> {
        let number = format!("step number {}", place + 1);
        let problems = &mut findings.problems;
        let Tree::Table(table) = tree else {
            problems.add(|| format!("{number} must be a table, but it is {}", tree.is()));
            return None;
        };
        let named = table.iter().find(|(key, _)| key == "name");
        let what = match named {
            Some((_, Tree::Text(name))) if !name.trim().is_empty() => {
                format!("step `{}`", shown(name, 60))
            }
            _ => number.clone(),
        };
        let tree = Tree::Table(table);
        tree.repeated("", &mut |path| repeated(&what, &path, problems));
        let Tree::Table(table) = tree else {
            return None;
        };
        let mut fields = Fields::new(&what, table, Self::KEYS, problems);
        let name = fields.text("name").filter(|name| !name.trim().is_empty());
        let off = fields.text("off");
        let run = fields.text("run");
        let with = fields.table("with");
        let retry = fields.number("retry", u32::MAX);
        let on_error = fields.text("on_error");
        let then = fields.text("then");
        let end = fields.flag("end");
        let route = fields.text("route");
        let to = fields.pairs("to");
        let ends = fields.texts("ends");
        let mut wrong = fields.close();
        if name.is_none() && !wrong.contains(&"name") {
            problems.add(|| format!("{what} has no `name`"));
            wrong.push("name");
        }
        if let Some(run) = &run {
            let before = problems.count();
            // Parameters that are no table are already reported.
            if !wrong.contains(&"with") {
                known.check(run, with.as_deref().unwrap_or_default(), &what, problems);
            }
            if problems.count() > before {
                wrong.push("with");
            }
        }
        let name = name.unwrap_or_else(|| {
            findings.unnamed.insert(number.clone());
            number
        });
        let with = with.map_or(serde_json::Value::Null, |table| Tree::Table(table).into_json());
        let step = Self {
            place,
            name,
            off,
            run,
            with,
            retry,
            on_error,
            then,
            end,
            route,
            to,
            ends,
            wrong,
        };
        step.check(&what, &mut findings.problems);
        Some(step)
    }

    /// The files that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = &str> {
        let reads = self.run.as_deref() == Some("read");
        let files = self.with["files"].as_array().filter(|_| reads);
        files.into_iter().flatten().filter_map(serde_json::Value::as_str)
    }

    /// Whether a key is given, even with a value that cannot be used.
    fn has(&self, key: &str) -> bool {
        let given = match key {
            "run" => self.run.is_some(),
            "with" => !self.with.is_null(),
            "retry" => self.retry.is_some(),
            "on_error" => self.on_error.is_some(),
            "then" => self.then.is_some(),
            "end" => self.end,
            "route" => self.route.is_some(),
            "off" => self.off.is_some(),
            _ => false,
        };
        given || self.wrong.contains(&key)
    }

    /// Reports what `build` of the loop cannot see: keys that contradict each other.
    fn check(&self, what: &str, problems: &mut ProblemList) {
        let mut problem = |problem: &str| problems.add(|| format!("{what} {problem}"));
        let exits = ["then", "end", "route"].into_iter().filter(|key| self.has(key)).count();
        if self.has("off") {
            return;
        }
        if exits == 0 {
            problem("has no exit (give it one of `then`, `end = true` and `route`)");
        }
        if exits > 1 {
            problem("has more than one exit (keep one of `then`, `end = true` and `route`)");
        }
        let leads = !self.to.is_empty() || !self.ends.is_empty();
        if leads && !self.has("route") {
            problem("says where signals lead, but has no `route`");
        }
        if !self.has("run") {
            if !self.has("route") {
                problem("does nothing (give it `run` or `route`)");
            }
            if ["with", "retry", "on_error"].into_iter().any(|key| self.has(key)) {
                problem("has `with`, `retry` or `on_error`, but runs nothing (give it `run`)");
            }
        }
    }

    /// Whether an edge that leads from or to the step cannot be read.
    pub(super) fn edges_lost(&self) -> bool {
        const EDGES: [&str; 7] = ["name", "then", "end", "route", "to", "ends", "on_error"];
        self.wrong.iter().any(|key| EDGES.contains(key))
    }

    /// Adds the rules that the step breaks only because a key cannot be used.
    pub(super) fn follows(&self, findings: &mut Findings) {
        let mut follows = |rule| findings.follows.insert((rule, Some(self.name.clone())));
        if self.wrong.contains(&"route") {
            follows(Rule::UnknownRoute);
        }
        if self.wrong.contains(&"with") {
            follows(Rule::Parameters);
        }
        if self.wrong.contains(&"to") || self.wrong.contains(&"ends") {
            follows(Rule::UnhandledSignal);
        }
    }

    pub(super) fn declare(
        self,
        define: Define<Ctx, Text, StepName>,
        registry: &Registry<Ctx, Text>,
    ) -> StepDef<Ctx, Text, StepName> {
        if self.has("off") {
            return define.off(self.off.unwrap_or_else(|| "it does not say why".to_owned()));
        }
        // A route that cannot be read still has targets to check.
        let route = match self.route {
            None if self.wrong.contains(&"route") => Some(String::new()),
            route => route,
        };
        let leads = self.to.into_iter().map(|(signal, step)| (signal, step.map_or(end(), to)));
        let pairs = leads.chain(self.ends.into_iter().map(|signal| (signal, end())));
        let runs = self.run.is_some() || self.wrong.contains(&"run");
        let mut step = match (self.run, &route) {
            (Some(run), _) => define.named_with(registry, &run, &self.with),
            (None, Some(route)) if !runs => return define.decide_named(registry, route, pairs),
            // A problem that is already reported.
            _ => define.run(|_, _| async move { Ok(Text::update()) }),
        };
        if let Some(times) = self.retry {
            step = step.retry(Retry::exponential().times(times));
        }
        if let Some(other) = self.on_error {
            step = step.on_error(other);
        }
        match (route, self.then) {
            (Some(route), _) => step.route_named(registry, &route, pairs),
            (None, Some(next)) => step.then(next),
            (None, None) => step.end(),
        }
    }
}

/// Reports a repeated key.
pub(super) fn repeated(what: &str, path: &str, problems: &mut ProblemList) {
    problems.add(|| format!("{what}: key `{path}` is given twice (keep one of them)"));
}
