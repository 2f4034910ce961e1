//! The registry of what a description may name, with the schema of each one's parameters.

use std::collections::BTreeMap;

use harness::declare::Registry;
use harness::prelude::*;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fields::{ProblemList, unknown, wrong_items};
use super::steps::{Ctx, Text};
use super::tree::Tree;

/// The registry, with schemas.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) registry: Registry<Ctx, Text>,
    /// The schemas of the parameters, of the bodies that take some.
    taken: BTreeMap<&'static str, Value>,
}

impl Known {
    pub(super) fn new() -> Self {
        Self { registry: Registry::new(), taken: BTreeMap::new() }
    }

    /// Adds a body that is built from its parameters.
    pub(super) fn make<P>(mut self, name: &'static str) -> Self
    where
        P: DeserializeOwned + JsonSchema + Handler<Ctx, Text>,
    {
        self.registry = self.registry.make(name, |parameters: P| parameters);
        self.taken.insert(name, schemars::schema_for!(P).to_value());
        self
    }

    /// Adds a body without parameters.
    pub(super) fn run<F, Fut>(mut self, name: &'static str, body: F) -> Self
    where
        F: Fn(View<Text>, Cx<Ctx>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<Text>> + Send + 'static,
    {
        self.registry = self.registry.run(name, body);
        self
    }

    pub(super) fn route<Sig: Signal>(
        mut self,
        name: &'static str,
        route: impl Fn(&Text) -> Sig + Send + Sync + 'static,
    ) -> Self {
        self.registry = self.registry.route(name, route);
        self
    }

    /// Reports every problem of the parameters that the schema shows; decoding would stop at the
    /// first one, and finds the others.
    pub(super) fn check(
        &self,
        run: &str,
        given: &[(String, Tree)],
        what: &str,
        problems: &mut ProblemList,
    ) {
        let Some(schema) = self.taken.get(run) else {
            return;
        };
        let none = serde_json::Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let known = || properties.keys().map(String::as_str);
        let mut meant = Vec::new();
        for (key, value) in given {
            let Some(property) = properties.get(key) else {
                let near = problems.near(key, known());
                meant.extend(near);
                problems.add(|| unknown(&format!("{what}, `with`"), key, near, known()));
                continue;
            };
            if let Some(problem) = misfit(property, value) {
                problems.add(|| format!("{what}: `with.{key}` {problem}"));
            }
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            if !meant.contains(&key) && !given.iter().any(|(name, _)| name == key) {
                let must = properties.get(key).map_or("given", must);
                problems.add(|| format!("{what}: `with` lacks `{key}`, which must be {must}"));
            }
        }
    }
}

/// The type that a schema requires, in words.
fn must(schema: &Value) -> &'static str {
    match schema["type"].as_str() {
        Some("string") => "text",
        Some("boolean") => "true or false",
        Some("integer") => "a whole number from 0",
        Some("array") => match schema["items"]["type"].as_str() {
            Some("string") => "a list of text",
            _ => "a list",
        },
        _ => "given",
    }
}

fn fits(schema: &Value, value: &Tree) -> bool {
    match (schema["type"].as_str(), value) {
        (Some("string"), value) => matches!(value, Tree::Text(_)),
        (Some("boolean"), value) => matches!(value, Tree::Bool(_)),
        (Some("integer"), value) => {
            matches!(value, Tree::Whole(number) if usize::try_from(*number).is_ok())
        }
        (Some("array"), Tree::List(items)) => items.iter().all(|item| fits(&schema["items"], item)),
        (Some("array"), _) => false,
        _ => true,
    }
}

fn misfit(schema: &Value, value: &Tree) -> Option<String> {
    if let (Some("array"), Tree::List(items)) = (schema["type"].as_str(), value) {
        let item = &schema["items"];
        return wrong_items(items, must(item), |value| fits(item, value));
    }
    (!fits(schema, value)).then(|| format!("must be {}, but it is {}", must(schema), value.is()))
}
