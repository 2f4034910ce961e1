//! Schemas of servers' tools, as every vendor accepts them.

use serde_json::{Map, Value, json};

/// The deepest nesting.
const DEEPEST: usize = 24;

/// The most objects in a schema, after references are resolved.
const MOST: usize = 4_000;

/// The greatest length of the name of an argument at vendors.
const LONGEST_NAME: usize = 64;

/// Keywords that hold one schema.
const ONE: &[&str] = &["not", "if", "then", "else", "contains", "propertyNames"];

/// Keywords that hold a list of schemas.
const SEVERAL: &[&str] = &["anyOf", "oneOf", "allOf"];

/// Keywords that are of no use to a model, or that vendors refuse.
const DROPPED: &[&str] = &[
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "$vocabulary",
    "$dynamicAnchor",
    "$ref",
    "$dynamicRef",
];

/// The schema of arguments for models: of type `object` without a choice at its root, with references
/// resolved, every list with the schema of its items, and names of arguments that vendors accept. It
/// accepts everything that the server's schema accepts; the server checks arguments itself.
///
/// Fails with why no vendor would accept it.
pub(super) fn clean(schema: &Map<String, Value>) -> Result<Value, &'static str> {
    let mut cleaning = Cleaning { root: schema, left: MOST, open: Vec::new() };
    let cleaned = cleaning.schema(&Value::Object(schema.clone()), 0)?;
    let Value::Object(mut root) = cleaned else {
        return Err("its schema is not an object");
    };
    match root.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {}
        Some(_) => return Err("its arguments are not an object"),
    }
    for keyword in SEVERAL {
        if let Some(Value::Array(choices)) = root.remove(*keyword) {
            join(&mut root, &choices, *keyword == "allOf");
        }
    }
    for keyword in ["not", "if", "then", "else", "enum", "const"] {
        root.remove(keyword);
    }
    root.insert("type".to_owned(), json!("object"));
    root.entry("properties").or_insert_with(|| json!({}));
    Ok(Value::Object(root))
}

/// Adds the properties of choices to a root, of which vendors accept no choice. What every choice
/// requires stays required.
fn join(root: &mut Map<String, Value>, choices: &[Value], all: bool) {
    let names = |value: &Value| -> Vec<String> {
        let names = value["required"].as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let mut properties = match root.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for choice in choices {
        for (name, schema) in choice["properties"].as_object().into_iter().flatten() {
            match properties.get_mut(name) {
                None => _ = properties.insert(name.clone(), schema.clone()),
                Some(other) if other == schema || all => {}
                Some(other) => match other.get_mut("anyOf").and_then(Value::as_array_mut) {
                    Some(several) => several.push(schema.clone()),
                    None => *other = json!({"anyOf": [other.take(), schema]}),
                },
            }
        }
    }
    let mut required = names(&json!({"required": root.get("required")}));
    let shared = choices.iter().map(names).reduce(|one, other| match all {
        true => [one, other].concat(),
        false => one.into_iter().filter(|name| other.contains(name)).collect(),
    });
    for name in shared.unwrap_or_default() {
        if !required.contains(&name) && properties.contains_key(&name) {
            required.push(name);
        }
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), json!(required));
    }
    // A choice may have properties that the root closed itself against.
    root.remove("additionalProperties");
}

struct Cleaning<'a> {
    root: &'a Map<String, Value>,
    left: usize,
    /// The references that are being resolved.
    open: Vec<String>,
}

