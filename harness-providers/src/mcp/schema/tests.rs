use super::*;
use proptest::prelude::*;

fn cleaned(schema: Value) -> Value {
    clean(schema.as_object().unwrap()).unwrap()
}

fn refused(schema: Value) -> &'static str {
    clean(schema.as_object().unwrap()).unwrap_err()
}

#[test]
fn a_usual_schema_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "A path", "minLength": 1},
            "deep": {"type": ["array", "null"], "items": {"enum": ["a", "b"]}},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    assert_eq!(cleaned(schema.clone()), schema);
}

#[test]
fn a_root_is_an_object_with_properties() {
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(cleaned(json!({})), empty);
    assert_eq!(cleaned(json!({"type": ["object", "null"], "$schema": "x", "$id": "y"})), empty);
    assert_eq!(refused(json!({"type": "string"})), "its arguments are not an object");
    assert_eq!(refused(json!({"type": ["string"]})), "its arguments are not an object");
}

#[test]
fn references_are_resolved() {
    let schema = json!({
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/Place", "description": "Where to"},
            "two": {"items": {"$ref": "#/definitions/a~1b"}, "type": "array"},
            "other": {"$ref": "https://example.com/schema"},
            "gone": {"$ref": "#/$defs/Gone"},
            "name": {"$ref": "#name"},
        },
        "$defs": {"Place": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Number"}}},
                  "Number": {"type": "number"}},
        "definitions": {"a/b": {"type": "string"}},
    });
    assert_eq!(
        cleaned(schema)["properties"],
        json!({
            "one": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "Where to"},
            "two": {"type": "array", "items": {"type": "string"}},
            "other": {}, "gone": {}, "name": {},
        })
    );
}

#[test]
fn a_schema_that_holds_itself_ends() {
    let tree = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "all": {"$ref": "#"}},
        "$defs": {"Tree": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/Tree"}, "value": {"type": "number"}},
        }},
    });
    let tree = cleaned(tree);
    let inner = json!({"left": {}, "value": {"type": "number"}});
    assert_eq!(tree["properties"]["tree"]["properties"], inner);
}

#[test]
fn a_schema_that_grows_without_bound_is_refused() {
    let mut definitions = Map::new();
    for at in 0..10 {
        let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
        let schema = json!({"type": "object", "properties": {"a": next, "b": next, "c": next}});
        definitions.insert(at.to_string(), schema);
    }
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": definitions});
    assert_eq!(refused(schema), "its schema is too large");
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "array", "items": deep});
    }
    assert_eq!(refused(json!({"properties": {"a": deep}})), "its schema is nested too deeply");
}

#[test]
fn a_choice_at_the_root_becomes_its_properties() {
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "additionalProperties": false,
        "oneOf": [
            {"properties": {"a": {"type": "string"}, "n": {"type": "number"}}, "required": ["a", "n"]},
            {"properties": {"b": {"type": "string"}, "n": {"type": "string"}}, "required": ["b", "n"]},
        ],
    });
    assert_eq!(
        cleaned(schema),
        json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string"}, "a": {"type": "string"}, "b": {"type": "string"},
                "n": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            },
            "required": ["kind", "n"],
        })
    );
    let all = json!({"allOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}}, "required": ["b"]},
    ]});
    assert_eq!(cleaned(all)["required"], json!(["a", "b"]));
}

#[test]
fn lists_have_items_and_booleans_are_schemas() {
    let schema = json!({"properties": {
        "a": {"type": "array"},
        "b": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
        "c": {"type": "array", "items": [{"type": "string"}]},
        "d": true,
        "e": false,
    }, "required": ["e", "gone", "d"]});
    assert_eq!(
        cleaned(schema),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {}},
                "b": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
                "c": {"type": "array", "items": {"type": "string"}},
                "d": {},
            },
            "required": ["d"],
        })
    );
}

#[test]
fn arguments_that_cannot_be_named_are_left_out() {
    let schema = json!({"properties": {"a b": {"type": "string"}, "ok": {}}});
    assert_eq!(cleaned(schema)["properties"], json!({"ok": {}}));
    let schema = json!({"properties": {"ż": {"type": "string"}}, "required": ["ż"]});
    assert_eq!(refused(schema), "the name of a required argument is not legal at vendors");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z#/$]{0,8}".prop_map(Value::from),
        Just(json!("object")),
        Just(json!("#/$defs/a")),
    ];
    let keyword = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("$ref"),
        Just("$defs"),
        Just("anyOf"),
        Just("allOf"),
        Just("required"),
        Just("prefixItems"),
        Just("not"),
        Just("a"),
        Just("additionalProperties"),
        Just("enum"),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((keyword.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_is_cleaned_or_refused(schema in any_json()) {
        let Value::Object(schema) = schema else { return Ok(()); };
        if let Ok(cleaned) = clean(&schema) {
            prop_assert_eq!(&cleaned["type"], "object");
            prop_assert!(cleaned["properties"].is_object());
            for keyword in ["$ref", "anyOf", "oneOf", "allOf", "not", "enum", "$defs"] {
                prop_assert!(cleaned.get(keyword).is_none(), "{} in {}", keyword, cleaned);
            }
            // A clean schema stays as it is.
            prop_assert_eq!(clean(cleaned.as_object().unwrap()).unwrap(), cleaned);
        }
    }
}
