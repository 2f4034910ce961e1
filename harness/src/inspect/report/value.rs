//! A value as HTML: its fields where they are few and plain, JSON otherwise.

use maud::html;
use serde_json::{Map, Value};

use super::changes::json;
use super::words::visible;

/// The most bytes of a value that are shown.
const MAX_VALUE: usize = 24 << 10;
/// The most fields that are shown by themselves, and the most bytes of one.
const MAX_FIELDS: usize = 12;
const MAX_FIELD: usize = 2_000;

/// A value as HTML, for a page that has the [`STYLE`](super::STYLE): the fields of an object with few
/// plain ones, JSON otherwise.
///
/// ```
/// use harness::inspect::report::value_html;
/// use serde_json::json;
///
/// assert!(value_html(&json!({"to": "<b>ann"})).contains("<dt>to</dt><dd><bdi>&lt;b&gt;ann</bdi></dd>"));
/// assert!(value_html(&json!({"to": ["ann"]})).starts_with("<pre"));
/// ```
#[must_use]
pub fn value_html(value: &Value) -> String {
    let plain = value.as_object().filter(|fields| is_plain(fields));
    let markup = match plain {
        Some(fields) => html! {
            dl class="facts value" { @for (name, value) in fields {
                div { dt { (visible(name)) } dd { bdi { (visible(&word(value))) } } }
            } }
        },
        None => html! { pre dir="auto" tabindex="0" { (visible(&json(value, MAX_VALUE, true))) } },
    };
    markup.into_string()
}

fn is_plain(fields: &Map<String, Value>) -> bool {
    let plain = |value: &Value| match value {
        Value::String(text) => text.len() <= MAX_FIELD,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    (1..=MAX_FIELDS).contains(&fields.len()) && fields.values().all(plain)
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}
