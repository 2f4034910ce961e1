//! Schemas that OpenAI guarantees to follow: the guide "Structured outputs" of
//! <https://platform.openai.com/docs>, section "Supported schemas", as of February 2026.

use serde_json::{Map, Value, json};

/// Formats of text that strict schemas may name. Others, such as `uint32`, are rejected.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// What strict schemas may hold, beside what is looked at below.
const KEPT: [&str; 15] = [
    "$ref",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "title",
    "type",
    "anyOf",
];

/// What says nothing about values.
const ANNOTATIONS: [&str; 8] =
    ["$comment", "$id", "$schema", "default", "deprecated", "examples", "readOnly", "writeOnly"];

/// The schema as strict schemas have to be: every object closed, and every property required. What
/// follows it, follows the schema. `None` if strict schemas cannot say it.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    // The root is an object, and no choice.
    let is_object = schema["type"] == "object" && schema["anyOf"].is_null();
    (is_object && schema["oneOf"].is_null()).then(|| of(schema))?
}

fn of(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    let mut strict = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "properties" | "$defs" | "definitions" => {
                let schemas = value.as_object()?.iter();
                let schemas = schemas.map(|(name, schema)| Some((name.clone(), of(schema)?)));
                strict.insert(key.clone(), Value::Object(schemas.collect::<Option<_>>()?));
            }
            "items" => {
                strict.insert(key.clone(), of(value)?);
            }
            "anyOf" | "oneOf" => {
                let all = value.as_array()?.iter().map(of).collect::<Option<Vec<_>>>()?;
                if strict.insert("anyOf".into(), Value::Array(all)).is_some() {
                    return None;
                }
            }
            "format" => {
                if value.as_str().is_some_and(|name| FORMATS.contains(&name)) {
                    strict.insert(key.clone(), value.clone());
                }
            }
            // Every property is required below.
            "required" => {}
            "additionalProperties" if *value == json!(false) => {}
            name if KEPT.contains(&name) => {
                strict.insert(key.clone(), value.clone());
            }
            name if ANNOTATIONS.contains(&name) => {}
            _ => return None,
        }
    }
    if strict.contains_key("$ref") {
        // Nothing may stand beside a reference.
        strict.retain(|key, _| key == "$ref");
        return Some(Value::Object(strict));
    }
    let is_object = match &strict.get("type") {
        Some(Value::Array(names)) => names.contains(&json!("object")),
        Some(name) => **name == "object",
        None => false,
    };
    if is_object {
        let names = match (strict.get("properties"), map.get("additionalProperties")) {
            (Some(Value::Object(properties)), _) => properties.keys().cloned().collect(),
            (_, Some(Value::Bool(false))) => {
                strict.insert("properties".into(), json!({}));
                Vec::new()
            }
            // A map of any names.
            _ => return None,
        };
        strict.insert("required".into(), json!(names));
        strict.insert("additionalProperties".into(), json!(false));
    } else if !["type", "anyOf"].iter().any(|key| strict.contains_key(*key)) {
        let texts = |values: &Value| {
            values.as_array().is_some_and(|values| values.iter().all(Value::is_string))
        };
        let is_text = strict.get("enum").is_some_and(texts)
            || strict.get("const").is_some_and(Value::is_string);
        if !is_text {
            return None;
        }
        strict.insert("type".into(), json!("string"));
    }
    Some(Value::Object(strict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_every_property_is_required() {
        let schema = json!({
            "$schema": "x",
            "title": "T",
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "default": null},
                "b": {"type": "integer", "format": "uint32", "minimum": 0},
                "c": {"oneOf": [{"type": "string", "const": "x"}, {"$ref": "#/$defs/D", "description": "d"}]},
                "d": {"type": "array", "items": {"type": "object", "properties": {}}},
                "e": {"type": "string", "format": "date"},
                "f": {"enum": ["x", "y"]},
            },
            "required": ["b"],
            "$defs": {"D": {"type": "object", "additionalProperties": false}},
        });
        let closed = json!({
            "type": "object", "properties": {}, "required": [], "additionalProperties": false,
        });
        assert_eq!(
            strict(&schema).unwrap(),
            json!({
                "title": "T",
                "type": "object",
                "properties": {
                    "a": {"type": ["string", "null"]},
                    "b": {"type": "integer", "minimum": 0},
                    "c": {"anyOf": [{"type": "string", "const": "x"}, {"$ref": "#/$defs/D"}]},
                    "d": {"type": "array", "items": closed},
                    "e": {"type": "string", "format": "date"},
                    "f": {"type": "string", "enum": ["x", "y"]},
                },
                "required": ["a", "b", "c", "d", "e", "f"],
                "additionalProperties": false,
                "$defs": {"D": closed},
            })
        );
    }

    #[test]
    fn what_strict_schemas_cannot_say_is_left_to_the_model() {
        let of_property = |schema| json!({"type": "object", "properties": {"a": schema}});
        for schema in [
            json!({"type": "string"}),
            json!({"anyOf": [{"type": "object", "properties": {}}]}),
            json!({"type": "object", "anyOf": [], "properties": {}}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            of_property(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            of_property(json!({"type": "object"})),
            of_property(json!({"type": "string", "minLength": 1})),
            of_property(json!({"allOf": []})),
            of_property(json!({"type": "array", "prefixItems": []})),
            of_property(json!({})),
            of_property(json!(true)),
            of_property(json!({"const": 1})),
        ] {
            assert_eq!(strict(&schema), None, "{schema}");
        }
    }
}