impl Cleaning<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, &'static str> {
        let Value::Object(map) = schema else {
            // `true`, and what is no schema, stand for any value.
            return Ok(json!({}));
        };
        self.left = self.left.checked_sub(1).ok_or("its schema is too large")?;
        if depth > DEEPEST {
            return Err("its schema is nested too deeply");
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.resolved(reference, map, depth);
        }
        let mut cleaned = Map::new();
        for (keyword, value) in map {
            let keyword = keyword.as_str();
            let value = match (keyword, value) {
                _ if DROPPED.contains(&keyword) => continue,
                ("properties", Value::Object(properties)) => {
                    Value::Object(self.properties(properties, map, depth)?)
                }
                ("properties" | "patternProperties" | "dependentSchemas", _) => continue,
                ("prefixItems", Value::Array(items)) => {
                    let items = self.list(items, depth)?;
                    cleaned.insert("items".to_owned(), any_of(items));
                    continue;
                }
                ("prefixItems", _) => continue,
                // Vendors know only items that are all alike.
                ("items", _) if map.get("prefixItems").is_some_and(Value::is_array) => continue,
                ("items", Value::Array(items)) => any_of(self.list(items, depth)?),
                ("items", value) => self.schema(value, depth + 1)?,
                ("additionalProperties", value @ Value::Object(_)) => {
                    self.schema(value, depth + 1)?
                }
                (keyword, Value::Array(choices)) if SEVERAL.contains(&keyword) => {
                    Value::Array(self.list(choices, depth)?)
                }
                (keyword, _) if SEVERAL.contains(&keyword) => continue,
                (keyword, value @ Value::Object(_)) if ONE.contains(&keyword) => {
                    self.schema(value, depth + 1)?
                }
                (_, value) => value.clone(),
            };
            cleaned.insert(keyword.to_owned(), value);
        }
        let is_list = match cleaned.get("type") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => false,
        };
        if is_list {
            cleaned.entry("items").or_insert_with(|| json!({}));
        }
        self.require(&mut cleaned);
        Ok(Value::Object(cleaned))
    }

    fn list(&mut self, schemas: &[Value], depth: usize) -> Result<Vec<Value>, &'static str> {
        schemas.iter().map(|schema| self.schema(schema, depth + 1)).collect()
    }

    /// The properties that can be named at every vendor. One that is required but cannot be named makes
    /// the tool unusable.
    fn properties(
        &mut self,
        properties: &Map<String, Value>,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, &'static str> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let required = map.get("required").and_then(Value::as_array);
        let mut kept = Map::new();
        for (name, schema) in properties {
            if *schema == Value::Bool(false) {
                continue;
            }
            if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(legal) {
                kept.insert(name.clone(), self.schema(schema, depth + 1)?);
            } else if required.is_some_and(|names| names.iter().any(|other| other == name)) {
                return Err("the name of a required argument is not legal at vendors");
            }
        }
        Ok(kept)
    }

    /// Leaves required what is a property.
    fn require(&self, cleaned: &mut Map<String, Value>) {
        let Some(required) = cleaned.remove("required") else {
            return;
        };
        let properties = cleaned.get("properties").and_then(Value::as_object);
        let is_property = |name: &&Value| {
            name.as_str().is_some_and(|name| match properties {
                Some(properties) => properties.contains_key(name),
                None => false,
            })
        };
        let kept: Vec<Value> =
            required.as_array().into_iter().flatten().filter(is_property).cloned().collect();
        if !kept.is_empty() {
            cleaned.insert("required".to_owned(), Value::Array(kept));
        }
    }

    /// What a reference stands for, with what stands beside it.
    fn resolved(
        &mut self,
        reference: &str,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, &'static str> {
        let beside = ["title", "description", "default"]
            .into_iter()
            .filter_map(|keyword| Some((keyword.to_owned(), map.get(keyword)?.clone())));
        let target = self.target(reference);
        // A schema that holds itself has no end, and other documents are not loaded: any value.
        let again = self.open.iter().any(|open| open == reference);
        let mut resolved = match target {
            Some(target) if !again => {
                self.open.push(reference.to_owned());
                let resolved = self.schema(&target, depth + 1);
                self.open.pop();
                match resolved? {
                    Value::Object(resolved) => resolved,
                    _ => Map::new(),
                }
            }
            _ => Map::new(),
        };
        resolved.extend(beside);
        Ok(Value::Object(resolved))
    }

    fn target(&self, reference: &str) -> Option<Value> {
        let path = reference.strip_prefix('#')?;
        let mut parts = path.split('/');
        if parts.next() != Some("") {
            return None;
        }
        let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let mut at = self.root.get(&unescaped(parts.next()?))?;
        for part in parts {
            at = match at {
                Value::Object(map) => map.get(&unescaped(part))?,
                Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(at.clone())
    }
}

fn any_of(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        0 => json!({}),
        1 => schemas.remove(0),
        _ => json!({"anyOf": schemas}),
    }
}

#[cfg(test)]
mod tests;
