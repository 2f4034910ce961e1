//! Reading a form back into an answer.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::form::{ROOT, Shape, below, only};

/// The answer that a form gives, by the schema that it was made from.
///
/// # Errors
/// What is missing or is not of its type, in words.
pub(crate) fn answer(schema: &Value, sent: &HashMap<String, String>) -> Result<Value, String> {
    let reader = Reader { root: schema, sent };
    reader.value(schema, ROOT, true, 0)?.ok_or_else(|| "an answer is needed".to_owned())
}

struct Reader<'r> {
    root: &'r Value,
    sent: &'r HashMap<String, String>,
}

impl Reader<'_> {
    fn sent(&self, name: &str) -> Option<&str> {
        self.sent.get(name).map(String::as_str)
    }

    /// The value at a place; `None` if it is left out.
    fn value(
        &self,
        schema: &Value,
        place: &str,
        required: bool,
        depth: usize,
    ) -> Result<Option<Value>, String> {
        let called = called(place);
        let missing = || match required {
            true => Err(format!("{called} is missing")),
            false => Ok(None),
        };
        let text = self.sent(place);
        match Shape::of(schema, self.root, depth) {
            Shape::Boolean => match text {
                Some("true") => Ok(Some(Value::Bool(true))),
                Some("false") => Ok(Some(Value::Bool(false))),
                _ => missing(),
            },
            Shape::Const(value) => Ok(Some(value.clone())),
            Shape::Null => Ok(Some(Value::Null)),
            Shape::OneOf(values) => match text {
                None | Some("") => missing(),
                Some(nth) => {
                    let value = nth.parse::<usize>().ok().and_then(|nth| values.get(nth));
                    value.cloned().map(Some).ok_or_else(|| format!("{called} is no choice"))
                }
            },
            // An empty text is one, where it is needed.
            Shape::Text => match text {
                None => missing(),
                Some("") if !required => Ok(None),
                // A browser sends line breaks of both characters.
                Some(text) => Ok(Some(Value::String(text.replace("\r\n", "\n")))),
            },
            Shape::Number { whole } => match text.map(str::trim) {
                None | Some("") => missing(),
                Some(text) => {
                    let number: Result<serde_json::Number, _> = serde_json::from_str(text);
                    let fits = number.ok().filter(|it| !whole || it.is_i64() || it.is_u64());
                    let kind = if whole { "a whole number" } else { "a number" };
                    fits.map(|it| Some(Value::Number(it)))
                        .ok_or_else(|| format!("{called} is not {kind}"))
                }
            },
            Shape::Object { fields, required: needed } => {
                if !required && self.sent(&format!("{place}?")).is_none() {
                    return Ok(None);
                }
                self.object(fields, &needed, place, depth).map(Some)
            }
            Shape::Variants(variants) => {
                let Some(nth) = self.sent(&format!("{place}?")) else { return missing() };
                let known = nth.parse::<usize>().ok().and_then(|at| Some((at, *variants.get(at)?)));
                let (at, variant) = known.ok_or_else(|| format!("{called} is no choice"))?;
                self.variant(variant, &below(place, &at.to_string()), depth).map(Some)
            }
            Shape::Json => match text.map(str::trim) {
                None | Some("") => missing(),
                Some(text) => serde_json::from_str(text)
                    .map(Some)
                    .map_err(|error| format!("{called} is not JSON: {error}")),
            },
        }
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        required: &[&str],
        place: &str,
        depth: usize,
    ) -> Result<Value, String> {
        let mut object = Map::new();
        for (name, schema) in fields {
            let needed = required.contains(&&**name);
            if let Some(value) = self.value(schema, &below(place, name), needed, depth + 1)? {
                object.insert(name.clone(), value);
            }
        }
        Ok(Value::Object(object))
    }

    fn variant(&self, variant: &Value, place: &str, depth: usize) -> Result<Value, String> {
        if let Shape::Object { fields, required } = Shape::of(variant, self.root, depth + 1) {
            return match only(fields, &required) {
                Some((name, schema)) => {
                    let value = self.value(schema, &below(place, name), true, depth + 2)?;
                    Ok(Value::Object(
                        [(name.clone(), value.unwrap_or_default())].into_iter().collect(),
                    ))
                }
                None => self.object(fields, &required, place, depth + 1),
            };
        }
        let value = self.value(variant, place, true, depth + 1)?;
        value.ok_or_else(|| format!("{} is missing", called(place)))
    }
}

