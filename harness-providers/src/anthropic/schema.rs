//! The part of JSON schema that the API applies to replies: the page "Structured outputs" of
//! <https://platform.claude.com/docs>, section "JSON Schema limitations", as of November 2026. It rejects
//! everything else.

use crate::failure::unsupported;
use harness::llm::{LlmError, ModelId};
use serde_json::{Map, Value, json};

/// Keywords that are sent as they are.
const KEPT: &[&str] = &["const", "default", "description", "required", "title", "type"];

/// Keywords that restrict nothing, and that the API does not know.
const NOTES: &[&str] =
    &["$comment", "$id", "$schema", "deprecated", "examples", "readOnly", "writeOnly"];

/// Formats that the API knows. Others, such as `uint32`, are notes.
const FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Parts of patterns that the API does not know: references back, looking around, ends of words.
const NOT_IN_PATTERNS: &[&str] = &[
    "(?=", "(?!", "(?<", "\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9", "\\b",
    "\\B",
];

/// The schema of a reply in the keywords of the API, with every object closed to other fields.
pub(super) fn of_reply(model: &ModelId, schema: &Value) -> Result<Value, LlmError> {
    if is_recursive(schema, schema, &mut vec!["#"], &mut Vec::new()) {
        return Err(unsupported(model, "the protocol does not apply a recursive schema"));
    }
    translated(schema).map_err(|keyword| {
        let what = format!("the protocol does not apply the keyword `{keyword}` of this schema");
        unsupported(model, &what)
    })
}

/// The translation, or the keyword that has none.
fn translated(schema: &Value) -> Result<Value, &str> {
    // `true` and `false` are schemas without a type, which the API requires.
    let keywords = schema.as_object().ok_or("true")?;
    let mut sent = Map::new();
    for (name, value) in keywords {
        let own = || Err(name.as_str());
        let (name, value) = match name.as_str() {
            note if NOTES.contains(&note) => continue,
            "format" if !FORMATS.iter().any(|known| value == known) => continue,
            "properties" | "$defs" | "definitions" => {
                let schemas = value.as_object().into_iter().flatten();
                let schemas: Result<Map<_, _>, &str> =
                    schemas.map(|(name, schema)| Ok((name.clone(), translated(schema)?))).collect();
                (name.as_str(), Value::Object(schemas?))
            }
            "items" => ("items", translated(value)?),
            // The API has no `oneOf`. The choices that a type has exclude each other.
            "anyOf" | "oneOf" if !sent.contains_key("anyOf") => ("anyOf", list(value)?),
            "allOf" => {
                let all = list(value)?;
                let refers = all.as_array().into_iter().flatten();
                if refers.into_iter().any(|schema| schema.get("$ref").is_some()) {
                    return own();
                }
                ("allOf", all)
            }
            "$ref" if value.as_str().is_some_and(|to| to.starts_with('#')) => {
                ("$ref", value.clone())
            }
            "enum" => {
                let values = value.as_array().into_iter().flatten();
                if values.into_iter().any(|value| value.is_object() || value.is_array()) {
                    return own();
                }
                ("enum", value.clone())
            }
            "minItems" if *value == json!(0) || *value == json!(1) => ("minItems", value.clone()),
            "pattern" => {
                let pattern = value.as_str().unwrap_or_default();
                if NOT_IN_PATTERNS.iter().any(|part| pattern.contains(part)) {
                    return own();
                }
                ("pattern", value.clone())
            }
            "format" => ("format", value.clone()),
            "additionalProperties" if *value == json!(false) => {
                ("additionalProperties", value.clone())
            }
            kept if KEPT.contains(&kept) => (kept, value.clone()),
            _ => return own(),
        };
        sent.insert(name.to_owned(), value);
    }
    if sent.contains_key("$ref") {
        // What says nothing about values is left out beside a reference.
        ["default", "description", "title"].iter().for_each(|note| drop(sent.remove(*note)));
    }
    let is_object = match sent.get("type") {
        Some(Value::Array(names)) => names.contains(&json!("object")),
        Some(name) => name == "object",
        None => sent.contains_key("properties"),
    };
    if is_object && !sent.contains_key("additionalProperties") {
        if !sent.contains_key("properties") {
            // A map of any names.
            return Err("type");
        }
        sent.insert("additionalProperties".into(), json!(false));
    }
    Ok(Value::Object(sent))
}

