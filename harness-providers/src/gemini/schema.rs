//! The part of JSON schema that the API applies to replies.

use crate::failure::unsupported;
use harness::llm::{LlmError, ModelId};
use serde_json::{Map, Value};

/// Keywords that restrict a value, and that the API does not apply.
const NOT_APPLIED: &[&str] = &[
    "allOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "maxLength",
    "maxProperties",
    "minLength",
    "minProperties",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Keywords that restrict nothing, and that the API does not know.
const NOTES: &[&str] =
    &["$comment", "$schema", "default", "deprecated", "examples", "readOnly", "writeOnly"];

/// Formats that the API knows. Others, such as `uint32`, are notes for it too.
const FORMATS: &[&str] = &["date", "date-time", "double", "float", "int32", "int64", "time"];

/// The schema of a reply in the keywords of the API.
pub(super) fn of_reply(model: &ModelId, schema: &Value) -> Result<Value, LlmError> {
    translated(schema, &|name| match NOT_APPLIED.contains(&name) {
        true => Err(unsupported(
            model,
            &format!("the protocol does not apply the keyword `{name}` of a schema"),
        )),
        false => Ok(()),
    })
}

/// The schema of a tool's arguments in the keywords of the API. The tool checks the arguments itself, so
/// any keyword may be in it.
pub(super) fn of_tool(schema: &Value) -> Value {
    translated(schema, &|_| Ok(())).unwrap_or_else(|_| schema.clone())
}

fn translated(
    schema: &Value,
    check: &dyn Fn(&str) -> Result<(), LlmError>,
) -> Result<Value, LlmError> {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        // Any value. The API has no schema that is `true`.
        Value::Bool(true) => return Ok(Value::Object(Map::new())),
        other => return Ok(other.clone()),
    };
    let mut kept = Map::new();
    for (name, value) in keywords {
        check(name)?;
        let (name, value) = match name.as_str() {
            note if NOTES.contains(&note) => continue,
            "format" if !FORMATS.iter().any(|known| value == known) => continue,
            "const" => ("enum", Value::Array(vec![value.clone()])),
            "properties" | "$defs" | "definitions" => {
                let schemas = value.as_object().into_iter().flatten();
                let schemas: Result<Map<_, _>, LlmError> = schemas
                    .map(|(name, schema)| Ok((name.clone(), translated(schema, check)?)))
                    .collect();
                (name.as_str(), Value::Object(schemas?))
            }
            "items" => ("items", translated(value, check)?),
            "additionalProperties" if value.is_object() => {
                ("additionalProperties", translated(value, check)?)
            }
            "anyOf" | "oneOf" | "prefixItems" => {
                let schemas = value.as_array().into_iter().flatten();
                let schemas: Result<_, _> =
                    schemas.map(|schema| translated(schema, check)).collect();
                (name.as_str(), Value::Array(schemas?))
            }
            _ => (name.as_str(), value.clone()),
        };
        kept.insert(name.to_owned(), value);
    }
    Ok(Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::LlmErrorKind;
    use serde_json::json;

    fn of(schema: &Value) -> Result<Value, LlmError> {
        of_reply(&ModelId::new("gemini", "m"), schema)
    }

    #[test]
    fn notes_are_removed_and_a_constant_is_the_only_value() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Answer",
            "type": "object",
            "properties": {
                "default": {"type": ["string", "null"], "default": "x"},
                "pattern": {"oneOf": [{"const": "a"}, {"const": "b", "description": "B"}]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "maxItems": 3},
                "count": {"type": "integer", "format": "uint32", "minimum": 0},
                "at": {"type": "string", "format": "date-time"},
                "any": true,
            },
            "$defs": {"Tag": {"type": "string", "examples": ["x"]}},
            "required": ["pattern"],
            "additionalProperties": false,
        });
        assert_eq!(
            of(&schema).unwrap(),
            json!({
                "title": "Answer",
                "type": "object",
                "properties": {
                    "default": {"type": ["string", "null"]},
                    "pattern": {"oneOf": [{"enum": ["a"]}, {"enum": ["b"], "description": "B"}]},
                    "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "maxItems": 3},
                    "count": {"type": "integer", "minimum": 0},
                    "at": {"type": "string", "format": "date-time"},
                    "any": {},
                },
                "$defs": {"Tag": {"type": "string"}},
                "required": ["pattern"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_the_api_would_ignore_is_refused_wherever_it_is() {
        for schema in [
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": "object", "properties": {"a": {"minLength": 1}}}),
            json!({"items": {"anyOf": [{"not": {}}]}}),
            json!({"$defs": {"A": {"multipleOf": 2}}}),
        ] {
            assert_eq!(of(&schema).unwrap_err().kind(), LlmErrorKind::Unsupported, "{schema}");
        }
    }

    #[test]
    fn a_tool_keeps_the_keywords_that_it_checks_itself() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^a", "format": "uuid"}},
        });
        let properties = json!({"a": {"type": "string", "pattern": "^a"}});
        assert_eq!(of_tool(&schema), json!({"type": "object", "properties": properties}));
    }
}
