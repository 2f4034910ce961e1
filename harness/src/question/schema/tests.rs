use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU8;
use std::time::Duration;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::question::Doubt;

#[derive(Serialize, Deserialize, JsonSchema)]
enum Plain {
    Approve,
    Reject,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tagged {
    /// `schemars` writes documented variants one by one.
    Approve,
    Edit {
        text: String,
        times: u8,
    },
    Pair(i32, bool),
    Because(Option<String>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Inside {
    Go { fast: bool },
    Stop,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Beside {
    Go(u16),
    Stop,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Word(String),
    Several(Vec<u32>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Strict {
    name: String,
    #[serde(default)]
    age: u8,
    note: Option<char>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    value: i64,
    below: Vec<Tree>,
    link: Option<Box<Tree>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Numbers {
    ratio: f64,
    small: i8,
    large: u64,
    some: NonZeroU8,
    wait: Duration,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Newtype(Strict);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Holding {
    #[serde(flatten)]
    inner: Flat,
    by_name: BTreeMap<String, u8>,
    by_number: BTreeMap<u32, bool>,
    pair: (u8, String),
    three: [bool; 3],
    set: HashSet<String>,
    nothing: (),
    any: Value,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Flat {
    x: u32,
}

/// Changes each valid value in many ways, and checks that the schema and the decoder agree on every
/// result.
fn agrees<T: DeserializeOwned + JsonSchema>(valid: &[Value]) {
    let schema = schemars::schema_for!(T).to_value();
    let name = std::any::type_name::<T>();
    let (mut fit, mut unfit) = (0, 0);
    for value in valid {
        assert_eq!(mismatch(&schema, value), None, "{name}: {value}\n{schema:#}");
        for changed in changes(value) {
            let decoded = serde_json::from_value::<T>(changed.clone()).map(|_| ());
            let found = mismatch(&schema, &changed);
            assert_eq!(
                found.is_none(),
                decoded.is_ok(),
                "{name}: {changed}\nschema: {found:?}\ndecoder: {decoded:?}\n{schema:#}"
            );
            if found.is_none() { fit += 1 } else { unfit += 1 }
        }
    }
    assert!(unfit > 0, "{name}: no change was refused, {fit} accepted");
}

/// The value with one position changed, for every position.
fn changes(value: &Value) -> Vec<Value> {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(300),
        json!(70_000),
        json!(-5_000_000_000_i64),
        json!(5_000_000_000_i64),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("z"),
        json!("Approve"),
        json!("approve"),
        json!({}),
        json!({ "kind": "Stop" }),
        json!({ "t": "Stop" }),
        json!({ "because": 3 }),
        json!([]),
        json!([1]),
        json!([1, "z"]),
    ];
    // Decoders also accept the fields of a struct as an array; schemas do not.
    let mut all: Vec<Value> =
        others.into_iter().filter(|other| !(other.is_array() && value.is_object())).collect();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let mut without = fields.clone();
                without.remove(name);
                all.push(Value::Object(without));
                for changed in changes(field) {
                    let mut with = fields.clone();
                    with.insert(name.clone(), changed);
                    all.push(Value::Object(with));
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let mut without = items.clone();
                without.remove(at);
                all.push(Value::Array(without));
                for changed in changes(item) {
                    let mut with = items.clone();
                    with[at] = changed;
                    all.push(Value::Array(with));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn agrees_with_the_decoder() {
    agrees::<bool>(&[json!(true)]);
    agrees::<String>(&[json!("yes")]);
    agrees::<Option<u8>>(&[json!(null), json!(7)]);
    agrees::<Plain>(&[json!("Approve"), json!("Reject")]);
    agrees::<Tagged>(&[
        json!("approve"),
        json!({ "edit": { "text": "t", "times": 3 } }),
        json!({ "pair": [-4, true] }),
        json!({ "because": null }),
    ]);
    agrees::<Inside>(&[json!({ "kind": "Go", "fast": true }), json!({ "kind": "Stop" })]);
    agrees::<Beside>(&[json!({ "t": "Go", "c": 9 }), json!({ "t": "Stop" })]);
    agrees::<Either>(&[json!("word"), json!([1, 2])]);
    agrees::<Strict>(&[json!({ "name": "n" }), json!({ "name": "n", "age": 4, "note": "c" })]);
    agrees::<Newtype>(&[json!({ "name": "n", "age": 4 })]);
    agrees::<Tree>(&[json!({
        "value": 1,
        "below": [{ "value": 2, "below": [] }],
        "link": { "value": 3, "below": [], "link": null },
    })]);
    agrees::<Numbers>(&[json!({
        "ratio": 0.5, "small": -3, "large": 1, "some": 1, "wait": { "secs": 1, "nanos": 2 },
    })]);
    agrees::<Holding>(&[json!({
        "x": 1, "by_name": { "a": 1 }, "by_number": { "3": true }, "pair": [1, "p"],
        "three": [true, false, true], "set": ["a", "b"], "nothing": null, "any": { "a": [1] },
    })]);
    agrees::<Doubt>(&[json!("repeat"), json!({ "done": { "result": { "id": 3 } } })]);
}

#[track_caller]
fn assert_mismatch(schema: &Value, value: &Value, message: &str) {
    assert_eq!(mismatch(schema, value).as_deref(), Some(message));
}

#[test]
fn messages_name_the_path_and_the_expectation() {
    let tree = schemars::schema_for!(Tree).to_value();
    assert_mismatch(&tree, &json!([]), "expected an object, found an array");
    assert_mismatch(&tree, &json!({ "value": 1 }), "the field `below` is missing");
    assert_mismatch(
        &tree,
        &json!({ "value": 1, "below": [{ "value": 2, "below": [] }, { "value": "2", "below": [] }] }),
        "at `below[1].value`: expected an integer, found `\"2\"`",
    );
    let tagged = schemars::schema_for!(Tagged).to_value();
    assert_mismatch(
        &tagged,
        &json!({ "edit": { "text": "t", "times": 300 } }),
        "at `edit.times`: expected at most 255, found 300",
    );
    let plain = schemars::schema_for!(Plain).to_value();
    assert_mismatch(
        &plain,
        &json!("approve"),
        "expected one of `\"Approve\"`, `\"Reject\"`, found `\"approve\"`",
    );
    assert_mismatch(
        &json!({ "type": ["string", "null"] }),
        &json!(1),
        "expected a string or null, found `1`",
    );
    let strict = schemars::schema_for!(Strict).to_value();
    assert_mismatch(&strict, &json!({ "name": "n", "nmae": 1 }), "the field `nmae` is unknown");
}

#[test]
fn checks_each_keyword() {
    for (schema, fits, fails) in [
        (json!({ "const": 3 }), json!(3), json!(4)),
        (json!({ "minimum": 3 }), json!(3), json!(2.9)),
        (json!({ "maximum": 3 }), json!(3), json!(3.1)),
        (json!({ "exclusiveMinimum": 3 }), json!(3.1), json!(3)),
        (json!({ "exclusiveMaximum": 3 }), json!(2), json!(3)),
        (json!({ "maximum": u64::MAX - 1 }), json!(u64::MAX - 1), json!(u64::MAX)),
        (json!({ "minLength": 2 }), json!("äö"), json!("ä")),
        (json!({ "maxLength": 2 }), json!("äö"), json!("äöü")),
        (json!({ "minItems": 1 }), json!([1]), json!([])),
        (json!({ "maxItems": 1 }), json!([1]), json!([1, 2])),
        (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 2, 1])),
        (json!({ "items": false, "prefixItems": [true] }), json!([1]), json!([1, 2])),
        (
            json!({ "additionalProperties": { "type": "null" } }),
            json!({ "a": null }),
            json!({ "a": 1 }),
        ),
        (json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(1), json!(3)),
        (json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(3), json!(1)),
        (json!({ "anyOf": [{ "minimum": 1 }, { "type": "null" }] }), json!(null), json!(0)),
        (json!({ "not": { "type": "null" } }), json!(1), json!(null)),
        (
            json!({ "$ref": "#/$defs/A%20b", "$defs": { "A b": { "type": "null" } } }),
            json!(null),
            json!(1),
        ),
        (json!({ "type": "array", "items": { "$ref": "#" } }), json!([[], [[]]]), json!([[1]])),
        (json!(true), json!(1), json!(1)),
    ] {
        assert_eq!(mismatch(&schema, &fits), None, "{schema}");
        assert_eq!(mismatch(&schema, &fails).is_some(), schema != json!(true), "{schema}");
    }
    assert!(mismatch(&json!(false), &json!(1)).is_some());
    // Unknown keywords are ignored.
    for schema in
        [json!({ "format": "email", "pattern": "^x" }), json!({ "$ref": "else.json" }), json!(3)]
    {
        assert_eq!(mismatch(&schema, &json!("y")), None);
    }
}

#[test]
fn circular_schemas_terminate() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "oneOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "not": { "$ref": "#" } }),
    ] {
        let _ = mismatch(&schema, &json!([1]));
    }
    let mut deep = json!(1);
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    let nested = json!({ "type": "array", "items": { "$ref": "#" } });
    assert_eq!(mismatch(&nested, &deep), None, "nothing below the depth limit is checked");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                prop_oneof![Just("value".to_owned()), Just("below".to_owned()), "[a-z]{1,3}"],
                inner,
                0..4
            )
            .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn tree() -> impl Strategy<Value = Value> {
    any::<i64>().prop_map(|value| json!({ "value": value, "below": [] })).prop_recursive(
        4,
        24,
        3,
        |inner| {
            (any::<i64>(), prop::collection::vec(inner.clone(), 0..3), prop::option::of(inner))
                .prop_map(
                    |(value, below, link)| json!({ "value": value, "below": below, "link": link }),
                )
        },
    )
}

proptest! {
    #[test]
    fn matching_values_decode(value in any_json()) {
        let fits = mismatch(&schemars::schema_for!(Tree).to_value(), &value).is_none();
        if fits {
            prop_assert!(serde_json::from_value::<Tree>(value).is_ok());
        }
    }

    #[test]
    fn every_tree_matches(value in tree()) {
        prop_assert_eq!(mismatch(&schemars::schema_for!(Tree).to_value(), &value), None);
    }

    #[test]
    fn every_schema_and_value_terminates(schema in any_json(), value in any_json()) {
        let _ = mismatch(&schema, &value);
    }
}