fn list(value: &Value) -> Result<Value, &str> {
    let schemas = value.as_array().into_iter().flatten();
    schemas.map(translated).collect::<Result<_, _>>().map(Value::Array)
}

/// Whether a part of a schema refers to what it is in. `open` are the references on the way to it, and
/// `done` those that are known not to come back.
fn is_recursive<'a>(
    root: &'a Value,
    part: &'a Value,
    open: &mut Vec<&'a str>,
    done: &mut Vec<&'a str>,
) -> bool {
    match part {
        Value::Object(map) => {
            if let Some(to) = map.get("$ref").and_then(Value::as_str)
                && !done.contains(&to)
            {
                if open.contains(&to) {
                    return true;
                }
                open.push(to);
                let target = root.pointer(to.trim_start_matches('#'));
                if target.is_some_and(|target| is_recursive(root, target, open, done)) {
                    return true;
                }
                open.pop();
                done.push(to);
            }
            map.values().any(|part| is_recursive(root, part, open, done))
        }
        Value::Array(items) => items.iter().any(|part| is_recursive(root, part, open, done)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::LlmErrorKind;

    fn of(schema: &Value) -> Result<Value, LlmError> {
        of_reply(&ModelId::new("anthropic", "m"), schema)
    }

    #[test]
    fn every_object_is_closed_and_notes_are_removed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Answer",
            "type": "object",
            "properties": {
                "default": {"type": "object", "properties": {}},
                "kind": {"oneOf": [{"type": "string", "const": "a"}, {"$ref": "#/$defs/B", "description": "b"}]},
                "tags": {"type": "array", "items": {"enum": ["x", null]}, "minItems": 1},
                "count": {"type": "integer", "format": "int64", "default": 3},
                "at": {"type": ["string", "null"], "format": "date-time"},
                "code": {"type": "string", "pattern": "^[a-z]+$"},
            },
            "required": ["kind"],
            "$defs": {"B": {"type": "object", "properties": {}, "examples": [{}]}},
        });
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(
            of(&schema).unwrap(),
            json!({
                "title": "Answer",
                "type": "object",
                "properties": {
                    "default": closed,
                    "kind": {"anyOf": [{"type": "string", "const": "a"}, {"$ref": "#/$defs/B"}]},
                    "tags": {"type": "array", "items": {"enum": ["x", null]}, "minItems": 1},
                    "count": {"type": "integer", "default": 3},
                    "at": {"type": ["string", "null"], "format": "date-time"},
                    "code": {"type": "string", "pattern": "^[a-z]+$"},
                },
                "required": ["kind"],
                "$defs": {"B": closed},
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_the_api_rejects_is_refused_wherever_it_is() {
        let of_property = |schema| json!({"type": "object", "properties": {"a": schema}});
        for schema in [
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "number", "multipleOf": 2}),
            json!({"type": "string", "maxLength": 9}),
            json!({"type": "string", "pattern": "^(?=a)"}),
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 3}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 2}),
            json!({"type": "array", "prefixItems": []}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"enum": [{"a": 1}]}),
            json!({"allOf": [{"$ref": "#/$defs/A"}]}),
            json!({"$ref": "https://example.com/schema"}),
            json!({"anyOf": [{"not": {}}]}),
            json!(true),
        ] {
            let mut schema = of_property(schema);
            schema["$defs"] = json!({"A": {"type": "string"}});
            assert_eq!(of(&schema).unwrap_err().kind(), LlmErrorKind::Unsupported, "{schema}");
        }
        let error = of(&of_property(json!({"type": "integer", "minimum": 0}))).unwrap_err();
        assert!(error.to_string().contains("`minimum`"), "{error}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_refused_and_one_that_refers_twice_is_not() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/A"}});
        let with = |a: Value| {
            json!({
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/A"}, "y": {"$ref": "#/$defs/A"}},
                "$defs": {"A": a, "B": {"type": "object", "properties": {"a": list}}},
            })
        };
        assert!(of(&with(json!({"type": "string"}))).is_ok());
        for a in [
            json!({"$ref": "#/$defs/A"}),
            json!({"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}),
            json!({"type": "object", "properties": {"all": {"$ref": "#"}}}),
        ] {
            let error = of(&with(a)).unwrap_err();
            assert!(error.to_string().contains("recursive"), "{error}");
        }
    }
}
