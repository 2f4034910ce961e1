//! JSON schemas as providers accept them.

use serde_json::Value;

/// The schema with every object closed to other fields, which providers require.
pub(crate) fn closed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            // Values that are data and no schemas.
            let schemas = map.iter_mut().filter(|(key, _)| {
                !["const", "default", "enum", "examples", "required"].contains(&key.as_str())
            });
            schemas.for_each(|(_, value)| close(value));
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_object_is_closed() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "object", "properties": {}}]}},
            "default": {"properties": 1},
        });
        let closed = closed(&schema);
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["properties"]["a"]["anyOf"][0]["additionalProperties"], false);
        assert_eq!(closed["default"], json!({"properties": 1}));
    }
}
