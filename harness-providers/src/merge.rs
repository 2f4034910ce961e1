//! Options of a protocol in the body of a request.

use harness::llm::{LlmError, LlmErrorKind, ModelId, Request};
use serde_json::{Map, Value};

/// Adds the options of `protocol` to a body. Objects are merged; lists with a name of `lists` are
/// continued; everything else is replaced.
pub(crate) fn merge_options(
    body: &mut Map<String, Value>,
    request: &Request<'_>,
    protocol: &str,
    model: &ModelId,
    reserved: &[&str],
    lists: &[&str],
) -> Result<(), LlmError> {
    let own = request.options.map(|options| options.of(protocol)).transpose()?.flatten();
    for (name, value) in own.into_iter().flatten() {
        if reserved.contains(&name.as_str()) {
            return Err(LlmError::new(LlmErrorKind::InvalidRequest)
                .with_model(model.clone())
                .with_detail(format!("the option `{name}` belongs to the adapter")));
        }
        match (body.get_mut(name), value) {
            (Some(Value::Array(list)), Value::Array(more)) if lists.contains(&name.as_str()) => {
                list.extend(more.iter().cloned());
            }
            (Some(before), value) => merge(before, value),
            (None, value) => {
                body.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

fn merge(before: &mut Value, value: &Value) {
    match (before, value) {
        (Value::Object(before), Value::Object(value)) => {
            for (name, value) in value {
                match before.get_mut(name) {
                    Some(before) => merge(before, value),
                    None => drop(before.insert(name.clone(), value.clone())),
                }
            }
        }
        (before, value) => *before = value.clone(),
    }
}
