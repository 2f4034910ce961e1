//! Descriptions of pipelines, and the loops built from them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use harness::graph::Rule;
use harness::prelude::*;

use super::fields::{Fields, ProblemList};
use super::problems::{Findings, Problems, Unreadable};
use super::step::{Step, repeated};
use super::steps::{Ctx, Text, known};
use super::tree::{Tree, is_json, shown};

/// The most bytes of a description.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// The most steps of a run, unless the description has a `budget`.
const DEFAULT_BUDGET: u64 = 1_000;

/// A pipeline as a file describes it, with the problems of the file.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    name: String,
    start: Option<String>,
    on_error: Option<String>,
    finally: Option<String>,
    /// The most steps of a run.
    budget: u64,
    steps: Vec<Step>,
    /// Files to read instead of those that steps name.
    fed: BTreeMap<PathBuf, PathBuf>,
    findings: Findings,
}

impl Pipeline {
    const KEYS: &'static [&'static str] =
        &["name", "start", "on_error", "finally", "budget", "step"];

    /// Reads a description: TOML, or JSON if the file ends in `.json`. Problems of the description
    /// itself are reported by [`build`](Self::build).
    ///
    /// # Errors
    /// If there is no such file, or it is neither TOML nor JSON.
    pub(super) fn read(file: &Path) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable { file: file.to_owned(), why };
        let mut bytes = Vec::new();
        // The limit is on what is read, not on the file's size: pipes have none.
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

    /// The most steps of a run.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// Makes the steps that read the file `name` read another one instead, or standard input if that
    /// is `-`. A name that no step reads is a problem of the pipeline.
    #[must_use = "this returns the pipeline with that input"]
    pub(super) fn feed(mut self, name: &str, from: PathBuf) -> Self {
        let read: Vec<&str> = self.steps.iter().flat_map(Step::reads).collect();
        if !read.contains(&name) {
            let near = self.findings.problems.near(name, read.iter().copied());
            self.findings.problems.add(|| {
                let name = shown(name, 60);
                match near {
                    Some(near) => {
                        let near = shown(near, 60);
                        format!("no step reads the input `{name}` (did you mean `{near}`?)")
                    }
                    None => {
                        format!("no step reads the input `{name}` (give one that a step reads)")
                    }
                }
            });
        }
        if self.fed.insert(PathBuf::from(name), from).is_some() {
            let name = shown(name, 60);
            self.findings
                .problems
                .add(|| format!("the input `{name}` is given twice (keep one of them)"));
        }
        self
    }

    fn of(tree: Tree) -> Self {
        let what = "the pipeline";
        let known = known();
        let mut findings = Findings::default();
        let problems = &mut findings.problems;
        let table = match tree {
            Tree::Table(table) => table,
            other => {
                problems.add(|| format!("{what} must be a table, but it is {}", other.is()));
                Vec::new()
            }
        };
        for (key, value) in table.iter().filter(|(key, _)| key != "step") {
            value.repeated(&shown(key, 60), &mut |path| repeated(what, &path, problems));
        }
        top_repeated(what, &table, problems);
        let mut fields = Fields::new(what, table, Self::KEYS, problems);
        let name = fields.text("name");
        let start = fields.text("start");
        let on_error = fields.text("on_error");
        let finally = fields.text("finally");
        let budget = fields.number("budget", u64::MAX);
        let given = fields.tables("step");
        let wrong = fields.close();
        if name.is_none() && !wrong.contains(&"name") {
            problems.add(|| format!("{what} has no `name`"));
        }
        let mut steps = Vec::with_capacity(given.len());
        let mut lost = !wrong.is_empty();
        for (place, tree) in given.into_iter().enumerate() {
            match Step::of(place, tree, &known, &mut findings) {
                Some(step) => steps.push(step),
                None => lost = true,
            }
        }
        let shared = same_names(&steps, &mut findings);
        for step in &steps {
            lost |= step.edges_lost();
            // A problem of one of several steps with the same name must not hide one of another.
            if !shared.contains(&step.name) {
                step.follows(&mut findings);
            }
        }
        // A step that seems unreachable may be the target of an edge that cannot be read.
        if lost {
            findings.follows.insert((Rule::Unreachable, None));
        }
        for (key, rule) in [("start", Rule::MissingStart), ("step", Rule::Empty)] {
            if wrong.contains(&key) {
                findings.follows.insert((rule, None));
            }
        }
        if lost && steps.is_empty() {
            findings.follows.insert((Rule::Empty, None));
        }
        Self {
            name: name.unwrap_or_default(),
            start,
            on_error,
            finally,
            budget: budget.unwrap_or(DEFAULT_BUDGET),
            steps,
            fed: BTreeMap::new(),
            findings,
        }
    }

    /// Builds the loop, which reads its input from one folder and writes its output into another.
    ///
    /// # Errors
    /// All problems of the description.
    pub(super) fn build(
        self,
        input: PathBuf,
        output: PathBuf,
    ) -> Result<Harness<Ctx, Text>, Problems> {
        let registry = known().registry;
        let mut builder = Harness::<Ctx, Text>::dynamic(self.name)
            .provide(Ctx::slots(input, self.fed, output))
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
        match (self.findings.with(error), harness) {
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

/// Reports the repeated keys of a table, but not those of tables in it.
fn top_repeated(what: &str, table: &[(String, Tree)], problems: &mut ProblemList) {
    let keys = table.iter().map(|(key, _)| (key.clone(), Tree::Null)).collect();
    Tree::Table(keys).repeated("", &mut |path| repeated(what, &path, problems));
}

/// Reports the steps that have the name of an earlier one, by their numbers. Returns their names.
fn same_names(steps: &[Step], findings: &mut Findings) -> HashSet<String> {
    let mut shared = HashSet::new();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for step in steps {
        let earlier = *first.entry(&step.name).or_insert(step.place);
        if earlier != step.place {
            shared.insert(step.name.clone());
            let (name, earlier, place) = (shown(&step.name, 60), earlier + 1, step.place + 1);
            findings.problems.add(|| {
                format!(
                    "step `{name}` is declared twice, as step number {earlier} and step number \
                         {place} (rename one of them)"
                )
            });
        }
    }
    findings.follows.insert((Rule::DuplicateStep, None));
    shared
}