/// A place in words.
fn called(place: &str) -> String {
    match place.strip_prefix(ROOT).map(|rest| rest.trim_start_matches('/')) {
        None | Some("") => "the answer".to_owned(),
        Some(rest) => format!("`{}`", rest.replace("~1", "/").replace("~0", "~")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use harness::approval::Approval;
    use schemars::{JsonSchema, schema_for};
    use serde_json::json;

    use super::*;
    use crate::form::{Given, fields};

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Order {
        size: Size,
        count: u32,
        gift: bool,
        note: Option<String>,
        to: Address,
        tags: Vec<String>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Size {
        Small,
        Large,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Address {
        city: String,
    }

    fn read(schema: &Value, sent: &[(&str, &str)]) -> Result<Value, String> {
        let sent = sent.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        answer(schema, &sent)
    }

    fn shown(schema: &Value, question: &Value) -> String {
        fields(schema, &Given { sent: None, question }, "q").into_string()
    }

    #[test]
    fn a_form_gives_the_answer_that_its_schema_asks_for() {
        let order = serde_json::to_value(schema_for!(Order)).unwrap();
        let page = shown(&order, &Value::Null);
        for name in ["a/size", "a/count", "a/gift", "a/note", "a/to/city", "a/tags"] {
            assert!(page.contains(&format!("name=\"{name}")), "{name}: {page}");
        }
        let sent = [
            ("a/size", "1"),
            ("a/count", "3"),
            ("a/gift", "false"),
            ("a/to/city", "a\r\nb"),
            ("a/tags", "[\"x\"]"),
        ];
        let expected = json!({
            "size": "Large", "count": 3, "gift": false, "to": {"city": "a\nb"}, "tags": ["x"],
        });
        assert_eq!(read(&order, &sent).unwrap(), expected);
    }

    #[test]
    fn an_approval_edits_arguments_or_does_not() {
        let schema = serde_json::to_value(schema_for!(Approval)).unwrap();
        let approval = |sent: &[(&str, &str)]| {
            serde_json::from_value::<Approval>(read(&schema, sent).unwrap()).unwrap()
        };
        assert_eq!(approval(&[("a?", "0")]), Approval::approve());
        let why = [("a?", "1"), ("a/1/reject/message", "no")];
        assert_eq!(approval(&why), Approval::reject_because("no"));
        let edited = [("a?", "0"), ("a/0/approve/edited", "{\"cents\": 5}")];
        assert_eq!(approval(&edited), Approval::approve().edited(json!({"cents": 5})));
        // Nothing is chosen until a person does.
        assert!(!shown(&schema, &Value::Null).contains("checked"));
    }

    #[test]
    fn arguments_that_may_be_edited_are_those_of_the_question() {
        let edited = json!({"type": "object", "properties": {
            "order": {"type": "string"}, "cents": {"type": "integer"}}, "required": ["order", "cents"]});
        let schema = json!({"anyOf": [
            {"type": "object", "properties": {"approve": {"type": "object", "properties": {"edited": edited}}},
             "required": ["approve"]},
        ]});
        for question in [
            json!({"order": "o-7", "cents": 50}),
            json!({"tool": "pay", "arguments": {"order": "o-7", "cents": 50}}),
        ] {
            let page = shown(&schema, &question);
            assert!(page.contains("o-7") && page.contains("value=\"50\""), "{page}");
        }
        let on = [("a?", "0"), ("a/0/approve/edited?", "on"), ("a/0/approve/edited/order", "o-7")];
        assert!(read(&schema, &on).unwrap_err().contains("cents"));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (schema, sent, said) in [
            (json!({"type": "boolean"}), &[][..], "the answer is missing"),
            (json!({"type": "integer"}), &[("a", "1.5")], "the answer is not a whole number"),
            (json!({"enum": ["x"]}), &[("a", "7")], "the answer is no choice"),
            (json!({"anyOf": [{"const": 1}]}), &[("a?", "x")], "the answer is no choice"),
            (json!({}), &[("a", "{")], "the answer is not JSON"),
        ] {
            let error = read(&schema, sent).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
            "properties": {"next": {"$ref": "#/$defs/a"}}, "required": ["next"]}}});
        assert!(shown(&schema, &Value::Null).contains("as JSON"));
        let endless = json!({"$ref": "#"});
        assert!(shown(&endless, &Value::Null).contains("as JSON"));
    }

    #[test]
    fn hostile_schemas_and_questions_are_only_text() {
        let bad = "\"><script>alert(1)</script>";
        let schema = json!({"type": "object", "description": bad, "title": bad,
            "properties": {bad: {"type": "string", "description": bad},
                "edited": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "required": [bad]});
        let page = shown(&schema, &json!({"x": bad}));
        assert!(!page.contains("<script"), "{page}");
    }
}
