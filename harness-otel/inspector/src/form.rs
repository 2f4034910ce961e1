//! The form of a question, made from the JSON schema of its answer.
//!
//! A field has the name of its place in the answer: `a/approve/edited/cents`. Beside the fields there are
//! choices, `{place}?`, of a variant by its number, and `on` where an optional object is given. A schema
//! that is no form of these becomes a field for JSON. What the form makes is checked as any answer, so
//! that nothing depends on what is understood here.

use std::collections::HashMap;

use harness::inspect::report::visible;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The place of the answer.
pub(crate) const ROOT: &str = "a";

/// How deep a form follows a schema; deeper values are given as JSON.
const DEEPEST: usize = 8;
/// The longest list of values that is shown as choices in place of a menu.
const CHOICES: usize = 6;

/// What a schema asks for.
pub(crate) enum Shape<'s> {
    Boolean,
    /// One of these values.
    OneOf(&'s [Value]),
    /// Only this value.
    Const(&'s Value),
    Text,
    Number {
        whole: bool,
    },
    Null,
    Object {
        fields: &'s Map<String, Value>,
        required: Vec<&'s str>,
    },
    /// One of these schemas.
    Variants(Vec<&'s Value>),
    /// Anything else, as JSON.
    Json,
}

impl<'s> Shape<'s> {
    pub(crate) fn of(schema: &'s Value, root: &'s Value, depth: usize) -> Self {
        let schema = resolved(schema, root);
        if depth > DEEPEST {
            return Self::Json;
        }
        if let Some(value) = schema.get("const") {
            return Self::Const(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return Self::OneOf(values);
        }
        for key in ["anyOf", "oneOf"] {
            let variants = schema.get(key).and_then(Value::as_array).filter(|it| !it.is_empty());
            if let Some(variants) = variants {
                return Self::Variants(variants.iter().collect());
            }
        }
        match schema.get("type") {
            Some(kind) => match kind_of(kind) {
                "boolean" => Self::Boolean,
                "string" => Self::Text,
                "integer" => Self::Number { whole: true },
                "number" => Self::Number { whole: false },
                "null" => Self::Null,
                "object" => match schema.get("properties").and_then(Value::as_object) {
                    Some(fields) => {
                        let required = schema.get("required").and_then(Value::as_array);
                        let required = required.into_iter().flatten().filter_map(Value::as_str);
                        Self::Object { fields, required: required.collect() }
                    }
                    None => Self::Json,
                },
                _ => Self::Json,
            },
            None => Self::Json,
        }
    }
}

/// The type of a schema; of one that may also be null, the other type.
fn kind_of(kind: &Value) -> &str {
    let one = match kind {
        Value::Array(kinds) => {
            let mut others = kinds.iter().filter(|kind| *kind != "null");
            others.next().filter(|_| others.next().is_none() && kinds.len() == 2)
        }
        kind => Some(kind),
    };
    one.and_then(Value::as_str).unwrap_or_default()
}

/// A schema, or what it refers to.
fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    // A reference to itself would never end.
    for _ in 0..DEEPEST {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
        match target.and_then(|place| root.pointer(place)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

/// What a form begins with: what was sent before, or the question.
pub(crate) struct Given<'g> {
    pub(crate) sent: Option<&'g HashMap<String, String>>,
    /// The question: its fields are suggested for edited arguments of the same names.
    pub(crate) question: &'g Value,
}

/// The fields for an answer.
pub(crate) fn fields(schema: &Value, given: &Given<'_>, id: &str) -> Markup {
    let form = Form { root: schema, given, id };
    form.field(schema, ROOT, "Answer", true, None, 0)
}

struct Form<'f> {
    root: &'f Value,
    given: &'f Given<'f>,
    /// What the ids of the fields begin with: a page has several forms.
    id: &'f str,
}

impl Form<'_> {
    fn sent(&self, name: &str) -> Option<&str> {
        self.given.sent?.get(name).map(String::as_str)
    }

    fn field(
        &self,
        schema: &Value,
        place: &str,
        label: &str,
        required: bool,
        suggested: Option<&Value>,
        depth: usize,
    ) -> Markup {
        let id = format!("{}-{place}", self.id);
        // A browser refuses to send a form whose needed field is one that the choices hide.
        let needed = required && depth <= 1;
        let hint = resolved(schema, self.root).get("description").and_then(Value::as_str);
        let hint = html! { @if let Some(hint) = hint { p class="hint" { (visible(hint)) } } };
        let optional = html! { @if !required { span class="hint" { " (optional)" } } };
        match Shape::of(schema, self.root, depth) {
            Shape::Boolean => {
                let values = [("true", "Yes"), ("false", "No")];
                let chosen = self.sent(place).map(str::to_owned);
                let chosen = chosen.or_else(|| suggested.map(Value::to_string));
                html! { fieldset {
                    legend { (visible(label)) (optional) } (hint)
                    @for (value, words) in values {
                        label class="choice" {
                            input type="radio" name=(place) value=(value) required[needed]
                                checked[chosen.as_deref() == Some(value)];
                            (words)
                        }
                    }
                } }
            }
            Shape::Const(value) => html! {
                input type="hidden" name=(place) value=(value.to_string());
                p { (visible(label)) ": " code { (visible(&words(value))) } } (hint)
            },
            Shape::Null => html! { input type="hidden" name=(place) value="null"; (hint) },
            Shape::OneOf(values) => self.one_of(values, place, label, (required, needed), hint),
            Shape::Text => html! { div {
                label for=(id) { (visible(label)) (optional) } (hint)
                textarea class="words" id=(id) name=(place) rows="2" dir="auto" required[needed && !may_be_empty(schema, self.root)] {
                    (self.sent(place).or(suggested.and_then(Value::as_str)).unwrap_or_default())
                }
            } },
            Shape::Number { whole } => {
                let value = self.sent(place).map(str::to_owned);
                let value = value.or_else(|| suggested.map(Value::to_string)).unwrap_or_default();
                html! { div {
                    label for=(id) { (visible(label)) (optional) } (hint)
                    input id=(id) type="number" name=(place) value=(value) step=(if whole { "1" } else { "any" }) required[needed];
                } }
            }
            Shape::Object { fields, required: needed } if required => html! { fieldset {
                legend { (visible(label)) } (hint)
                (self.object(fields, &needed, place, suggested, depth))
            } },
            Shape::Object { fields, required: needed } => {
                let switch = format!("{place}?");
                html! { div class="variant" {
                    label class="choice" {
                        input type="checkbox" name=(switch) value="on" checked[self.sent(&switch).is_some()];
                        (visible(label)) (optional)
                    }
                    (hint)
                    div class="fields" { (self.object(fields, &needed, place, suggested, depth)) }
                } }
            }
            Shape::Variants(variants) => {
                self.variants(&variants, place, label, (required, needed), hint, depth)
            }
            Shape::Json => html! { div {
                label for=(id) { (visible(label)) " as JSON" (optional) } (hint)
                textarea id=(id) name=(place) rows="3" spellcheck="false" required[needed] {
                    (self.sent(place).map(str::to_owned)
                        .or_else(|| suggested.filter(|_| required).and_then(|it| serde_json::to_string_pretty(it).ok()))
                        .unwrap_or_default())
                }
            } },
        }
    }

    fn one_of(
        &self,
        values: &[Value],
        place: &str,
        label: &str,
        (required, needed): (bool, bool),
        hint: Markup,
    ) -> Markup {
        let id = format!("{}-{place}", self.id);
        let chosen = |at: usize| self.sent(place) == Some(&*at.to_string());
        if values.len() <= CHOICES {
            return html! { fieldset {
                legend { (visible(label)) @if !required { span class="hint" { " (optional)" } } } (hint)
                @for (at, value) in values.iter().enumerate() { label class="choice" {
                    input type="radio" name=(place) value=(at) required[needed] checked[chosen(at)];
                    (visible(&words(value)))
                } }
            } };
        }
        html! { div {
            label for=(id) { (visible(label)) } (hint)
            select id=(id) name=(place) required[needed] {
                option value="" { "" }
                @for (at, value) in values.iter().enumerate() {
                    option value=(at) selected[chosen(at)] { (visible(&words(value))) }
                }
            }
        } }
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        required: &[&str],
        place: &str,
        suggested: Option<&Value>,
        depth: usize,
    ) -> Markup {
        html! { @for (name, schema) in fields {
            @let needed = required.contains(&&**name);
            @let value = suggested.and_then(|it| it.get(name)).or_else(|| self.arguments(name));
            (self.field(schema, &below(place, name), name, needed, value, depth + 1))
        } }
    }

    /// The arguments that a question is about, where its answer may edit them.
    fn arguments(&self, name: &str) -> Option<&Value> {
        let asked = self.given.question;
        (name == "edited").then(|| asked.get("arguments").unwrap_or(asked))
    }

    fn variants(
        &self,
        variants: &[&Value],
        place: &str,
        label: &str,
        (required, needed): (bool, bool),
        hint: Markup,
        depth: usize,
    ) -> Markup {
        let choice = format!("{place}?");
        let chosen = |at: usize| self.sent(&choice) == Some(&*at.to_string());
        html! { fieldset {
            legend { (visible(label)) @if !required { span class="hint" { " (optional)" } } } (hint)
            @for (at, variant) in variants.iter().enumerate() {
                div class="variant" {
                    label class="choice" {
                        input type="radio" name=(choice) value=(at) required[needed] checked[chosen(at)];
                        (visible(&self.title(variant)))
                    }
                    div class="fields" { (self.inside(variant, &below(place, &at.to_string()), depth)) }
                }
            }
        } }
    }

    /// The fields of a variant, without a frame of their own.
    fn inside(&self, variant: &Value, place: &str, depth: usize) -> Markup {
        match Shape::of(variant, self.root, depth + 1) {
            // `{"approve": {..}}`: the name of the only field is the title of the variant.
            Shape::Object { fields, required } => match only(fields, &required) {
                Some((name, schema)) => {
                    let place = below(place, name);
                    match Shape::of(schema, self.root, depth + 2) {
                        Shape::Object { fields, required } => {
                            self.object(fields, &required, &place, None, depth + 2)
                        }
                        _ => self.field(schema, &place, name, true, None, depth + 2),
                    }
                }
                None => self.object(fields, &required, place, None, depth + 1),
            },
            Shape::Const(value) => {
                html! { input type="hidden" name=(place) value=(value.to_string()); }
            }
            Shape::Null => html! { input type="hidden" name=(place) value="null"; },
            // The choice of a variant says whether it is needed.
            _ => self.field(variant, place, "Value", false, None, depth + 1),
        }
    }

    fn title(&self, variant: &Value) -> String {
        let schema = resolved(variant, self.root);
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = match Shape::of(variant, self.root, 0) {
            Shape::Const(value) => Some(words(value)),
            Shape::Null => Some("nothing".to_owned()),
            Shape::Boolean => Some("yes or no".to_owned()),
            Shape::Object { fields, required } => {
                only(fields, &required).map(|(name, _)| name.replace('_', " "))
            }
            _ => None,
        };
        let name = name.or_else(|| text("title")).or_else(|| text("type"));
        match (name, text("description")) {
            (Some(name), Some(description)) => format!("{name}: {description}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "another value".to_owned(),
        }
    }
}

/// The only field of a variant whose name is what it is called.
pub(crate) fn only<'s>(
    fields: &'s Map<String, Value>,
    required: &[&str],
) -> Option<(&'s String, &'s Value)> {
    let mut all = fields.iter();
    let first = all.next().filter(|(name, _)| required.contains(&&***name))?;
    all.next().is_none().then_some(first)
}

pub(crate) fn below(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn may_be_empty(schema: &Value, root: &Value) -> bool {
    let least = resolved(schema, root).get("minLength").and_then(Value::as_u64);
    least.unwrap_or(0) == 0
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
