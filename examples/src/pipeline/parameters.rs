//! What a description may name, with the parameters that each takes.

use std::collections::BTreeMap;

use harness::Registry;
use harness::prelude::*;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fields::{Found, unknown, wrong_items};
use super::steps::{Room, Text};
use super::tree::Tree;

/// Everything that a description may name.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) registry: Registry<Room, Text>,
    /// The schemas of the parameters, of those that take some.
    taken: BTreeMap<&'static str, Value>,
}

impl Known {
    pub(super) fn new() -> Self {
        Self { registry: Registry::new(), taken: BTreeMap::new() }
    }

    /// A body that is made from its parameters.
    pub(super) fn make<P>(mut self, name: &'static str) -> Self
    where
        P: DeserializeOwned + JsonSchema + Handler<Room, Text>,
    {
        self.registry = self.registry.make(name, |parameters: P| parameters);
        self.taken.insert(name, schemars::schema_for!(P).to_value());
        self
    }

    /// A body without parameters.
    pub(super) fn run<F, Fut>(mut self, name: &'static str, body: F) -> Self
    where
        F: Fn(View<Text>, Cx<Room>) -> Fut + Send + Sync + 'static,
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

    /// Tells everything that is wrong with the parameters, as decoding them would stop at the first
    /// problem. What only decoding sees is left to it.
    pub(super) fn check(&self, run: &str, given: &[(String, Tree)], what: &str, found: &mut Found) {
        let Some(schema) = self.taken.get(run) else {
            return;
        };
        let none = serde_json::Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let known = || properties.keys().map(String::as_str);
        let mut meant = Vec::new();
        for (key, value) in given {
            let Some(property) = properties.get(key) else {
                let near = found.near(key, known());
                meant.extend(near);
                found.tell(|| unknown(&format!("{what}, `with`"), key, near, known()));
                continue;
            };
            if let Some(problem) = misfit(property, value) {
                found.tell(|| format!("{what}: `with.{key}` {problem}"));
            }
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            if !meant.contains(&key) && !given.iter().any(|(name, _)| name == key) {
                let must = properties.get(key).map_or("given", must);
                found.tell(|| format!("{what}: `with` lacks `{key}`, which must be {must}"));
            }
        }
    }
}

/// What a value must be, in words.
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
