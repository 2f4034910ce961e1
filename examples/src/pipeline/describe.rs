//! Descriptions of pipelines: how they are written, and the loops made of them.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use harness::graph::Rule;
use harness::prelude::*;
use harness::{Define, Registry, StepDef, StepName};

use super::fields::{Fields, Found};
use super::parameters::Known;
use super::problems::{Problems, Told, Unreadable};
use super::steps::{Room, Text, known};
use super::tree::{Tree, is_json, shown};

/// The most bytes of a description.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// The most steps of a run, if the description does not say.
const DEFAULT_BUDGET: u64 = 1_000;

/// A pipeline as a file describes it, with what is wrong with the file.
#[derive(Clone, Debug)]
pub struct Pipeline {
    name: String,
    start: Option<String>,
    on_error: Option<String>,
    finally: Option<String>,
    /// The most steps of a run.
    budget: u64,
    steps: Vec<Step>,
    told: Told,
}

#[derive(Clone, Debug)]
struct Step {
    name: String,
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
    /// The keys that are given, but cannot be used.
    wrong: Vec<&'static str>,
}

impl Pipeline {
    const KEYS: &'static [&'static str] =
        &["name", "start", "on_error", "finally", "budget", "step"];

    /// Reads a description: TOML, or JSON if the file ends in `.json`. What is wrong with a
    /// description that is TOML or JSON, [`build`](Self::build) tells.
    ///
    /// # Errors
    /// When there is no such file, or it is neither TOML nor JSON.
    pub fn read(file: &Path) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable { file: file.to_owned(), why };
        let mut bytes = Vec::new();
        // What a file says about its size does not bound what is read: pipes have none.
        std::fs::File::open(file)
            .and_then(|file| file.take(MAX_DESCRIPTION + 1).read_to_end(&mut bytes))
            .map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > MAX_DESCRIPTION {
            return Err(unreadable(format!("it has more than {MAX_DESCRIPTION} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(format!("it is not UTF-8 from byte {at} on"))
        })?;
        Tree::parse(&text, is_json(file)).map(Self::of).map_err(unreadable)
    }

    /// The most steps that a run of it takes.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    fn of(tree: Tree) -> Self {
        let what = "the pipeline";
        let known = known();
        let mut told = Told::default();
        let found = &mut told.found;
        let table = match tree {
            Tree::Table(table) => table,
            other => {
                found.tell(|| format!("{what} must be a table, but it is {}", other.is()));
                Vec::new()
            }
        };
        for (key, value) in table.iter().filter(|(key, _)| key != "step") {
            value.repeated(&shown(key, 60), &mut |path| repeated(what, &path, found));
        }
        top_repeated(what, &table, found);
        let mut fields = Fields::new(what, table, Self::KEYS, found);
        let name = fields.text("name");
        let start = fields.text("start");
        let on_error = fields.text("on_error");
        let finally = fields.text("finally");
        let budget = fields.number("budget", u64::MAX);
        let given = fields.tables("step");
        let wrong = fields.close();
        if name.is_none() && !wrong.contains(&"name") {
            found.tell(|| format!("{what} has no `name`"));
        }
        let mut steps = Vec::with_capacity(given.len());
        let mut lost = !wrong.is_empty();
        for (place, tree) in given.into_iter().enumerate() {
            match Step::of(place, tree, &known, &mut told) {
                Some(step) => steps.push(step),
                None => lost = true,
            }
        }
        let shared = same_names(&steps, &mut told);
        for step in &steps {
            lost |= step.edges_lost();
            // What is wrong with one of several steps of a name must not hide what is with another.
            if !shared.contains(&step.name) {
                step.follows(&mut told);
            }
        }
        // A step that seems to lie aside may be where an edge leads that cannot be read.
        if lost {
            told.follows.insert((Rule::Unreachable, None));
        }
        for (key, rule) in [("start", Rule::MissingStart), ("step", Rule::Empty)] {
            if wrong.contains(&key) {
                told.follows.insert((rule, None));
            }
        }
        if lost && steps.is_empty() {
            told.follows.insert((Rule::Empty, None));
        }
        Self {
            name: name.unwrap_or_default(),
            start,
            on_error,
            finally,
            budget: budget.unwrap_or(DEFAULT_BUDGET),
            steps,
            told,
        }
    }

    /// Makes the loop, which reads its input from one folder and writes its output into another.
    ///
    /// # Errors
    /// Everything that is wrong with the description.
    pub fn build(self, input: PathBuf, output: PathBuf) -> Result<Harness<Room, Text>, Problems> {
        let registry = known().registry;
        let mut builder = Harness::<Room, Text>::dynamic(self.name)
            .provide(Room::slots(input, output))
            .budget(Budget::steps(self.budget));
        if let Some(step) = self.start {
            builder = builder.start(step);
        }
        if let Some(step) = self.on_error {
            builder = builder.on_error(step);
        }
        if let Some(step) = self.finally {
            builder = builder.finally(step);
        }
        for step in self.steps {
            builder = builder.step(step.name.clone(), |define| step.declare(define, &registry));
        }
        let (harness, error) = match builder.build() {
            Ok(harness) => (Some(harness), None),
            Err(error) => (None, Some(error)),
        };
        match (self.told.with(error), harness) {
            (None, Some(harness)) => Ok(harness),
            (problems, _) => Err(problems.unwrap_or_default()),
        }
    }
}

