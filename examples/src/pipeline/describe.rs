//! Descriptions of pipelines: how they are written, and the loops made of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use harness::prelude::*;
use harness::{BuildError, Define, Registry, StepDef, StepName};

use super::steps::{Room, Text, registry};

/// The most bytes of a description.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// A pipeline as a file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    name: String,
    start: Option<String>,
    on_error: Option<String>,
    finally: Option<String>,
    /// The most steps of a run.
    budget: Option<u64>,
    #[serde(default, rename = "step")]
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    name: String,
    /// Why the step is switched off, if it is.
    off: Option<String>,
    /// What the step runs; a step that runs nothing only routes.
    run: Option<String>,
    /// The parameters of what it runs.
    #[serde(default)]
    with: serde_json::Value,
    retry: Option<u32>,
    on_error: Option<String>,
    /// The exits, of which there must be one: the next step, the end, or a route.
    then: Option<String>,
    #[serde(default)]
    end: bool,
    route: Option<String>,
    /// Where the signals of the route lead.
    #[serde(default)]
    to: BTreeMap<String, String>,
    /// The signals of the route that end the run.
    #[serde(default)]
    ends: Vec<String>,
}

/// A description that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the pipeline `{}`: {why}", .file.display())]
pub struct Unreadable {
    file: PathBuf,
    why: String,
}

/// What is wrong with a description that can be read: all of it.
#[derive(Debug, Default)]
pub struct Problems {
    written: Vec<String>,
    built: Option<BuildError>,
}

impl Problems {
    /// Each problem, in words.
    pub fn lines(&self) -> Vec<String> {
        let built = self.built.iter().flat_map(BuildError::violations);
        // Where the loop was declared is a line of this program, no help to who wrote the file.
        let built = built.map(|violation| {
            let words = violation.to_string();
            words.rsplit_once(" (declared at ").map_or(words.clone(), |(told, _)| told.to_owned())
        });
        self.written.iter().cloned().chain(built).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_TOLD: usize = 50;
        let lines = self.lines();
        write!(f, "the pipeline cannot run:")?;
        for line in lines.iter().take(MAX_TOLD) {
            write!(f, "\n  - {line}")?;
        }
        match lines.len().saturating_sub(MAX_TOLD) {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

impl Pipeline {
    /// Reads a description: TOML, or JSON if the file ends in `.json`.
    ///
    /// # Errors
    /// When there is no such file, or it is not written as a description is.
    pub fn read(file: &Path) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable { file: file.to_owned(), why };
        let size = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?.len();
        if size > MAX_DESCRIPTION {
            return Err(unreadable(format!("it has more than {MAX_DESCRIPTION} bytes")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
        match file.extension().is_some_and(|extension| extension == "json") {
            true => serde_json::from_str(&text).map_err(|error| unreadable(error.to_string())),
            false => text.parse().map_err(unreadable),
        }
    }

    /// Makes the loop, which reads its input from one folder and writes its output into another.
    ///
    /// # Errors
    /// Everything that is wrong with the description.
    pub fn build(self, input: PathBuf, output: PathBuf) -> Result<Harness<Room, Text>, Problems> {
        let registry = registry();
        let mut written = Vec::new();
        let mut builder =
            Harness::<Room, Text>::dynamic(self.name).provide(Room::slots(input, output));
        if let Some(step) = self.start {
            builder = builder.start(step);
        }
        if let Some(step) = self.on_error {
            builder = builder.on_error(step);
        }
        if let Some(step) = self.finally {
            builder = builder.finally(step);
        }
        if let Some(steps) = self.budget {
            builder = builder.budget(Budget::steps(steps));
        }
        for step in self.steps {
            step.check(&mut written);
            builder = builder.step(step.name.clone(), |define| step.declare(define, &registry));
        }
        match builder.build() {
            Ok(harness) if written.is_empty() => Ok(harness),
            built => Err(Problems { written, built: built.err() }),
        }
    }
}

impl std::str::FromStr for Pipeline {
    type Err = String;

    /// Reads a description in TOML.
    fn from_str(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

impl Step {
    /// What the loop itself does not see: keys that contradict each other.
    fn check(&self, problems: &mut Vec<String>) {
        let name: String = self.name.chars().take(60).collect();
        let mut problem =
            |what: &str| problems.push(format!("step `{}` {what}", name.escape_debug()));
        let exits = [self.then.is_some(), self.end, self.route.is_some()];
        let exits = exits.into_iter().filter(|given| *given).count();
        if self.off.is_some() {
            return;
        }
        if exits == 0 {
            problem("has no exit (give it one of `then`, `end = true` and `route`)");
        }
        if exits > 1 {
            problem("has more than one exit (keep one of `then`, `end = true` and `route`)");
        }
        if self.route.is_none() && !(self.to.is_empty() && self.ends.is_empty()) {
            problem("says where signals lead, but has no `route`");
        }
        if self.run.is_none() {
            if self.route.is_none() {
                problem("does nothing (give it `run` or `route`)");
            }
            if !self.with.is_null() || self.retry.is_some() || self.on_error.is_some() {
                problem("has `with`, `retry` or `on_error`, but runs nothing (give it `run`)");
            }
        }
    }

    fn declare(
        self,
        define: Define<Room, Text, StepName>,
        registry: &Registry<Room, Text>,
    ) -> StepDef<Room, Text, StepName> {
        if let Some(why) = self.off {
            return define.off(why);
        }
        let leads = self.to.into_iter().map(|(signal, step)| (signal, to(step)));
        let pairs = leads.chain(self.ends.into_iter().map(|signal| (signal, end())));
        let mut step = match (self.run, &self.route) {
            (Some(run), _) => define.named_with(registry, &run, &self.with),
            (None, Some(route)) => return define.decide_named(registry, route, pairs),
            // A problem that is told already.
            (None, None) => define.run(|_, _| async move { Ok(Text::update()) }),
        };
        if let Some(times) = self.retry {
            step = step.retry(Retry::exponential().times(times));
        }
        if let Some(other) = self.on_error {
            step = step.on_error(other);
        }
        match (self.route, self.then) {
            (Some(route), _) => step.route_named(registry, &route, pairs),
            (None, Some(next)) => step.then(next),
            (None, None) => step.end(),
        }
    }
}