impl std::str::FromStr for Pipeline {
    type Err = String;

    /// Reads a description in TOML.
    fn from_str(text: &str) -> Result<Self, String> {
        Tree::parse(text, false).map(Self::of)
    }
}

fn repeated(what: &str, path: &str, found: &mut Found) {
    found.tell(|| format!("{what}: key `{path}` is given twice (keep one of them)"));
}

/// Tells the keys of a table that stand there more than once, and nothing of what is below them.
fn top_repeated(what: &str, table: &[(String, Tree)], found: &mut Found) {
    let keys = table.iter().map(|(key, _)| (key.clone(), Tree::Null)).collect();
    Tree::Table(keys).repeated("", &mut |path| repeated(what, &path, found));
}

/// Tells the steps that have the name of an earlier one, by their numbers, as the name does not
/// tell one from the other. Gives their names.
fn same_names(steps: &[Step], told: &mut Told) -> HashSet<String> {
    let mut shared = HashSet::new();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (place, step) in steps.iter().enumerate() {
        let earlier = *first.entry(&step.name).or_insert(place);
        if earlier != place {
            shared.insert(step.name.clone());
            let (name, earlier, place) = (shown(&step.name, 60), earlier + 1, place + 1);
            told.found.tell(|| {
                format!(
                    "step `{name}` is declared twice, as step number {earlier} and step number \
                         {place} (rename one of them)"
                )
            });
        }
    }
    told.follows.insert((Rule::DuplicateStep, None));
    shared
}

impl Step {
    const KEYS: &'static [&'static str] =
        &["name", "off", "run", "with", "retry", "on_error", "then", "end", "route", "to", "ends"];

    /// The step at a place of the list, as far as it can be read; none if it is no table.
    fn of(place: usize, tree: Tree, known: &Known, told: &mut Told) -> Option<Self> {
        let number = format!("step number {}", place + 1);
        let found = &mut told.found;
        let Tree::Table(table) = tree else {
            found.tell(|| format!("{number} must be a table, but it is {}", tree.is()));
            return None;
        };
        let named = table.iter().find(|(key, _)| key == "name");
        let what = match named {
            Some((_, Tree::Text(name))) => format!("step `{}`", shown(name, 60)),
            _ => number.clone(),
        };
        let tree = Tree::Table(table);
        tree.repeated("", &mut |path| repeated(&what, &path, found));
        let Tree::Table(table) = tree else {
            return None;
        };
        let mut fields = Fields::new(&what, table, Self::KEYS, found);
        let name = fields.text("name");
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
            found.tell(|| format!("{what} has no `name`"));
            wrong.push("name");
        }
        if let Some(run) = &run {
            let before = found.count();
            // Parameters that cannot be used at all are told as such.
            if !wrong.contains(&"with") {
                known.check(run, with.as_deref().unwrap_or_default(), &what, found);
            }
            if found.count() > before {
                wrong.push("with");
            }
        }
        let name = name.unwrap_or_else(|| {
            told.unnamed.insert(number.clone());
            number
        });
        let with = with.map_or(serde_json::Value::Null, |table| Tree::Table(table).into_json());
        let step =
            Self { name, off, run, with, retry, on_error, then, end, route, to, ends, wrong };
        step.check(&what, &mut told.found);
        Some(step)
    }

    /// Whether a key is given, be it one that cannot be used.
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

    /// What the loop itself does not see: keys that contradict each other.
    fn check(&self, what: &str, found: &mut Found) {
        let mut problem = |problem: &str| found.tell(|| format!("{what} {problem}"));
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
        if !self.has("route") && !(self.to.is_empty() && self.ends.is_empty()) {
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
    fn edges_lost(&self) -> bool {
        const EDGES: [&str; 7] = ["name", "then", "end", "route", "to", "ends", "on_error"];
        self.wrong.iter().any(|key| EDGES.contains(key))
    }

    /// Rules of the loop that the step breaks only as a key cannot be used, which is told.
    fn follows(&self, told: &mut Told) {
        let mut follows = |rule| told.follows.insert((rule, Some(self.name.clone())));
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

    fn declare(
        self,
        define: Define<Room, Text, StepName>,
        registry: &Registry<Room, Text>,
    ) -> StepDef<Room, Text, StepName> {
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
            // A problem that is told already.
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
